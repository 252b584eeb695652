"""dl-plan: turn observations into a decision, purely."""

from __future__ import annotations

import dataclasses
import gc
import hashlib
import json
import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, BinaryIO

import typer

from dltools import bounded
from dltools.cli import destinations, options
from dltools.cli.data import for_screen
from dltools.cli.exits import complain, guarded, run
from dltools.cli.options import Input, Verbose, Version
from dltools.errors import ConfigError, DataError

if TYPE_CHECKING:
    import pyarrow as pa

    from dltools.planner import Fold
    from dltools.policy.base import Policy
    from dltools.realize import Choice
    from dltools.streams import Recording

_WIDE = 120
"""Columns from which --explain shows signals and predictions apart."""


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
            parser=options.seconds,
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
            help="Write the state to FILE at the end. May be the file of "
            "--state, which then need not exist at first.",
        ),
    ] = None,
    every: Annotated[
        bool, typer.Option("--every", help="Print a plan for every sample of a recording.")
    ] = False,
    explain: Annotated[
        bool, typer.Option("--explain", help="Print a table for people instead of the plan.")
    ] = False,
    policies: Annotated[
        bool, typer.Option("--policies", help="List the policies and their parameters, and exit.")
    ] = False,
    verbose: Verbose = False,
    version: Version = False,  # noqa: ARG001
) -> None:
    """Decide, from observations alone, what each container should get.

    Reads what dl-probe writes, in any of its formats, and prints a plan as JSON Lines. A recording
    gives one plan, for its last sample; an Arrow stream gives one per sample as it arrives.
    The same input and parameters always give the same plan.
    """  # fmt: skip
    if policies:
        _list_policies()
        return
    from dltools.planner import Fold
    from dltools.policy import registry

    if save_state is not None:
        destinations.check(save_state)
    chosen = registry.get(policy, plugins())
    complain_of_plugins()
    parameters = _parameters(chosen, params, set_ or [])
    saved = _load_state(state, save_state)
    given = _targets(targets)
    fold = Fold(chosen, parameters, choice_of(realize, quantum), saved, given)
    recording, source = opened(input_, context)
    recording = _doubted(recording, [pattern for pattern, _ in given])
    last: Mapping[str, Any] = {}
    with _from_state(state if saved else None):
        for last in _plans(fold, recording, source, every=every, explain=explain):
            if verbose:
                complain(f"{last['rows']} rows up to {last['to'] or 'nothing'}")
    if save_state is not None:
        _save_state(save_state, fold, last)


def _plans(
    fold: Fold, recording: Recording, source: _Hashed, *, every: bool, explain: bool
) -> Iterator[Mapping[str, Any]]:
    """Print plans as they come due, and yield the account of the input so far."""
    from dltools import equal_shares

    account = _Account(source)
    if not recording.streaming:
        gc.disable()  # a short life without cycles: looking for them takes a tenth of it
    for table in recording.tables:
        account.add(table)
        if not recording.streaming:
            table, assumed = equal_shares.assume(table)
            if assumed:
                complain(f"{', '.join(assumed)}: nothing but progress is known: "
                         "equal shares of one CPU are assumed")  # fmt: skip
        if recording.streaming:
            fold.add(table)
            fold.settle()
            yield _emit(fold, account, explain)
        elif every:
            for _ in fold.add_by_tick(table):
                yield _emit(fold, account, explain, pending=False)
        else:
            fold.add(table)
    if not recording.streaming or account.rows == 0:
        yield _emit(fold, account, explain)


def _doubted(recording: Recording, patterns: list[str]) -> Recording:
    """Complain, while a recording is read, of what in it and in the targets is probably a slip."""
    from dltools.doubts import Doubts

    doubts = Doubts(patterns)

    def tables() -> Iterator[pa.Table]:
        for table in recording.tables:
            found = doubts.labels(table) + doubts.sizes(table)
            if recording.streaming:
                found += doubts.targets(" so far")
            for doubt in found:
                complain(doubt)
            yield table
        for doubt in doubts.targets():
            complain(doubt)

    return dataclasses.replace(recording, tables=tables())


def _emit(
    fold: Fold, account: _Account, explain: bool, *, pending: bool = True
) -> Mapping[str, Any]:
    from dltools.plans import dump_plan

    input_ = account.to_json()
    if explain:
        from dltools.cli.tables import verdicts_table

        console = options.console()
        verdicts, lines = fold.explain(pending=pending)
        console.print(verdicts_table(verdicts, wide=console.width >= _WIDE))
        for line in lines:
            console.print(line, soft_wrap=False)
        return input_
    sys.stdout.write(for_screen(dump_plan(fold.plan(input_, pending=pending))))
    sys.stdout.flush()
    return input_


