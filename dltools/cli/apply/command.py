"""dl-apply: act on containers, verify, undo."""

from __future__ import annotations

import math
import os
import select
import signal
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from enum import StrEnum
from functools import partial
from typing import TYPE_CHECKING, Annotated, BinaryIO

import typer

from dltools.cli import options
from dltools.cli.apply.context import ApplyContext
from dltools.cli.console import make_console
from dltools.cli.data import for_screen
from dltools.cli.exits import Exit, complain, guarded, run
from dltools.cli.input_streams import open_input
from dltools.cli.options import Input, Patience, StateDir, Verbose, Version
from dltools.inputs import InputLines, read_lines

if TYPE_CHECKING:
    from dltools.apply.actuator import Actuator, OnResult
    from dltools.plan.records import Result


class Output(StrEnum):
    """What --format may be."""

    AUTO = "auto"
    TABLE = "table"
    JSONL = "jsonl"


@guarded
def apply(
    context: typer.Context,
    input_: Input = "-",
    dry_run: Annotated[
        bool, typer.Option("-n", "--dry-run", help="Do everything but write.")
    ] = False,
    offline: Annotated[
        bool,
        typer.Option(
            "--offline",
            help="With --dry-run: ask no engine, take the plan's word for how the containers are.",
        ),
    ] = False,
    undo: Annotated[
        bool,
        typer.Option("--undo", help="Put every container back as it was found, and exit."),
    ] = False,
    status: Annotated[
        bool,
        typer.Option(
            "--status",
            help="Print what is held: who was changed, since when and by which run, and exit.",
        ),
    ] = False,
    restore: Annotated[
        bool,
        typer.Option(
            "--restore",
            help="When the input ends, or on SIGTERM or Ctrl-C, put back what this run changed.",
        ),
    ] = False,
    hold: Annotated[
        float | None,
        typer.Option(
            parser=options.duration,
            metavar="TIME",
            help="How long to go on taking turns when the input has ended; by default until "
            "nobody waits any more.",
        ),
    ] = None,
    patience: Patience = "60",  # type: ignore[assignment]
    state_dir: StateDir = None,
    format_: Annotated[
        Output,
        typer.Option(
            "--format",
            help="auto: a table on a terminal, else JSON Lines.",
        ),
    ] = Output.AUTO,
    verbose: Verbose = False,
    version: Version = False,  # noqa: ARG001
) -> None:
    """Apply the plans that dl-plan prints to the containers of a Docker host.

    Each action is checked against what the container is now, journalled, made, and read back; a
    result per action is printed as a JSON line. What is as wanted already is left alone.
    """  # fmt: skip
    if offline and not dry_run:
        raise typer.BadParameter("--offline needs --dry-run")
    if undo and input_ != "-":
        raise typer.BadParameter(f"{input_}: --undo takes no plan")
    if undo + restore + status > 1:
        raise typer.BadParameter("--undo, --restore and --status exclude each other")
    context_ = ApplyContext(state_dir, patience)
    printer = _Printer(format_)
    if status:
        from dltools.cli.apply.status import show_status

        show_status(context_.connect(), context_.state_directories(), table=printer.as_table)
        return
    if undo:
        with context_.actuator(dry_run) as actuator:
            results = printer.show(partial(actuator.undo, None))
            if not results and not context_.has_unpaused:
                from dltools.cli.apply.status import nothing_to_undo

                complain(nothing_to_undo(actuator.engine, context_.state_directories()))
            _finish(results)
        return
    stream, name = open_input(input_, context)
    if offline:
        from dltools.apply.actuator import check_offline
        from dltools.plan.reading import load_plans

        planned: list[Result] = []
        for plan in load_plans(read_lines(stream, name), name, complain):
            planned += printer.show(partial(check_offline, plan))
        _finish(planned)
        return
    with context_.actuator(dry_run) as actuator:
        run = _Run(actuator, printer, hold, restore=restore, verbose=verbose)
        run.follow(stream, name)
    _finish([*run.failed, *run.last])


