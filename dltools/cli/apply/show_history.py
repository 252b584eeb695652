"""dl-apply --history: every change, when, why, by which run, and how it ended."""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dltools.apply.history import Change, read_history
from dltools.apply.original_settings import timestamp
from dltools.cli.apply.printing import write_records
from dltools.cli.apply.session import connect
from dltools.cli.destinations import make_console
from dltools.cli.exits import print_message
from dltools.engine.state_folder import check, state_directories
from dltools.errors import AccessError, DltoolsError
from dltools.notation.limits import written

if TYPE_CHECKING:
    from dltools.cli.apply.request import Request

_ROWS = 200
"""Changes in a table: one that scrolls has its headers again."""

_SHORTEST_ID = 4
"""Fewest digits by which a container is known."""


def show_history(request: Request) -> None:
    """Print the changes in the state directories, or those of the containers that have, or had when
    they were changed, a name or an id, the newest first: tables, or a JSON line each. Changes by
    other users are left out. Raises `AccessError` where the first directory cannot be trusted."""
    directories = state_directories(request.state_directory)
    check(directories[0])
    changes, name = _changes(directories), "" if request.input == "-" else request.input
    if name:
        ids = {change.container_id for change in changes if _is_of(change, name)}
        ids |= _named_now(request, directories, name)
        changes = (change for change in _changes(directories) if change.container_id in ids)
    is_empty = True
    while part := list(itertools.islice(changes, _ROWS)):
        is_empty = False
        if request.shows_table:
            from dltools.cli.apply.tables import history_table

            make_console().print(history_table(part, timestamp()[:10]))
        else:
            write_records(map(_change_record, part))
    if is_empty:
        of = f" of {name}" if name else ""
        print_message(f"no change{of} is recorded in {directories[0] / 'history'}")


def _named_now(request: Request, directories: Sequence[Path], name: str) -> set[str]:
    """Return the ids of the containers that have a name now, on the engines that answer."""
    ids = set[str]()
    for address in request.addresses():
        with suppress(DltoolsError):
            ids.add(connect(address, directories, request.patience_s).inspect(name).id)
    return ids


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
