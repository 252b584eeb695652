"""Saved logs as observations: what the extractors find in them, and when it was so."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import BinaryIO

from dltools.errors import DataError
from dltools.inputs import LONGEST_LINE
from dltools.observations.table import Row
from dltools.probe.progress import Extractor, Log, Point
from dltools.probe.progress.stamps import Stamps
from dltools.probe.rows import progress_row

HOST = "log"
"""What stands for the host of rows that come from no host."""

START = datetime(1970, 1, 1, tzinfo=UTC)
"""When a log began that does not say: times then read as time elapsed."""

_PIECE = 1 << 16
_APART = timedelta(seconds=1)
_UNKNOWN = "time unknown: rows are one second apart"


def observations(
    stream: BinaryIO, name: str, extractor: Extractor, start: datetime = START
) -> Iterator[Row]:
    """Yield the points of a log as rows of kind `progress`, of the container `name`.

    A point's time is the stamp of its line; else the time that the line says has elapsed since the
    log's first stamp, or since `start` where it has none; else the newest stamp since the point
    before; else a second after that point.
    """
    log, stamps, times = Log(extractor), Stamps(start), _Times(start)
    id_ = hashlib.sha256(name.encode(errors="replace")).hexdigest()
    without = 0
    while data := stream.read(_PIECE):
        without = 0 if b"\n" in data or b"\r" in data else without + len(data)
        if without > LONGEST_LINE:
            raise DataError(f"{name}: {without >> 20} MiB without a line end: not a log")
        yield from _rows(log.by_line(data), stamps, times, id_, name)
    yield from _rows(log.by_line(b"", last=True), stamps, times, id_, name)


def names(files: Sequence[str]) -> list[str]:
    """Return what stands for each file as a container: its stem, and as much of its folders as
    makes it unique; "stdin" for "-"."""
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


class _Times:
    """When each point was, from what the log says."""

    def __init__(self, start: datetime) -> None:
        self._start = start
        self._stamped = False
        self._last: datetime | None = None
        self._newest: datetime | None = None  # stamp
        self._fresh = False  # it has come since the last point's line

    def see(self, stamp: datetime | None) -> None:
        """Take note of a line's stamp; the first one is when the log began."""
        if stamp is None:
            return
        if not self._stamped:
            self._start, self._stamped = stamp, True
        self._newest, self._fresh = stamp, True

    def of(self, stamp: datetime | None, points: Sequence[Point]) -> tuple[datetime, str | None]:
        """Return the time of a line's points, and what is amiss with it."""
        try:
            moment, gap = self._of(stamp, points)
        except (OverflowError, ValueError):  # "elapsed" is no time, or the calendar is at its end
            moment, gap = self._last or self._start, _UNKNOWN
        self._last, self._fresh = moment, False
        return moment, gap

    def _of(self, stamp: datetime | None, points: Sequence[Point]) -> tuple[datetime, str | None]:
        elapsed = next((p.elapsed_s for p in points if p.elapsed_s is not None), None)
        gap = None
        if stamp is not None:
            moment = stamp
        elif elapsed is not None:
            moment = self._start + timedelta(seconds=elapsed)
            if self._newest is not None:
                moment = max(moment, self._newest)
        elif self._fresh and self._newest is not None:
            moment = self._newest
        else:
            moment = self._start if self._last is None else self._last + _APART
            gap = _UNKNOWN
        return moment, gap


def _rows(
    lines: Iterable[tuple[str, list[Point]]], stamps: Stamps, times: _Times, id_: str, name: str
) -> Iterator[Row]:
    for line, points in lines:
        stamp = stamps.moment(line)
        times.see(stamp)
        if not points:
            continue
        moment, gap = times.of(stamp, points)
        for point in points:
            yield progress_row(moment, HOST, id_, name, point) | {"gap": gap}