class _Run:
    """Applies plans as they arrive, and changes turns in between.

    `failed` are all failures, `last` the last plan's results.
    """

    def __init__(
        self,
        actuator: Actuator,
        printer: _Printer,
        hold: float | None,
        *,
        restore: bool,
        verbose: bool,
    ) -> None:
        self._actuator = actuator
        self._printer = printer
        self._hold = hold
        self._restore = restore
        self._verbose = verbose
        self.failed: list[Result] = []
        self.last: list[Result] = []

    def follow(self, stream: BinaryIO, name: str) -> None:
        """Apply a stream of plans to its end; then nobody is paused, whatever ended it, and with
        --restore everything is as it was."""
        signals = _FirstSignal()
        try:
            try:
                self._apply(stream, name)
                self._hold_on()
            finally:
                signals.ignore()
        finally:  # a signal that came between the two lines above has been spent by now
            signals.ignore()
            try:
                self._actuator.rotation.end()
            finally:
                if self._restore:
                    self._put_back()

    def _put_back(self) -> None:
        """Put back what this run changed. An error that is on its way already says more."""
        from dltools.errors import DltoolsError

        on_its_way = isinstance(sys.exc_info()[1], DltoolsError)
        try:
            self._printer.show(partial(self._actuator.undo, self._actuator.changed))
        except DltoolsError as error:
            if not on_its_way:
                raise type(error)(
                    f"{error} What was changed stays so until dl-apply --undo"
                ) from error

    def _apply(self, stream: BinaryIO, name: str) -> None:
        from dltools.plan.reading import load_plans

        for plan in load_plans(self._lines(stream, name), name, complain):
            self.last = self._printer.show(partial(self._actuator.apply, plan))
            self.failed += [result for result in self.last if result.status == "failed"]
            if self._verbose:
                complain(f"{plan.policy} at {plan.at}: {len(self.last)} actions")

    def _lines(self, stream: BinaryIO, name: str) -> Iterator[bytes]:
        """Yield lines as they come; while none comes, keep the turns going."""
        found = InputLines(name)
        while True:
            self._actuator.rotation.advance()
            if not select.select([stream], [], [], self._actuator.rotation.seconds_until_due())[0]:
                continue
            data = os.read(stream.fileno(), 1 << 16)
            yield from found.feed(data)
            if not data:
                yield from found.end()
                return

    def _hold_on(self) -> None:
        """Keep the turns going after the last plan: until nobody waits, or the time is up."""
        until = None if self._hold is None else time.monotonic() + self._hold
        while self._actuator.rotation.has_turns:
            wait = self._actuator.rotation.seconds_until_due() or 0.0
            left = math.inf if until is None else until - time.monotonic()
            if left <= 0:
                return
            time.sleep(min(wait, left))
            self._actuator.rotation.advance()


class _FirstSignal:
    """Lets the first SIGTERM, SIGINT or SIGHUP end the run; more do not cut short what follows."""

    def __init__(self) -> None:
        self._armed = True
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(number, self._handle)

    def ignore(self) -> None:
        self._armed = False

    def _handle(self, number: int, _frame: object) -> None:
        if not self._armed:
            return
        self._armed = False
        if number == signal.SIGINT:
            raise KeyboardInterrupt
        raise SystemExit(Exit.TERMINATED)


def _finish(results: Iterable[Result]) -> None:
    """Leave with 1 where an action failed, 75 where the last plan was stale."""
    statuses = {result.status.value for result in results}
    if "failed" in statuses:
        raise typer.Exit(Exit.PARTIAL)
    if "stale" in statuses:
        raise typer.Exit(Exit.RETRY)


class _Printer:
    """Prints results as they come."""

    def __init__(self, format_: Output) -> None:
        auto = Output.TABLE if sys.stdout.isatty() else Output.JSONL
        self._format = auto if format_ is Output.AUTO else format_
        self.as_table = self._format is Output.TABLE

    def show(self, work: Callable[[OnResult], object]) -> list[Result]:
        """Do a piece of work and print each result as it tells of it; a table at its end."""
        shown: list[Result] = []

        def tell(result: Result) -> None:
            from dltools.plan.writing import dump_result

            shown.append(result)
            if self._format is Output.JSONL:
                sys.stdout.write(for_screen(dump_result(result)))
                sys.stdout.flush()

        try:
            work(tell)
        finally:
            if shown and self._format is Output.TABLE:
                from dltools.cli.apply.tables import results_table

                make_console().print(results_table(shown))
        return shown


app = options.app(apply)


def main() -> None:
    """Run dl-apply."""
    run(app)
