"""dl-apply: act on containers, verify, undo."""

from __future__ import annotations

import signal
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, nullcontext
from enum import StrEnum
from functools import partial
from typing import TYPE_CHECKING, Annotated

import typer

from dltools.cli import options
from dltools.cli.exits import Exit, complain, guarded, run
from dltools.cli.options import Input, Verbose, Version

if TYPE_CHECKING:
    from dltools.apply.docker import Actuator, Tell
    from dltools.plans import Plan, Result


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
    plans = _plans(input_, context)
    if offline:
        from dltools.apply.docker import offline as as_planned

        for plan in plans:
            printer.show(partial(as_planned, plan))
        return
    with _actuator(dry_run) as actuator:
        if restore:
            failed, last = _run_and_restore(actuator, plans, printer, verbose)
        else:
            failed, last = _run(actuator, plans, printer, verbose)
    _finish([*failed, *last])


def _plans(input_: str, context: typer.Context) -> Iterator[Plan]:
    from dltools.plans import load_plans

    stream, name = options.open_input(input_, context)
    return load_plans(stream, name)


@contextmanager
def _actuator(dry_run: bool) -> Iterator[Actuator]:
    """Connect, and keep every other dl-apply that would write away until the block ends."""
    from dltools.apply.docker import Actuator
    from dltools.apply.journal import Journal
    from dltools.files import locked, state_directory
    from dltools.probe.engine import Engine

    home = state_directory()
    with nullcontext() if dry_run else locked(home / "apply.lock", "dl-apply"):
        yield Actuator(Engine(), Journal(home / "journal"), dry_run=dry_run)


def _run(
    actuator: Actuator, plans: Iterator[Plan], printer: _Printer, verbose: bool
) -> tuple[list[Result], list[Result]]:
    """Apply plans as they arrive; return all failures, and the last plan's results."""
    failed: list[Result] = []
    last: list[Result] = []
    for plan in plans:
        last = printer.show(partial(actuator.apply, plan))
        failed += [result for result in last if result.status == "failed"]
        if verbose:
            complain(f"{plan.policy} at {plan.at}: {len(last)} actions")
    return failed, last


def _run_and_restore(
    actuator: Actuator, plans: Iterator[Plan], printer: _Printer, verbose: bool
) -> tuple[list[Result], list[Result]]:
    """Apply plans, then put back what this run changed, whatever ended it."""
    signals = _FirstSignal()
    try:
        try:
            return _run(actuator, plans, printer, verbose)
        finally:
            signals.ignore()
    finally:  # a signal that came between the two lines above has been spent by now
        signals.ignore()
        printer.show(partial(actuator.undo, actuator.touched))


class _FirstSignal:
    """Lets the first SIGTERM or SIGINT end the run; more do not cut short what follows."""

    def __init__(self) -> None:
        self._armed = True
        for number in (signal.SIGTERM, signal.SIGINT):
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
                sys.stdout.write(dump_result(result))
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
