"""Reads saved logs as observations: points with their times; called by the tool dl-probe."""

from __future__ import annotations

import hashlib
import heapq
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime
from itertools import chain, islice
from operator import itemgetter
from pathlib import Path
from typing import BinaryIO

from dltools.bounded_reading import LONGEST_LINE
from dltools.errors import DataError
from dltools.notation.resources import format_bytes
from dltools.observations.table import Row
from dltools.probe.log_times import PointTime, PointTimes
from dltools.probe.progress import Extractor, PointReader
from dltools.probe.progress.confirm import Tagged
from dltools.probe.rows import progress_row

HOST = "log"
"""The host name in rows of saved logs."""

START = datetime(1970, 1, 1, tzinfo=UTC)
"""The begin of a log that does not name it: its times can then be read as time elapsed."""

_PIECE = 1 << 20
"""Most bytes of a log that are read at a time."""

_BATCH = 8_192
"""Most rows of several logs that are yielded at a time."""


def progress_batches(
    stream: BinaryIO,
    name: str,
    extractor: Extractor,
    start: datetime = START,
    dropped: dict[str, int] | None = None,
) -> Iterator[list[Row]]:
    """Yield the points of a log as rows of kind `progress` of the container `name`, in batches: the
    rows of each piece of the log, as it is read.

    A point's time is that of its line (`PointTimes`). Rows are in the order of the log, except for
    doubtful points: they follow once they are certain, with the time of their line. At the end
    `dropped` gets the number of points by metric that belong to no series. Raises `DataError` for a
    line that is too long.
    """
    id_ = hashlib.sha256(name.encode(errors="replace")).hexdigest()
    times = PointTimes(start, is_assumed=start == START)
    reader = PointReader(extractor, times.note)
    ready: deque[Tagged[PointTime | None]] = deque()
    for points in _points(stream, name, reader, times):
        ready += points
        rows: list[Row] = []
        while ready and (at := ready[0][0]) is not None and at.is_known:
            rows.append(progress_row(at.time, HOST, id_, name, ready.popleft()[1], at.gap))
        if rows:
            yield rows
    if dropped is not None:
        dropped.update(reader.dropped())


def merged(logs: Sequence[Iterator[list[Row]]]) -> Iterator[list[Row]]:
    """Yield the rows of several logs, merged by time; those of one log keep their order."""
    if len(logs) == 1:
        yield from logs[0]
        return
    rows = heapq.merge(*map(chain.from_iterable, logs), key=itemgetter("time"))
    while batch := list(islice(rows, _BATCH)):
        yield batch


def _points(
    stream: BinaryIO, name: str, reader: PointReader[PointTime | None], times: PointTimes
) -> Iterator[list[Tagged[PointTime | None]]]:
    """Yield the points of each piece of a log. Raises `DataError` for a line that is too long."""
    read: Callable[[int], bytes] = getattr(stream, "read1", stream.read)  # what is there, at once
    length = 0
    while data := read(_PIECE):
        length = 0 if b"\n" in data or b"\r" in data else length + len(data)
        if length > LONGEST_LINE:
            raise DataError(f"{name}: {format_bytes(length)} without a line end: not a log")
        reader.expect(data)
        yield reader.tagged(data)
        times.pause()
        yield []  # what has waited for a time
    yield reader.tagged(b"", is_last=True)
    times.end()
    yield []


def container_names(files: Sequence[str]) -> list[str]:
    """Return container names for files: the stem of each file, with as many of its folders as make
    it unique; "stdin" for "-"."""
    paths = [Path("stdin") if file == "-" else Path(file) for file in files]
    depth = [1] * len(paths)
    while True:
        names = [_tail(path, count) for path, count in zip(paths, depth, strict=True)]
        twice = [
            number
            for number, name in enumerate(names)
            if names.count(name) > 1 and depth[number] < len(paths[number].parts)
        ]
        if not twice:
            return names
        for number in twice:
            depth[number] += 1


def _tail(path: Path, count: int) -> str:
    return "/".join((*path.parts[-count:-1], path.stem))
