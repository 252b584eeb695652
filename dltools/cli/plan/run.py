"""Plans as a dl-plan command line asks for: reads policy, state and samples, prints the plans."""

from __future__ import annotations

import dataclasses
import gc
import sys
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from dltools import bounded_reading
from dltools.actions.plan_lines import dump_close, dump_plan, load_plans
from dltools.cli import destinations
from dltools.cli.destinations import make_console, printable_on_terminal, redrawn
from dltools.cli.exits import Exit, print_message, unbroken
from dltools.cli.formats import RecordFormat, format_for_stdout
from dltools.cli.input_streams import Source, open_recording
from dltools.cli.plan.sample_stream import Account, Merged, Samples, with_warnings
from dltools.cli.plan.targets_file import GivenLabels, read_targets_file
from dltools.cli.policies import (
    allowed_plugins,
    assign,
    parse_assignments,
    realisation_options,
    warn_of_broken_plugins,
    warn_of_unused_quantum,
)
from dltools.cli.remarks import Remarks, is_last_in_pipe
from dltools.errors import DataError
from dltools.observations.assumed_shares import with_equal_shares
from dltools.observations.roles import Rules, parse_rule
from dltools.plan.planner import Planner
from dltools.plan.policy import registry
from dltools.plan.policy.parameters import build
from dltools.text import listed

if TYPE_CHECKING:
    import pyarrow as pa
    from rich.console import RenderableType

    from dltools.actions.plans import Plan
    from dltools.cli.plan.request import Request
    from dltools.plan.policy.interface import Policy

_WHOLE_COLLECTION = 100
"""Plans of a stream after which all memory is searched for garbage, and not the newest alone."""

_WHOLE_EACH = 100
"""Plans of a live stream of which one says all, so that a file that lost its beginning is read."""
_WIDE = 140
"""Columns from which the table shows signals and predictions apart."""


def run_request(request: Request) -> None:
    """Print the plans that a request asks for, and save the state."""
    policy = load_policy(request.policy)
    warn_of_unused_quantum(request.mode, request.quantum_s)
    is_first_run_allowed = request.state_file == request.saved_state_file
    saved = load_state(request.state_file, may_be_missing=is_first_run_allowed)
    targets = load_targets(request.targets_file)
    new_planner = partial(make_planner, request, policy, targets=targets)
    try:
        planner = new_planner(saved)
    except DataError as error:
        raise DataError(f"{request.state_file}: {error}") from error
    source: Source | Merged
    if len(request.inputs) == 1:
        recording, source = open_recording(request.inputs[0])
    else:
        source = Merged(request.inputs)
        recording = source.recording()
    samples = Samples(with_warnings(recording, [pattern for pattern, _ in targets]), source)
    session = _Session(request, planner, samples, partial(new_planner, None))
    with blaming_state(request.state_file if saved else None):
        if samples.is_stream:
            session.follow()
        else:
            session.decide_on_recording()
    session.save_state()
    if not source.is_complete:
        raise typer.Exit(Exit.PARTIAL)


