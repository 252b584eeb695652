"""What a recording tells of a container besides its counters: how it ended, and, of a saved log,
what it said."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from dltools.observations.column_values import integers, optional, texts
from dltools.observations.schema import Kind
from dltools.observations.table import is_one_of

if TYPE_CHECKING:
    import pyarrow as pa

Key = tuple[str, str]
"""Host and container id."""


def exit_codes(table: pa.Table) -> dict[Key, int]:
    """Return the exit codes of the containers of which an exit is the last that was heard."""
    events = table.filter(is_one_of(table.column("kind"), (Kind.EVENT,)))
    events = events.filter(is_one_of(events.column("event"), ("start", "exit")))
    last: dict[Key, int | None] = {}
    columns = (*(texts(events, name) for name in ("host", "container_id", "event")),
               optional(events, "exit_code"))  # fmt: skip
    for host, container, event, code in zip(*columns, strict=True):
        last[host, container] = code if event == "exit" else None
    return {key: code for key, code in last.items() if code is not None}


def told(table: pa.Table) -> Iterator[tuple[Key, str, int]]:
    """Yield container, its name and a time (microseconds) for each point from a host of which
    nothing but progress is known, as of a saved log."""
    counted = table.filter(is_one_of(table.column("kind"), (Kind.NODE, Kind.CONTAINER)))
    hosts = set(counted.column("host").unique().to_pylist())
    points = table.filter(is_one_of(table.column("kind"), (Kind.PROGRESS,)))
    columns = (*(texts(points, name) for name in ("host", "container_id", "container_name")),
               integers(points, "time"))  # fmt: skip
    for host, container, name, time in zip(*columns, strict=True):
        if container and host not in hosts:
            yield (host, container), name or container[:12], time