def opened(name: str, context: typer.Context) -> tuple[Recording, _Hashed]:
    """Open observations: a file, standard input, or a directory of recordings."""
    from dltools.feed import COLUMNS
    from dltools.streams import Recording, read

    if name == "-" or not Path(name).is_dir():
        stream, shown = options.open_input(name, context)
        source = _Hashed(stream)
        return read(source, shown, COLUMNS), source  # type: ignore[arg-type]
    from dltools.streams.dataset import Dataset

    dataset = Dataset(Path(name))
    table = dataset.read()
    if table.num_rows == 0:
        raise DataError(f"{name}: a directory without recordings")
    source = _Hashed(BytesIO())
    for file in dataset.files():
        source.add(file.read_bytes())
    return Recording(False, iter([table])), source


class _Hashed:
    """A stream that hashes what is read from it."""

    def __init__(self, stream: BinaryIO) -> None:
        self._stream = stream
        self._hash = hashlib.sha256()

    def add(self, data: bytes) -> None:
        self._hash.update(data)

    def read(self, size: int = -1) -> bytes:
        data = self._stream.read(size)
        self._hash.update(data)
        return data

    @property
    def sha256(self) -> str:
        return self._hash.hexdigest()


class _Account:
    """What has been read so far: rows, the span of their times, and the hash of the bytes."""

    def __init__(self, source: _Hashed) -> None:
        self._source = source
        self._from = self._to = ""
        self.rows = 0

    def add(self, table: pa.Table) -> None:
        from dltools.planner import moment
        from dltools.streams import format_time

        if table.num_rows == 0:
            return
        self.rows += table.num_rows
        # As integers: Arrow imports pandas, where there is one, for a time.
        times = table.column("time").cast("int64")
        first, last = (format_time(moment(times[i].as_py())) for i in (0, -1))
        self._from = min(self._from or first, first)
        self._to = max(self._to, last)

    def to_json(self) -> dict[str, Any]:
        return {"rows": self.rows, "from": self._from, "to": self._to,
                "sha256": self._source.sha256}  # fmt: skip


# Settings


def plugins() -> list[str] | None:
    """Return which plug-ins may load: all, or those that DLTOOLS_PLUGINS names ("": none)."""
    names = os.environ.get("DLTOOLS_PLUGINS")
    return None if names is None else [name for name in names.split(",") if name]


def complain_of_plugins() -> None:
    """Say which plug-ins do not load; the others are none the worse for it."""
    from dltools.policy import registry

    for wrong in registry.faults(plugins()).values():
        complain(f"{wrong}; left out")


def choice_of(text: str, quantum: float = 2.0) -> Choice:
    """Return what --realize and --quantum ask for. Raises `ConfigError`."""
    from dltools.realize import Choice, Mode

    if not 0.1 <= quantum <= 3600:
        raise ConfigError(f"--quantum {quantum:g}: from 0.1 to 3600 seconds")
    if text == "auto":
        return Choice(None, quantum)
    try:
        return Choice(Mode(text), quantum)
    except ValueError:
        known = ", ".join(("auto", *(mode.value for mode in Mode)))
        raise ConfigError(f"--realize {text}: unknown mode; known: {known}") from None


def _targets(file: Path | None) -> list[tuple[str, dict[str, str]]]:
    from dltools.targets import read

    if file is None:
        return []
    return read(bounded.text(file), str(file))


def _parameters(policy: Policy, file: Path | None, assignments: list[str]) -> Any:
    import tomllib

    from dltools.policy.parameters import build

    given: dict[str, object] = {}
    if file is not None:
        try:
            given |= tomllib.loads(bounded.text(file))
        except (ValueError, RecursionError) as error:
            raise ConfigError(f"{file}: {error}") from error
    given |= options.assigned(assignments)
    return build(policy.parameters, given)


def _load_state(state: Path | None, save_state: Path | None) -> Mapping[str, Any] | None:
    from dltools.plans import load_plans

    if state is None:
        return None
    try:
        with state.open("rb") as stream:
            plans = list(load_plans(bounded.lines(stream, str(state)), str(state)))
    except FileNotFoundError:
        if state == save_state:
            return None  # the first run
        raise DataError(f"{state}: no such file") from None
    return plans[-1].state if plans else None


@contextmanager
def _from_state(file: Path | None) -> Iterator[None]:
    """Going on from a file, take what would be a bug without it for a damaged state: a state is
    checked only as it is used."""
    try:
        yield
    except (TypeError, ValueError, KeyError, AttributeError, IndexError, OverflowError) as error:
        if file is None or isinstance(error, OSError):
            raise
        raise DataError(
            f"{file}: damaged state: {type(error).__name__}: {error}; begin anew without it"
        ) from error


def _save_state(file: Path, fold: Fold, account: Mapping[str, Any]) -> None:
    from dltools.plans import dump_plan

    with destinations.output_file(file) as out:
        out.write(dump_plan(fold.plan(account)).encode())


def _list_policies() -> None:
    from dltools.policy import registry
    from dltools.policy.parameters import describe

    complain_of_plugins()
    for name, found in sorted(registry.policies(plugins()).items()):
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
