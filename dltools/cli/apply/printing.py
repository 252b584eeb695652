"""What dl-apply prints: results as they come, and what it has changed and not yet restored."""

from __future__ import annotations

import heapq
import itertools
import json
import os
import sys
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dltools.actions.plan_lines import dump_result
from dltools.actions.plans import Result
from dltools.apply.changed_containers import (
    ChangedContainer,
    changed_containers,
    journal_entries,
    open_migrations,
    paused_elsewhere,
)
from dltools.apply.history import Change, read_history
from dltools.apply.locks import writer_of
from dltools.apply.original_settings import timestamp
from dltools.apply.refusals import FOREIGN, PAUSED_ELSEWHERE
from dltools.cli.destinations import make_console, printable_on_terminal
from dltools.cli.exits import print_message
from dltools.cli.formats import RecordFormat
from dltools.cli.remarks import as_root
from dltools.engine import state_folder, turn_notes
from dltools.engine.journal import Journal
from dltools.engine.left_alone_records import read_left_alone
from dltools.engine.state_folder import check
from dltools.errors import AccessError
from dltools.notation.limits import written
from dltools.notation.times import format_time
from dltools.text import listed, printable

if TYPE_CHECKING:
    from dltools.apply.engine_actuator import OnResult
    from dltools.apply.migrate.migration import Migration
    from dltools.engine.interface import Engine


class ResultsPrinter:
    """Prints each result as a JSON line, or all results of a plan as a table; those of a stream of
    plans as one table, which goes on."""

    def __init__(self, format_: RecordFormat) -> None:
        """`format_` is table or jsonl."""
        self._is_table = format_ is RecordFormat.TABLE
        self._is_stream = self._has_begun = False

    def go_on(self) -> None:
        """Print what comes from now on as one table."""
        self._is_stream = True

    def show(
        self, work: Callable[[OnResult], object], reasons: Mapping[int, str] | None = None
    ) -> list[Result]:
        """Do work that reports results, print these, and return them. A table gives the `reasons`,
        by the results' ids; that of a stream shows what changes or fails alone."""
        shown: list[Result] = []

        def on_result(result: Result) -> None:
            shown.append(result)
            if not self._is_table:
                sys.stdout.write(printable_on_terminal(dump_result(result)))
                sys.stdout.flush()

        try:
            work(on_result)
        finally:
            if shown and self._is_table:
                self._show_table(shown, reasons or {})
        return shown

    def _show_table(self, results: Sequence[Result], reasons: Mapping[int, str]) -> None:
        from dltools.cli.apply.tables import results_table

        if not self._is_stream:
            make_console().print(results_table(results, reasons))
        elif told := [result for result in results if result.status != "unchanged" or result.error]:
            now = format_time(datetime.now(UTC))[11:19]  # as in --status
            table = results_table(told, reasons, now, has_header=not self._has_begun)
            make_console().print(table)
            self._has_begun = True


def show_migrations(directories: Sequence[Path], *, is_table: bool) -> bool:
    """Print the jobs that are on their way to another host, and tell whether there are any."""
    check(directories[0])
    migrations = open_migrations(directories)
    if migrations and is_table:
        from dltools.cli.apply.tables import migrations_table

        make_console().print(migrations_table(migrations))
    elif migrations:
        _write_records(map(_migration_record, migrations))
    return bool(migrations)


def _write_records(records: Iterable[Mapping[str, Any]]) -> None:
    sys.stdout.write("".join(json.dumps(record) + "\n" for record in records))


def show_status(
    engine: Engine, directories: Sequence[Path], *, is_table: bool, is_more: bool
) -> None:
    """Print the changed containers of an engine: a table, or a JSON line each. If there are none,
    say so, unless there is more to undo. The first of the state directories must be one that can
    be trusted. Raises `DataError` where an entry there is damaged, once the others are printed."""
    check(directories[0])
    containers = changed_containers(engine, directories)
    if containers and is_table:
        _print_changed(containers, directories)
    else:
        _write_records(map(_record, containers))
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


