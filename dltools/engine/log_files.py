"""Logs that an engine keeps as files, in the format that Podman and Kubernetes share.

    2026-01-31T12:00:00.123456789+00:00 stdout F a whole line
    2026-01-31T12:00:00.123456789+00:00 stderr P a part of a line, which the next entry goes on with

The stamps have nanoseconds, which the same log by Podman's API has not. containerd leaves out zeros
at their end.
"""

from __future__ import annotations

import gzip
import os
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO

from dltools.engine.interface import LARGEST_BACKLOG
from dltools.notation.times import parse_time

PACKED = ".gz"

_BLOCK = 1 << 18
_NEAR = 1 << 16
"""Bytes before a time in which it is looked for line by line."""

_LONGEST_LINE = 1 << 20
"""Bytes after which a line that does not end is given up."""

_SETTLED_S = 0.1
"""How long to wait for the last lines of a container that has ended: they are written after it."""


def entry_of(line: bytes) -> bytes | None:
    """Return the entry that a line of such a file stands for: the stamp in UTC, a blank, and the
    text, without a line end where it goes on. None for a line of another format."""
    parts = line.split(b" ", 3)
    if len(parts) < 3 or parts[1] not in (b"stdout", b"stderr"):
        return None
    tag, text = parts[2].rstrip(b"\n"), parts[3] if len(parts) > 3 else b"\n"
    if tag[:1] not in (b"F", b"P"):
        return None
    return _in_utc(parts[0]) + b" " + (text if tag[:1] == b"F" else text.rstrip(b"\n"))


def _in_utc(stamp: bytes) -> bytes:
    """Return a stamp with nine digits and Z, so that stamps compare as texts do."""
    if stamp.endswith(b"Z"):
        stamp = stamp[:-1]
    elif stamp.endswith(b"+00:00"):
        stamp = stamp[:-6]
    else:
        try:
            moment = parse_time(stamp.decode(errors="replace"))
        except ValueError:
            return stamp
        fraction = stamp.partition(b".")[2].replace(b"-", b"+").partition(b"+")[0]
        stamp = moment.strftime("%Y-%m-%dT%H:%M:%S").encode() + b"." + fraction
    whole, _, fraction = stamp.partition(b".")
    return whole + b"." + fraction.ljust(9, b"0") + b"Z"


def read_entries(path: Path, since: float) -> Iterator[list[bytes]]:
    """Yield the entries of a log from a time on (seconds since 1970). Raises OSError."""
    with _opened(path) as file:
        lines = _Lines(file)
        lines.seek(since)
        while (found := lines.read(_BLOCK)) is not None:
            yield found


def read_rotated(path: Path, since: float) -> Iterator[list[bytes]]:
    """Yield the entries of a log as `read_entries` does, those of rotated files first."""
    for old in rotated(path):
        with suppress(FileNotFoundError):  # packed or removed meanwhile
            if _changed(old) >= since:
                yield from read_entries(old, since)
    yield from read_entries(path, since)


def rotated(path: Path) -> list[Path]:
    """Return the files that a log was in before, the oldest first.

    kubelet renames NAME.log to NAME.log.20260131-120000, has the runtime open a new one, and packs
    the older ones.
    """
    try:
        names = sorted(one.name for one in path.parent.iterdir())
    except OSError:
        return []
    start = len(path.name) + 1
    found = (one for one in names if one.startswith(f"{path.name}.") and one[start:][:1].isdigit())
    return [path.with_name(one) for one in found]


def _opened(path: Path) -> BinaryIO | gzip.GzipFile:
    """Open a log, or a packed one. Raises OSError."""
    if path.suffix == PACKED:
        return gzip.open(path)
    return path.open("rb", buffering=0)


class _Lines:
    """The entries of an open file, as far as whole lines have been written."""

    def __init__(self, file: BinaryIO | gzip.GzipFile) -> None:
        self._file = file
        self._rest = b""
        self._since: bytes | None = None

    @property
    def place(self) -> int:
        return self._file.tell()

    def seek(self, since: float) -> None:
        """Go on with the first entry that is not from before a time: they are in order of time."""
        is_packed = isinstance(self._file, gzip.GzipFile)
        low, high = 0, 0 if is_packed else os.fstat(self._file.fileno()).st_size
        while high - low > _NEAR:
            middle = (low + high) // 2
            found = self._time_after(middle)
            if found is not None and found < since:
                low = middle
            else:
                high = middle
        self._file.seek(low)
        if low:
            self._rest = b""
            self._skip_line()
        self._since = _stamp(since)

    def _skip_line(self) -> None:
        data = self._file.read(_NEAR)
        self._file.seek(data.find(b"\n") + 1 - len(data), os.SEEK_CUR)

    def _time_after(self, place: int) -> float | None:
        """Return the time of the first whole line after a place, None where there is none near."""
        self._file.seek(place)
        line = self._file.read(_NEAR).partition(b"\n")[2].partition(b"\n")[0]
        with suppress(ValueError):
            return parse_time(line.partition(b" ")[0].decode(errors="replace")).timestamp()
        return None

    def read(self, most: int) -> list[bytes] | None:
        """Return entries of the next bytes, None where nothing more has been written."""
        data = self._file.read(most)
        if not data:
            return None
        *lines, self._rest = (self._rest + data).split(b"\n")
        if len(self._rest) > _LONGEST_LINE:
            self._rest = b""
        entries = [entry for line in lines if (entry := entry_of(line + b"\n")) is not None]
        if self._since is not None:
            first = next((n for n, one in enumerate(entries) if one >= self._since), None)
            entries = [] if first is None else entries[first:]
            self._since = None if entries else self._since
        return entries


