"""Saved logs as observations: the points in them, and their times."""

from __future__ import annotations

import hashlib
import heapq
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import chain, islice
from operator import itemgetter
from pathlib import Path
from typing import BinaryIO

from dltools.errors import DataError
from dltools.inputs import LONGEST_LINE
from dltools.notation.byte_sizes import format_bytes
from dltools.observations.table import Row
from dltools.probe.progress import Extractor, Point, PointReader
from dltools.probe.progress.point_reader import LinePoints
from dltools.probe.progress.stamps import Stamps
from dltools.probe.rows import progress_row

HOST = "log"
"""The host of rows that come from no host."""

START = datetime(1970, 1, 1, tzinfo=UTC)
"""When a log began if it does not say so: its times then read as time elapsed."""

_PIECE = 1 << 20
"""Bytes of a log that are read at a time, at most."""

_BATCH = 8_192
"""Rows of several logs that are given at a time."""

_APART = timedelta(seconds=1)
_UNKNOWN = "time unknown: rows are one second apart"


def progress_rows(
    stream: BinaryIO, name: str, extractor: Extractor, start: datetime = START
) -> Iterator[Row]:
    """Yield the points of a log as rows of kind `progress`, of the container `name`.

    The time of a point is the stamp of its line. Without a stamp it is the log's first stamp (or
    `start`) plus the time elapsed that the line says; else the newest stamp after the point before;
    else a second after that point.
    """
    for batch in progress_batches(stream, name, extractor, start):
        yield from batch


def progress_batches(
    stream: BinaryIO, name: str, extractor: Extractor, start: datetime = START
) -> Iterator[list[Row]]:
    """Yield the rows of `progress_rows` in lists: what each piece of the log holds, as it comes.

    Raises `DataError` for a line that is too long.
    """
    id_ = hashlib.sha256(name.encode(errors="replace")).hexdigest()
    stamps, clock = Stamps(start), _Clock(start)
    for lines in _lines(stream, name, PointReader(extractor)):
        rows: list[Row] = []
        for line in lines:
            stamp = stamps.moment(line.text)
            clock.see(stamp)
            if not line.points:
                continue
            at = clock.time_of(stamp, line.points)
            rows += [progress_row(at.time, HOST, id_, name, one, at.gap) for one in line.points]
        if rows:
            yield rows


def merged(logs: Sequence[Iterator[list[Row]]]) -> Iterator[list[Row]]:
    """Yield the rows of several logs, merged by time; those of one log keep their order."""
    if len(logs) == 1:
        yield from logs[0]
        return
    rows = heapq.merge(*map(chain.from_iterable, logs), key=itemgetter("time"))
    while batch := list(islice(rows, _BATCH)):
        yield batch


def _lines(stream: BinaryIO, name: str, reader: PointReader) -> Iterator[Iterator[LinePoints]]:
    """Yield the lines of each piece of a log. Raises `DataError` for one that is too long."""
    read: Callable[[int], bytes] = getattr(stream, "read1", stream.read)  # what is there, at once
    length = 0
    while data := read(_PIECE):
        length = 0 if b"\n" in data or b"\r" in data else length + len(data)
        if length > LONGEST_LINE:
            raise DataError(f"{name}: {format_bytes(length)} without a line end: not a log")
        yield reader.by_line(data)
    yield reader.by_line(b"", is_last=True)


def container_names(files: Sequence[str]) -> list[str]:
    """Return the names of containers that stand for files: the stem of each, with as many of its
    folders as make it unique; "stdin" for "-"."""
    paths = [Path("stdin") if file == "-" else Path(file) for file in files]
    depth = [1] * len(paths)
    while True:
        found = [_tail(path, count) for path, count in zip(paths, depth, strict=True)]
        twice = [
            number
            for number, name in enumerate(found)
            if found.count(name) > 1 and depth[number] < len(paths[number].parts)
        ]
        if not twice:
            return found
        for number in twice:
            depth[number] += 1


def _tail(path: Path, count: int) -> str:
    return "/".join((*path.parts[-count:-1], path.stem))


@dataclass(frozen=True, slots=True)
class _PointTime:
    """The time of a line's points, and what is wrong with it."""

    time: datetime
    gap: str | None = None


class _Clock:
    """Tells when each point was reported, from what the log says."""

    def __init__(self, start: datetime) -> None:
        self._start = start
        self._has_stamps = False
        self._last: datetime | None = None
        self._newest: datetime | None = None  # stamp
        self._is_new = False  # it came after the last line with points

    def see(self, stamp: datetime | None) -> None:
        """Take note of a line's stamp; the first one is when the log began."""
        if stamp is None:
            return
        if not self._has_stamps:
            self._start, self._has_stamps = stamp, True
        self._newest, self._is_new = stamp, True

    def time_of(self, stamp: datetime | None, points: Iterable[Point]) -> _PointTime:
        """Return the time of a line's points."""
        try:
            found = self._time_of(stamp, points)
        except (OverflowError, ValueError):  # a time elapsed of centuries, or none
            found = _PointTime(self._last or self._start, _UNKNOWN)
        self._last, self._is_new = found.time, False
        return found

    def _time_of(self, stamp: datetime | None, points: Iterable[Point]) -> _PointTime:
        if stamp is not None:
            return _PointTime(stamp)
        elapsed = next((p.elapsed_s for p in points if p.elapsed_s is not None), None)
        if elapsed is not None:
            moment = self._start + timedelta(seconds=elapsed)
            return _PointTime(moment if self._newest is None else max(moment, self._newest))
        if self._is_new and self._newest is not None:
            return _PointTime(self._newest)
        return _PointTime(self._start if self._last is None else self._last + _APART, _UNKNOWN)
