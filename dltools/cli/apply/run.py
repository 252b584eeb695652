"""Doing what a dl-apply command line asks for."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING

import typer

from dltools.actions.plan_lines import load_plans
from dltools.actions.plans import Result
from dltools.apply.history import BY_UNDO
from dltools.apply.leases import Lease
from dltools.apply.refusals import check_offline
from dltools.bounded_reading import read_lines
from dltools.cli.apply.plan_stream import LeaseKeeper, PlanStream
from dltools.cli.apply.printing import (
    ResultsPrinter,
    nothing_to_undo,
    show_history,
    show_migrations,
    show_status,
)
from dltools.cli.apply.release import release
from dltools.cli.apply.request import Operation
from dltools.cli.apply.session import connect, open_session
from dltools.cli.exits import Exit, print_message
from dltools.cli.formats import RecordFormat, format_for_stdout
from dltools.cli.input_streams import open_input
from dltools.engine.state_folder import state_directories
from dltools.errors import DltoolsError

if TYPE_CHECKING:
    from pathlib import Path

    from dltools.cli.apply.request import Request


def run_request(request: Request) -> None:
    """Do what was asked for; exit with 1 if an action failed, 75 if the last plan was stale."""
    directories = state_directories(request.state_directory)
    is_table = request.format is not RecordFormat.JSONL
    operation = request.operation
    if operation is Operation.SHOW_STATUS:
        _show_status(request, directories, is_table=is_table)
        return
    if operation is Operation.SHOW_HISTORY:
        name = "" if request.input == "-" else request.input
        named_now = _named_now(request, directories, name) if name else ()
        show_history(directories, name, named_now, is_table=is_table)
        return
    printer = ResultsPrinter(format_for_stdout(request.format))
    if operation is Operation.RELEASE:
        results = release(request, directories, printer)
    elif operation is Operation.UNDO:
        results = _undo(request, directories, printer)
    elif request.is_offline:
        results = _check_offline(request, printer)
    else:
        results = _apply(request, printer)
    _exit_with(results)


def _named_now(request: Request, directories: Sequence[Path], name: str) -> set[str]:
    """Return the ids of the containers that have a name now, on the engines that answer."""
    ids = set[str]()
    for address in request.addresses():
        with suppress(DltoolsError):
            ids.add(connect(address, directories, request.patience_s).inspect(name).id)
    return ids


def _show_status(request: Request, directories: Sequence[Path], *, is_table: bool) -> None:
    migrates = show_migrations(directories, is_table=is_table)
    addresses = request.addresses()
    faults = []
    for address in addresses:
        try:
            engine = connect(address, directories, request.patience_s)
        except DltoolsError as error:
            if len(addresses) == 1:
                raise
            faults.append(error)
            print_message(str(error))
            continue
        show_status(engine, directories, is_table=is_table, is_more=migrates)
    if faults:
        raise typer.Exit(Exit.UNAVAILABLE if len(faults) == len(addresses) else Exit.PARTIAL)


def _undo(request: Request, directories: Sequence[Path], printer: ResultsPrinter) -> list[Result]:
    with open_session(request, is_undo=True) as session:
        actuator = session.actuator
        results = printer.show(actuator.migrator.undo) if actuator.migrator else []
        undo = session.history.of_undo(partial(actuator.undo, None), BY_UNDO)
        results += printer.show(undo)
        is_told = request.removes_service or session.has_unpaused
        if not results and not is_told:
            for engine in actuator.engines:
                print_message(nothing_to_undo(engine, directories))
        for fault in actuator.unreachable:
            print_message(f"not undone: {fault}")
        if actuator.unreachable:
            raise typer.Exit(Exit.PARTIAL)
    return results


def _check_offline(request: Request, printer: ResultsPrinter) -> list[Result]:
    stream, name = open_input(request.input)
    results: list[Result] = []
    for plan in load_plans(read_lines(stream, name), name, print_message):
        results += printer.show(partial(check_offline, plan))
    return results


def _apply(request: Request, printer: ResultsPrinter) -> list[Result]:
    """Return the results of the last plan, and all that failed."""
    stream, name = open_input(request.input)
    with open_session(request) as session:
        asked = Lease(request.lease_s)
        lease = Lease(0.0) if request.is_dry_run else asked
        leases = LeaseKeeper(session.actuator, lease, session.guard, asked)
        plans = PlanStream(session, printer, leases, request)
        plans.apply_all(stream, name)
    return [*plans.failed, *plans.last]


def _exit_with(results: Iterable[Result]) -> None:
    statuses = {result.status.value for result in results}
    if "failed" in statuses:
        raise typer.Exit(Exit.PARTIAL)
    if "stale" in statuses:
        raise typer.Exit(Exit.RETRY)
