"""dl-apply --status: what dl-apply has changed and not yet restored."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from dltools.apply.changed_containers import (
    ChangedContainer,
    changed_containers,
    open_migrations,
    paused_elsewhere,
)
from dltools.apply.locks import writer_of
from dltools.apply.original_settings import timestamp
from dltools.apply.refusals import FOREIGN, PAUSED_ELSEWHERE
from dltools.cli.apply.printing import left_paused_message, nothing_to_undo, write_records
from dltools.cli.apply.session import connect
from dltools.cli.destinations import make_console
from dltools.cli.exits import Exit, print_message
from dltools.engine.journal import Journal
from dltools.engine.left_alone_records import read_left_alone
from dltools.engine.state_folder import check, state_directories
from dltools.errors import DltoolsError
from dltools.notation.limits import written
from dltools.text import listed, printable

if TYPE_CHECKING:
    from dltools.apply.migrate.migration import Migration
    from dltools.cli.apply.request import Request
    from dltools.engine.interface import Engine


def show_status(request: Request) -> None:
    """Print every changed container and every job on the move, and what else people should know.
    Raises `Exit` where an engine of several does not answer, once the others are told of."""
    directories, addresses = state_directories(request.state_directory), request.addresses()
    check(directories[0])
    migrates = _show_migrations(directories, is_table=request.shows_table)
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
        _show_changed(engine, directories, is_table=request.shows_table, is_more=migrates)
    if faults:
        raise typer.Exit(Exit.UNAVAILABLE if len(faults) == len(addresses) else Exit.PARTIAL)


def _show_migrations(directories: Sequence[Path], *, is_table: bool) -> bool:
    """Print the jobs that are on their way to another host, and tell whether there are any."""
    migrations = open_migrations(directories)
    if migrations and is_table:
        from dltools.cli.apply.tables import migrations_table

        make_console().print(migrations_table(migrations))
    elif migrations:
        write_records(map(_migration_record, migrations))
    return bool(migrations)


def _show_changed(
    engine: Engine, directories: Sequence[Path], *, is_table: bool, is_more: bool
) -> None:
    """Print the changed containers of an engine: a table, or a JSON line each. If there are none,
    say so, unless there is more to undo. Raises `DataError` where an entry of the first state
    directory is damaged, once the others are printed."""
    containers = changed_containers(engine, directories)
    if containers and is_table:
        _print_changed(containers, directories)
    else:
        write_records(map(_record, containers))
    Journal(directories[0] / "journal").all()
    if not containers and not is_more:
        print_message(nothing_to_undo(engine, directories))
    _tell_of_others(engine, directories, containers)


def _print_changed(containers: Sequence[ChangedContainer], directories: Sequence[Path]) -> None:
    """Print a table, the commands of its runs, and how to undo."""
    from dltools.cli.apply.tables import changed_table, how_it_is

    console = make_console()
    console.print(changed_table(containers, timestamp()))
    for run in dict.fromkeys(container.run for container in containers if container.run.command):
        line = f"pid {run.pid}{how_it_is(run)}: {printable(run.command)}"
        console.print(line, soft_wrap=True)
    for directory in dict.fromkeys(container.state_directory for container in containers):
        own = [container for container in containers if container.state_directory == directory]
        console.print(_how_to_undo(own, is_first=directory == directories[0]), soft_wrap=True)


def _tell_of_others(
    engine: Engine, directories: Sequence[Path], containers: Sequence[ChangedContainer]
) -> None:
    """Say which containers are left alone, left paused, changed or paused by somebody else."""
    left_alone = read_left_alone(directories, engine)
    for left in left_alone.values():
        print_message(f"{left.container_name}: {left.why}")
    if message := left_paused_message(engine, directories):
        print_message(message)
    if foreign := [
        container.name
        for container in containers
        if container.is_foreign and container.container_id not in left_alone
    ]:
        print_message(f"{listed(foreign)}: {FOREIGN}")
    if containers and (message := _paused_elsewhere_message(engine, directories, containers)):
        print_message(message)


def _how_to_undo(containers: Sequence[ChangedContainer], *, is_first: bool) -> str:
    """Say how to restore the changed containers of a state directory."""
    directory = containers[0].state_directory
    if all(container.current is None or container.is_foreign for container in containers):
        return f"state in {directory}: nothing for dl-apply --undo to restore"
    option = "" if is_first else f" --state-dir {directory}"
    alive = next((container.run.pid for container in containers if container.run.is_alive), None)
    stop, ends = ("", "") if alive is None else (" --stop", f"ends process {alive} and ")
    undo = f"dl-apply --undo{stop}{option}"
    return f"state in {directory}; {undo} {ends}restores the original settings"


def _paused_elsewhere_message(
    engine: Engine, directories: Sequence[Path], containers: Sequence[ChangedContainer]
) -> str:
    """Say which containers somebody else has paused, and which other dl-apply writes here, "" if
    there are none."""
    names = paused_elsewhere(engine, directories)
    if not names:
        return ""
    line = f"{listed(names)}: {PAUSED_ELSEWHERE}"
    writer = writer_of(engine)
    if writer is None or writer.pid in {container.run.pid for container in containers}:
        return line
    return f"{line} of this state directory; also writes there: {writer}"


def _migration_record(migration: Migration) -> Mapping[str, Any]:
    return {
        "kind": "migration",
        "container": {"id": migration.container_id, "name": migration.container_name},
        "from": migration.source,
        "to": migration.target,
        "step": migration.step,
        "where": migration.whereabouts,
        "why": migration.why or None,
        "since": migration.since,
    }


def _record(container: ChangedContainer) -> Mapping[str, Any]:
    run = container.run
    return {
        "kind": "held",
        "container": {"id": container.container_id, "name": container.name},
        "found": written(container.original),
        "now": None if container.current is None else written(container.current),
        "since": container.since or None,
        "until": container.until or None,
        "foreign": container.is_foreign,
        "run": {
            "pid": run.pid,
            "alive": run.is_alive,
            "stopped": run.is_stopped,
            "policy": run.policy,
            "command": run.command,
        },
        "state_dir": str(container.state_directory),
    }