_ROWS = 200
"""Changes in a table: one that scrolls has its headers again."""

_SHORTEST_ID = 4
"""Fewest digits by which a container is known."""


def show_history(
    directories: Sequence[Path], name: str, named_now: Collection[str], *, is_table: bool
) -> None:
    """Print the changes in state directories, or those of the containers that have, or had when
    they were changed, a name or an id, the newest first: tables, or a JSON line each. `named_now`:
    ids of those that have the name now. Changes by other users are left out. Raises `AccessError`
    where the first directory cannot be trusted."""
    check(directories[0])
    changes = _changes(directories)
    if name:
        ids = {change.container_id for change in changes if _is_of(change, name)}.union(named_now)
        changes = (change for change in _changes(directories) if change.container_id in ids)
    is_empty = True
    while part := list(itertools.islice(changes, _ROWS)):
        is_empty = False
        if is_table:
            from dltools.cli.apply.tables import history_table

            make_console().print(history_table(part, timestamp()[:10]))
        else:
            _write_records(map(_change_record, part))
    if is_empty:
        of = f" of {name}" if name else ""
        print_message(f"no change{of} is recorded in {directories[0] / 'history'}")


def _changes(directories: Iterable[Path]) -> Iterator[Change]:
    logs = [_trusted(read_history(directory)) for directory in directories]
    return heapq.merge(*logs, key=lambda change: change.at, reverse=True)


def _trusted(changes: Iterator[Change]) -> Iterator[Change]:
    with suppress(AccessError):
        yield from changes


def _is_of(change: Change, name: str) -> bool:
    is_id = len(name) >= _SHORTEST_ID and change.container_id.startswith(name)
    return change.container_name == name or is_id


def _change_record(change: Change) -> Mapping[str, Any]:
    run = change.run
    return {
        "kind": "change",
        "at": change.at,
        "container": {"id": change.container_id, "name": change.container_name},
        "host": change.host,
        "before": written(change.before),
        "after": written(change.after),
        "reason": change.reason,
        "run": {"pid": run.pid, "policy": run.policy, "command": run.command},
        "ended": change.ended or None,
        "how": change.how or None,
    }


def _how_to_undo(containers: Sequence[ChangedContainer], *, is_first: bool) -> str:
    """Say how to restore the changed containers of a state directory."""
    directory = containers[0].state_directory
    if not any(
        container.current is not None and not container.is_foreign for container in containers
    ):
        return f"state in {directory}: nothing for dl-apply --undo to restore"
    option = "" if is_first else f" --state-dir {directory}"
    alive = next((container.run.pid for container in containers if container.run.is_alive), None)
    if alive is None:
        return f"state in {directory}; dl-apply --undo{option} restores the original settings"
    return (
        f"state in {directory}; dl-apply --undo --stop{option} ends process {alive} and restores "
        "the original settings"
    )


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


def left_paused_message(engine: Engine, directories: Sequence[Path]) -> str:
    """Say which containers an earlier run has left paused, "" if there are none."""
    noted = {
        key: note
        for key, note in turn_notes.read_notes(directories, engine.id).items()
        if not note.run.is_alive and note.paused_at is not None
    }
    if not noted:
        return ""
    paused = {container.id for container in engine.containers() if container.state == "paused"}
    names = [note.container_name for key, note in noted.items() if key in paused]
    return turn_notes.left_paused(names) if names else ""


def nothing_to_undo(engine: Engine, directories: Sequence[Path]) -> str:
    """Say that the journal is empty. Name other journals, and containers that are paused."""
    line = f"nothing to undo on {engine.host}: no entry in {directories[0] / 'journal'}"
    for directory in directories[1:]:
        if count := len(journal_entries(engine, directory)):
            line += f"; {count} in {directory}: use --state-dir {directory}"
    if names := paused_elsewhere(engine, directories):
        line += f"; {listed(names)}: {PAUSED_ELSEWHERE} of this state directory"
    if os.geteuid() != 0 and state_folder.SYSTEM.exists():
        line += f"; for what root has changed, as by the service: {as_root('dl-apply', '--status')}"
    return line
