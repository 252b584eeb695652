"""dl-plan: turn observations into a decision, purely."""

from __future__ import annotations

import gc
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dltools import inputs
from dltools.cli import destinations, options
from dltools.cli.exits import complain, guarded, run
from dltools.cli.options import Input, Verbose, Version
from dltools.cli.plan import planned
from dltools.cli.plan.planned import Output
from dltools.cli.plan.samples import Account, Samples, with_warnings
from dltools.cli.policies import (
    allowed_plugins,
    parse_assignments,
    realisation_options,
    warn_of_broken_plugins,
)
from dltools.cli.recordings import open_recording
from dltools.errors import ConfigError

if TYPE_CHECKING:
    from dltools.plan.planner import Planner
    from dltools.plan.policy.base import Policy


@guarded
def plan(
    context: typer.Context,
    input_: Input = "-",
    policy: Annotated[
        str,
        typer.Option(
            "-p",
            "--policy",
            metavar="NAME",
            envvar="DLTOOLS_POLICY",
            help="Who decides; --policies lists them.",
        ),
    ] = "flowcon",
    set_: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="NAME=VALUE", help="Set a policy parameter. Repeatable."),
    ] = None,
    params: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Read policy parameters from a TOML file; --set wins."),
    ] = None,
    realize: Annotated[
        str,
        typer.Option(
            metavar="MODE",
            envvar="DLTOOLS_REALIZE",
            help="How a share becomes a setting: auto, quota, weight, priority, rotate or cores.",
        ),
    ] = "auto",
    quantum: Annotated[
        float,
        typer.Option(
            metavar="SEC",
            parser=options.duration,
            help="With --realize rotate: the mean length of a turn.",
        ),
    ] = "2",  # type: ignore[assignment]
    targets: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Read targets of containers that were started without from a TOML file.",
        ),
    ] = None,
    state: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Go on from the plan or state in FILE."),
    ] = None,
    save_state: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Write the state to FILE at the end, and with each plan of a stream. May be the "
            "file of --state, which then need not exist at first.",
        ),
    ] = None,
    every: Annotated[
        bool, typer.Option("--every", help="Print a plan for every sample of a recording.")
    ] = False,
    no_state: Annotated[
        bool,
        typer.Option("--no-state", help="Leave the state out of the plans that are printed."),
    ] = False,
    explain: Annotated[
        bool, typer.Option("--explain", help="Print a table for people instead of the plan.")
    ] = False,
    format_: Annotated[
        Output,
        typer.Option("--format", help="auto: a table on a terminal, else JSON Lines."),
    ] = Output.AUTO,
    policies: Annotated[
        bool, typer.Option("--policies", help="List the policies and their parameters, and exit.")
    ] = False,
    verbose: Verbose = False,
    version: Version = False,  # noqa: ARG001
) -> None:
    """Decide, from observations alone, what each container should get.

    Reads what dl-probe writes, in any of its formats, and prints a plan as JSON Lines, on a
    terminal as a table. A recording gives one plan, for its last sample; an Arrow stream gives one
    per sample as it arrives.
    The same input and parameters always give the same plan.
    """  # fmt: skip
    if policies:
        _list_policies()
        return
    from dltools.plan.planner import Planner
    from dltools.plan.policy import registry

    if save_state is not None:
        destinations.check(save_state)
    format_ = planned.chosen(format_, explain=explain)
    chosen = registry.get(policy, allowed_plugins())
    warn_of_broken_plugins()
    parameters = _parameters(chosen, params, set_ or [])
    saved = planned.load_state(state, save_state)
    given = _targets(targets)
    fold = Planner(chosen, parameters, realisation_options(realize, quantum), saved, given)
    recording, source = open_recording(input_, context)
    samples = Samples(with_warnings(recording, [pattern for pattern, _ in given]), source)
    last: Mapping[str, Any] = {}
    with planned.going_on_from(state if saved else None):
        for last in _plans(fold, samples, format_, every=every, no_state=no_state):
            if verbose:
                complain(f"{last['rows']} rows up to {last['to'] or 'nothing'}")
            if save_state is not None and samples.live:
                planned.save_state(save_state, fold, last)  # it may be killed before it ends
    if save_state is not None:
        planned.save_state(save_state, fold, last)


def _plans(
    fold: Planner, samples: Samples, format_: Output, *, every: bool, no_state: bool
) -> Iterator[Mapping[str, Any]]:
    """Print plans as they come due, and yield the account of the input so far.

    The state is in the last plan alone, but for a live stream, of which any may be the last.
    """
    from dltools.observations.assumed_shares import assume_equal_shares

    account = Account(samples.source.sha256)
    recording = not samples.streaming

    def show(*, last: bool, pending: bool = True) -> Mapping[str, Any]:
        kept = not no_state and (last or (samples.live and not every))
        planned.show(fold, account.to_json(), format_, pending=pending, state=kept)
        return account.to_json()

    if recording:
        gc.disable()  # a short life without cycles: looking for them takes a tenth of it
    for table, sha256, last in samples:
        account.add(table, sha256)
        if recording:
            assumed = assume_equal_shares(table)
            table = assumed.table
            if assumed.hosts:
                complain(f"{', '.join(assumed.hosts)}: nothing but progress is known: "
                         "equal shares of one CPU are assumed")  # fmt: skip
        if not recording:
            fold.add(table)
            fold.complete()
            yield show(last=last)
        elif every:
            for _ in fold.add_by_sample(table):
                yield show(last=False, pending=False)
        else:
            fold.add(table)
    if recording or account.rows == 0:
        yield show(last=True)


def _targets(file: Path | None) -> list[tuple[str, dict[str, str]]]:
    from dltools.plan.targets_file import read

    if file is None:
        return []
    return read(inputs.read_text(file), str(file))


def _parameters(policy: Policy, file: Path | None, assignments: list[str]) -> Any:
    import tomllib

    from dltools.plan.policy.parameters import build

    given: dict[str, object] = {}
    if file is not None:
        try:
            given |= tomllib.loads(inputs.read_text(file))
        except (ValueError, RecursionError) as error:
            raise ConfigError(f"{file}: {error}") from error
    given |= parse_assignments(assignments)
    return build(policy.parameters, given)


def _list_policies() -> None:
    from dltools.plan.policy import registry
    from dltools.plan.policy.parameters import describe

    warn_of_broken_plugins()
    for name, found in sorted(registry.policies(allowed_plugins()).items()):
        print(f"{name}: {found.help}")
        for p in describe(found.parameters):
            default = json.dumps(p["default"])
            bounds = {
                "bool": ", true or false", "choice": f", {' or '.join(p['choices'])}",
                "number": f", {p['low']:g} to {p['high']:g}",
            }[p["type"]]  # fmt: skip
            print(f"    {p['name']}={default}{bounds}: {p['help']} [{p['source']}]")


app = options.app(plan)


def main() -> None:
    """Run dl-plan."""
    run(app)
