"""dl-apply: act on containers, verify, undo."""

from __future__ import annotations

import math
import os
import select
import signal
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, nullcontext
from enum import StrEnum
from functools import partial
from typing import TYPE_CHECKING, Annotated, BinaryIO

import typer

from dltools.cli import options
from dltools.cli.data import for_screen
from dltools.cli.exits import Exit, complain, guarded, run
from dltools.cli.options import Input, Verbose, Version

if TYPE_CHECKING:
    from dltools.apply.docker import Actuator, Tell
    from dltools.plans import Result


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
            parser=options.seconds,
            metavar="TIME",
            help="How long to go on taking turns when the input has ended; by default until "
            "nobody waits any more.",
        ),
    ] = None,
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
    if undo and restore:
        raise typer.BadParameter("--undo and --restore exclude each other")
    printer = _Printer(format_)
    if undo:
        with _actuator(dry_run) as actuator:
            _finish(printer.show(lambda tell: actuator.undo(tell=tell)))
        return
    stream, name = options.open_input(input_, context)
    if offline:
        from dltools.apply.docker import offline as as_planned
        from dltools.plans import load_plans

        for plan in load_plans(stream, name):
            printer.show(partial(as_planned, plan))
        return
    with _actuator(dry_run) as actuator:
        run = _Run(actuator, printer, hold, restore=restore, verbose=verbose)
        run.follow(stream, name)
    _finish([*run.failed, *run.last])


@contextmanager
def _actuator(dry_run: bool) -> Iterator[Actuator]:
    """Connect, and keep every other dl-apply that would write away until the block ends.

    Whom an earlier run has left paused is let run first.
    """
    from dltools.apply.docker import Actuator
    from dltools.apply.journal import Journal
    from dltools.apply.rotation import Rotation
    from dltools.files import locked, state_directory
    from dltools.probe.engine import Engine

    home = state_directory()
    with nullcontext() if dry_run else locked(home / "apply.lock", "dl-apply"):
        engine = Engine()
        rotation = Rotation(engine, home / "rotation")
        if not dry_run:
            for name in rotation.mend():
                complain(f"{name}: left paused by a run that was killed; it runs again")
        yield Actuator(engine, Journal(home / "journal"), rotation, dry_run=dry_run)


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
            self._actuator.rotation.release()
            if self._restore:
                self._printer.show(partial(self._actuator.undo, self._actuator.touched))

    def _apply(self, stream: BinaryIO, name: str) -> None:
        from dltools.plans import load_plans

        for plan in load_plans(self._lines(stream), name):
            self.last = self._printer.show(partial(self._actuator.apply, plan))
            self.failed += [result for result in self.last if result.status == "failed"]
            if self._verbose:
                complain(f"{plan.policy} at {plan.at}: {len(self.last)} actions")

    def _lines(self, stream: BinaryIO) -> Iterator[bytes]:
        """Yield lines as they come; while none comes, keep the turns going."""
        begun = b""
        while True:
            self._actuator.rotation.tick()
            if not select.select([stream], [], [], self._actuator.rotation.wait_s())[0]:
                continue
            data = os.read(stream.fileno(), 1 << 16)
            *lines, begun = (begun + data).split(b"\n")
            yield from lines
            if not data:
                if begun:
                    yield begun
                return

    def _hold_on(self) -> None:
        """Keep the turns going after the last plan: until nobody waits, or the time is up."""
        until = None if self._hold is None else time.monotonic() + self._hold
        while (wait := self._actuator.rotation.wait_s()) is not None:
            left = math.inf if until is None else until - time.monotonic()
            if left <= 0:
                return
            time.sleep(min(wait, left))
            self._actuator.rotation.tick()


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

    def show(self, work: Callable[[Tell], object]) -> list[Result]:
        """Do a piece of work and print each result as it tells of it; a table at its end."""
        shown: list[Result] = []

        def tell(result: Result) -> None:
            from dltools.plans import dump_result

            shown.append(result)
            if self._format is Output.JSONL:
                sys.stdout.write(for_screen(dump_result(result)))
                sys.stdout.flush()

        try:
            work(tell)
        finally:
            if shown and self._format is Output.TABLE:
                from dltools.cli.tables import results_table

                options.console().print(results_table(shown))
        return shown


app = options.app(apply)


def main() -> None:
    """Run dl-apply."""
    run(app)
