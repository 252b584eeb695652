"""Doing what a dl-apply command line asks for."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
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
from dltools.cli.apply.printing import ResultsPrinter, nothing_to_undo
from dltools.cli.apply.release import release
from dltools.cli.apply.request import Operation
from dltools.cli.apply.session import open_session
from dltools.cli.apply.show_history import show_history
from dltools.cli.apply.show_status import show_status
from dltools.cli.exits import Exit, print_message
from dltools.cli.input_streams import open_input

if TYPE_CHECKING:
    from dltools.cli.apply.request import Request


def run_request(request: Request) -> None:
    """Do what was asked for; exit with 1 if an action failed, 75 if the last plan was stale."""
    statuses = {result.status.value for result in _RUN[request.operation](request) or ()}
    if "failed" in statuses:
        raise typer.Exit(Exit.PARTIAL)
    if "stale" in statuses:
        raise typer.Exit(Exit.RETRY)


def _undo(request: Request) -> list[Result]:
    printer = ResultsPrinter(request.format)
    with open_session(request, is_undo=True) as session:
        actuator = session.actuator
        results = printer.show(actuator.migrator.undo) if actuator.migrator else []
        undo = session.history.of_undo(partial(actuator.undo, None), BY_UNDO)
        results += printer.show(undo)
        is_told = request.removes_service or session.has_unpaused
        if not results and not is_told:
            for engine in actuator.engines:
                print_message(nothing_to_undo(engine, session.directories))
        for fault in actuator.unreachable:
            print_message(f"not undone: {fault}")
        if actuator.unreachable:
            raise typer.Exit(Exit.PARTIAL)
    return results


def _check_offline(request: Request) -> list[Result]:
    printer = ResultsPrinter(request.format)
    stream, name = open_input(request.input)
    results: list[Result] = []
    for plan in load_plans(read_lines(stream, name), name, print_message):
        results += printer.show(partial(check_offline, plan))
    return results


def _apply(request: Request) -> list[Result]:
    """Return the results of the last plan, and all that failed."""
    printer = ResultsPrinter(request.format)
    stream, name = open_input(request.input)
    with open_session(request) as session:
        asked = Lease(request.lease_s)
        lease = Lease(0.0) if request.is_dry_run else asked
        leases = LeaseKeeper(session.actuator, lease, session.guard, asked)
        plans = PlanStream(session, printer, leases, request)
        plans.apply_all(stream, name)
    return [*plans.failed, *plans.last]


_RUN: Mapping[Operation, Callable[[Request], Iterable[Result] | None]] = {
    Operation.APPLY: _apply,
    Operation.CHECK_OFFLINE: _check_offline,
    Operation.UNDO: _undo,
    Operation.RELEASE: release,
    Operation.SHOW_STATUS: show_status,
    Operation.SHOW_HISTORY: show_history,
}