def _stamp(since: float) -> bytes:
    """Return a time as a stamp begins."""
    whole = max(0.0, since)
    text = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(whole))
    return f"{text}.{int(whole % 1 * 1e6):06d}".encode()


class FollowedFile:
    """A log as it goes on: the interface's `LogFlow`. A file that takes its place when it has grown
    too long is gone on with, and so are those that were there between two looks."""

    def __init__(
        self,
        path: Path,
        since: float,
        has_ended: Callable[[], bool],
        *,
        is_new_only: bool = False,
        rotated: Callable[[], Sequence[Path]] = tuple,
    ) -> None:
        """Open the file. `has_ended` tells whether the container no longer runs; `rotated` returns
        the files that the log was in before, the oldest first. Raises OSError."""
        self._path = path
        self._has_ended = has_ended
        self._rotated = rotated
        self._known = {_bare(name) for name in rotated()}
        """The files that the log had been in when the present one was opened."""
        self._old = ""
        """The rotated file that is being read, "" while it is the log itself."""
        self.is_behind = self._is_settled = False
        earlier = [] if is_new_only else [one for one in rotated() if _changed(one) >= since]
        if earlier:
            self._old = _bare(earlier[0])
        self._file = _opened(earlier[0] if earlier else path)
        self._lines = _Lines(self._file)
        if is_new_only:
            self._file.seek(0, os.SEEK_END)
        else:
            self._lines.seek(since)

    @property
    def ended(self) -> bool:
        """Whether nothing more will come."""
        return self._file.closed or (self._has_ended() and self._unread() == 0)

    def take(self) -> list[bytes]:
        """Return the entries that have come since the last call, without waiting."""
        found: list[bytes] = []
        if self._file.closed:
            return found
        self.is_behind = self._unread() > LARGEST_BACKLOG
        came = 0
        while came <= LARGEST_BACKLOG:
            entries = self._lines.read(_BLOCK)
            if entries is None:
                if not self._has_successor() or not self._go_on():
                    break
                continue
            found += entries
            came += _BLOCK
        else:
            return found
        if self._is_settled:
            self._file.close()
        return found

    def wait(self, seconds: float) -> None:
        """Wait until it has ended, but no longer than this."""
        until = time.monotonic() + seconds
        while not self._has_ended() and time.monotonic() < until and not self._file.closed:
            time.sleep(0.02)
        time.sleep(max(0.0, min(_SETTLED_S, until - time.monotonic())))
        self._is_settled = self._has_ended()

    def close(self) -> None:
        """Take no more."""
        self._file.close()

    def _unread(self) -> int:
        if isinstance(self._file, gzip.GzipFile):  # such a file does not grow
            return 0
        return max(0, os.fstat(self._file.fileno()).st_size - self._lines.place)

    def _has_successor(self) -> bool:
        """Tell whether another file goes on where this one ends, or this one was emptied."""
        if self._old:
            return True
        try:
            there = self._path.stat()
        except OSError:
            return False
        if not os.path.samestat(there, os.fstat(self._file.fileno())):
            return True
        return there.st_size < self._lines.place

    def _go_on(self) -> bool:
        """Open the file that goes on where this one ends, and tell whether that could be done."""
        if self._unread():  # it was written to before the new one was made
            return True
        names = self._rotated()
        if not self._old:
            self._old = next((_bare(one) for one in names if _bare(one) not in self._known), "")
        later = [one for one in names if _bare(one) > self._old] if self._old else []
        try:
            file = _opened(later[0] if later else self._path)
        except OSError:
            return False
        if not later and list(self._rotated()) != list(names):  # rotated at this very moment
            file.close()
            return True
        self._known = {_bare(name) for name in names}
        self._old = _bare(later[0]) if later else ""
        self._file.close()
        self._file, self._lines = file, _Lines(file)
        return True


def _bare(path: Path) -> str:
    """Return what a rotated file is called also when it is packed."""
    return path.name.removesuffix(PACKED)


def _changed(path: Path) -> float:
    """Return when a file was last written to (seconds since 1970), 0 where it is gone."""
    try:
        return path.stat().st_mtime
    except OSError:
        return 0.0