class _Session:
    """A planner, its input, and what has been read of it so far.

    The state is in the plan of a recording; that of a stream, of which no plan is known to be the
    last, is in the record that closes it.
    """

    def __init__(
        self, request: Request, planner: Planner, samples: Samples, make_new: Callable[[], Planner]
    ) -> None:
        self._request = request
        self._is_table = format_for_stdout(request.format) is RecordFormat.TABLE
        self._make_new = make_new
        self._samples = samples
        self._planner = planner
        self._account = Account()
        self._remarks = Remarks()
        self._draw: Callable[[RenderableType], None] | None = None
        self._told: Plan | None = None  # the plan before, where the next one need not say all
        self._printed = 0

    def decide_on_recording(self) -> None:
        """Print the plan for the last sample, or one for every sample."""
        gc.disable()  # collecting takes a tenth of the time, and finds nothing
        for table in with_equal_shares(self._counted_tables(), print_message):
            if not self._request.plans_every_sample:
                self._planner.add(table)
                continue
            for _ in self._planner.add_by_sample(table):
                self._print(pending=False)
        self._print(has_state=self._prints_state)

    def _counted_tables(self) -> Iterator[pa.Table]:
        for table in self._samples.tables:
            self._account.add(table)
            yield table

    def follow(self) -> None:
        """Print a plan for each sample of a stream as it arrives; tables of a live one are drawn
        over each other on a terminal."""
        if self._is_table and self._samples.is_live and sys.stdout.isatty():
            with redrawn(make_console()) as self._draw:
                self._follow()
        else:
            self._follow()

    def _follow(self) -> None:
        gc.disable()  # it takes a fifth of the time for a plan; between plans nobody waits
        for number, table in enumerate(self._counted_tables(), 1):
            self._begin_anew_if_set_back(table)
            self._planner.add(table, all_complete=True)
            self._print()
            self._planner.forget_actions()  # they are told: they must not be told again
            gc.collect(1 if number % _WHOLE_COLLECTION else 2)
        if self._account.rows == 0:
            self._print()
        if self._samples.are_closed and not self._is_table:
            state = self._planner.plan(self._account.to_json()).state if self._prints_state else {}
            sys.stdout.write(printable_on_terminal(dump_close(state)))

    @property
    def _is_single(self) -> bool:
        """Whether one plan is all that this run prints."""
        return not self._samples.is_stream and not self._request.plans_every_sample

    def _begin_anew_if_set_back(self, table: pa.Table) -> None:
        """Forget what is known where it lies in a future that is no more."""
        if hosts := self._planner.hosts.set_back(table):
            print_message(f"{listed(hosts)}: the clock was set back: dl-plan forgets what it knew")
            self._planner = self._make_new()

    def save_state(self) -> None:
        """Write the state, completely or not at all, where it was asked for."""
        if (file := self._request.saved_state_file) is not None:
            plan = self._planner.plan(self._account.to_json(), is_single=self._is_single)
            with destinations.output_file(file) as out:
                out.write(dump_plan(plan).encode())

    def _print(self, *, pending: bool = True, has_state: bool = False) -> None:
        if self._is_table:
            self._print_table(pending=pending)
        else:
            self._print_plan(pending=pending, has_state=has_state)
        account = self._account.to_json()
        if self._request.is_verbose:
            print_message(f"{account['rows']} rows up to {account['to'] or 'nothing'}")
        if self._samples.is_live:
            self.save_state()  # the process may be killed before the stream ends

    def _print_plan(self, *, pending: bool, has_state: bool) -> None:
        plan = self._planner.plan(
            self._account.to_json(), pending=pending, state=has_state, is_single=self._is_single
        )
        plan = dataclasses.replace(plan, is_live=self._samples.is_live)
        with unbroken():
            sys.stdout.write(printable_on_terminal(dump_plan(plan, self._told)))
            sys.stdout.flush()
        self._printed += 1
        self._told = plan if plan.is_live and self._printed % _WHOLE_EACH else None
        self._remark(plan.nothing)

    @property
    def _prints_state(self) -> bool:
        """Whether the state is printed after all, and not written into a file."""
        return self._request.saved_state_file is None and not sys.stdout.isatty()

    def _print_table(self, *, pending: bool) -> None:
        from dltools.cli.plan.tables import decisions_table

        console = make_console()
        explanation = self._planner.explain(pending=pending, is_single=self._is_single)
        wide = console.width >= _WIDE
        table = decisions_table(explanation.decisions, wide=wide)
        if self._draw is not None:
            from rich.console import Group

            self._draw(Group(*explanation.lines, table))
        else:
            console.print(table)
            for line in explanation.lines:
                console.print(line, soft_wrap=False)
        self._remark(explanation.nothing)

    def _remark(self, nothing: str) -> None:
        """Say why there is nothing to do, unless the reader of the plan does."""
        if self._is_table or is_last_in_pipe():
            self._remarks.tell(nothing and f"nothing to do: {nothing}")


def load_policy(name: str) -> Policy:
    """Return a policy by name. Raises `ConfigError`."""
    policy = registry.get(name, allowed_plugins())
    warn_of_broken_plugins()
    return policy


def load_targets(file: Path | None) -> GivenLabels:
    """Return what a targets file says. Raises `ConfigError`."""
    return [] if file is None else read_targets_file(bounded_reading.read_text(file), str(file))


def make_planner(
    request: Request, policy: Policy, saved: Mapping[str, Any] | None, targets: GivenLabels
) -> Planner:
    """Return a planner with the request's parameters, which continues from a saved state. Raises
    `ConfigError` and `DataError`."""
    of_policy, of_queue = assign(policy, parse_assignments(request.assignments))
    parameters = build(policy.parameters, of_policy)
    realisation = realisation_options(request.mode, request.quantum_s, of_queue)
    rules = Rules(tuple(map(parse_rule, request.roles)), request.is_only_labelled)
    return Planner(policy, parameters, realisation, saved, targets, rules)


def load_state(file: Path | None, *, may_be_missing: bool) -> Mapping[str, Any] | None:
    """Return the state of a file's last plan, or of the close after it; None without a file. Raises
    `DataError`."""
    if file is None:
        return None
    states: deque[Mapping[str, Any]] = deque([{}], maxlen=1)

    def close(state: Mapping[str, Any]) -> None:
        states.extend([state] if state else [])

    try:
        with file.open("rb") as stream:
            lines = bounded_reading.read_lines(stream, str(file))
            for plan in load_plans(lines, str(file), print_message, close):
                states.append(plan.state)
    except FileNotFoundError:
        if may_be_missing:
            return None
        raise DataError(f"{file}: no such file") from None
    if not states[0]:
        raise DataError(f"{file}: its last plan has no state: write one with --save-state")
    return states[0]


@contextmanager
def blaming_state(file: Path | None) -> Iterator[None]:
    """Report errors as a damaged state where one was read from a file: a state is checked only when
    it is used. Raises `DataError`."""
    try:
        yield
    except (TypeError, ValueError, KeyError, AttributeError, IndexError, OverflowError) as error:
        if file is None or isinstance(error, OSError):
            raise
        raise DataError(
            f"{file}: damaged state: {type(error).__name__}: {error}; start again without it"
        ) from error
