"""Logs that an engine keeps as files, in the format of Podman and Kubernetes, or in Docker's.

    2026-01-31T12:00:00.123456789+00:00 stdout F a whole line
    2026-01-31T12:00:00.123456789+00:00 stderr P a part of a line, which the next entry goes on with
    {"log":"a whole line\\n","stream":"stdout","time":"2026-01-31T12:00:00.123456789Z"}

The stamps have nanoseconds, which the same log by Podman's API has not. containerd and Docker leave
out zeros at their end. To read a file costs the engine nothing, and of a long one no more is read
than is wanted: Docker's API reads through all of it to find a time.
"""

from __future__ import annotations

import json
import math
import os
import re
import time
from bisect import bisect_left
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import BinaryIO

from dltools.engine.interface import LARGEST_BACKLOG, LogFlow, RefusedError
from dltools.engine.patience import comes_true
from dltools.notation.resources import format_bytes
from dltools.notation.times import time_or_none

_BLOCK = 1 << 18
_NEAR = 1 << 16
"""Bytes before a time in which it is looked for line by line."""

_LONGEST_LINE = 1 << 20
"""Bytes after which a line that does not end is given up."""

_LOOK_S = 0.02

SETTLED_S = 0.1
"""How long to wait for the last lines of a container that has ended: they are written after it."""


def entry_of(line: bytes) -> bytes | None:
    """Return the entry that a line of such a file stands for: the stamp in UTC, a blank, and the
    text, without a line end where it goes on. None for a line of another format."""
    if line.startswith(_JSON):
        return _json_entry(line)
    parts = line.split(b" ", 3)
    if len(parts) < 3 or parts[1] not in (b"stdout", b"stderr"):
        return None
    tag, text = parts[2].rstrip(b"\n"), parts[3] if len(parts) > 3 else b"\n"
    if tag[:1] not in (b"F", b"P"):
        return None
    return _in_utc(parts[0]) + b" " + (text if tag[:1] == b"F" else text.rstrip(b"\n"))


_JSON = b'{"log":"'
_PLAIN = re.compile(_JSON + rb'([^"\\]*)\\n","stream":"\w+","time":"([^"]+Z)"')


def _json_entry(line: bytes) -> bytes | None:
    """Return the entry of a line by Docker. Without escapes but the one of the line's end, as most
    are, it is cut out, which takes a tenth of the time (measured)."""
    if plain := _PLAIN.match(line):
        text, stamp = plain.groups()
        return (stamp if len(stamp) == _LENGTH else _in_utc(stamp)) + b" " + text + b"\n"
    try:
        fields = json.loads(line)
        written: str = fields["log"]
        return _in_utc(fields["time"].encode()) + b" " + written.encode(errors="replace")
    except (ValueError, TypeError, KeyError, AttributeError):
        return None


_LENGTH = len("2026-01-31T12:00:00.123456789Z")


def _in_utc(stamp: bytes) -> bytes:
    """Return a stamp with nine digits and Z, so that stamps compare as texts do."""
    if stamp.endswith(b"Z"):
        stamp = stamp[:-1]
    elif stamp.endswith(b"+00:00"):
        stamp = stamp[:-6]
    else:
        moment = time_or_none(stamp.decode(errors="replace"))
        if moment is None:
            return stamp
        fraction = stamp.partition(b".")[2].replace(b"-", b"+").partition(b"+")[0]
        stamp = moment.strftime("%Y-%m-%dT%H:%M:%S").encode() + b"." + fraction
    whole, _, fraction = stamp.partition(b".")
    return whole + b"." + fraction.ljust(9, b"0") + b"Z"


def read_log(path: Path, since: float) -> Iterator[list[bytes]]:
    """Yield the entries of a log from a time on (seconds since 1970), those of rotated files first.

    Of more than `LARGEST_BACKLOG` bytes the newest are read; then it ends with `RefusedError`.
    Raises OSError.
    """
    is_cut = False
    with closing(FollowedFile(path, since, lambda: True)) as flow:
        while entries := flow.take():
            is_cut |= flow.is_behind
            yield entries
    if is_cut:
        raise RefusedError(cut_message())


def cut_message() -> str:
    """Return what to say of a log of which only the newest part is read."""
    return f"more than {format_bytes(LARGEST_BACKLOG)}: the newest lines are read; see --since"


def rotated(path: Path) -> list[Path]:
    """Return the files that a log was in before, the oldest first, but for those that are packed.

    kubelet renames NAME.log to NAME.log.20260131-120000, has the runtime open a new one, and packs
    the older ones. Docker renames it to NAME.log.1, and that one to NAME.log.2.
    """
    start = len(path.name) + 1

    def age(name: str) -> tuple[int, str]:
        ending = name[start:]
        return (-int(ending), "") if ending.isdecimal() and len(ending) < 6 else (0, ending)

    try:
        names = [file.name for file in path.parent.iterdir()]
    except OSError:
        return []
    is_older = re.compile(rf"{re.escape(path.name)}\.\d[\d-]*").fullmatch
    older = (name for name in names if is_older(name))
    return [path.with_name(name) for name in sorted(older, key=age)]


class _Lines:
    """The entries of an open file, as far as whole lines have been written."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self._rest = b""
        self._since: bytes | None = None  # the first entry that is no less is the first one

    @property
    def place(self) -> int:
        return self._file.tell()

    def seek(self, since: float, most: int) -> bool:
        """Go on with the first entry that is not from before a time, and is in the newest bytes;
        tell whether these begin later. Entries are in order of time."""
        size = os.fstat(self._file.fileno()).st_size
        later = bisect_left(range(0, size, _NEAR), since, key=self._time_after)
        begin = max(0, (later - 1) * _NEAR, size - most)
        self._file.seek(begin)
        if begin:
            self._rest = b""
            self._skip_line()
        self._since = _stamp(since)
        return begin > later * _NEAR

    def _skip_line(self) -> None:
        data = self._file.read(_NEAR)
        self._file.seek(data.find(b"\n") + 1 - len(data), os.SEEK_CUR)

    def _time_after(self, place: int) -> float:
        """Return the time of the first whole line after a place, infinity where none is near."""
        self._file.seek(place)
        line = self._file.read(_NEAR).partition(b"\n")[2].partition(b"\n")[0]
        entry = entry_of(line + b"\n") or line
        moment = time_or_none(entry.partition(b" ")[0].decode(errors="replace"))
        return moment.timestamp() if moment else math.inf

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
            first = next((n for n, entry in enumerate(entries) if entry >= self._since), None)
            entries = [] if first is None else entries[first:]
            self._since = None if entries else self._since
        return entries


def _stamp(since: float) -> bytes:
    """Return a time as a stamp begins."""
    whole = max(0.0, since)
    text = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(whole))
    return f"{text}.{int(whole % 1 * 1e6):06d}".encode()


class FollowedFile(LogFlow):
    """A log as it goes on. A file that takes its place when it has grown too long is gone on with,
    and so are those that were there between two looks. Of what is there already the newest
    `LARGEST_BACKLOG` bytes come, and it is behind at first if that is not all."""

    def __init__(
        self,
        path: Path,
        since: float,
        has_ended: Callable[[], bool],
        *,
        is_new_only: bool = False,
        settled_s: float = SETTLED_S,
    ) -> None:
        """Open the file. `has_ended` tells whether the container no longer runs; `settled_s`: how
        long its last lines may take after that. Raises OSError."""
        self._path = path
        self._has_ended = has_ended
        self._settled_s = settled_s
        self.is_behind = self._is_settled = False
        first, most, self._is_cut = path, LARGEST_BACKLOG, False
        for older in [] if is_new_only else reversed(rotated(path)):
            size = _size(first)
            if _changed(older) < since or size >= most:
                self._is_cut = _changed(older) >= since
                break
            first, most = older, most - size
        self._file = first.open("rb", buffering=0)
        self._lines = _Lines(self._file)
        if is_new_only:
            self._file.seek(0, os.SEEK_END)
        else:
            self._is_cut |= self._lines.seek(since, most)

    @property
    def ended(self) -> bool:
        """Whether nothing more will come."""
        return self._file.closed or (self._has_ended() and self._unread() == 0)

    def take(self) -> list[bytes]:
        """Return the entries that have come since the last call, without waiting."""
        taken: list[bytes] = []
        if self._file.closed:
            return taken
        self.is_behind = self._is_cut or self._unread() > LARGEST_BACKLOG
        self._is_cut = False
        came = 0
        while came <= LARGEST_BACKLOG:
            entries = self._lines.read(_BLOCK)
            if entries is None:
                if not self._go_on():
                    break
                continue
            taken += entries
            came += _BLOCK
        else:
            return taken
        if self._is_settled:
            self._file.close()
        return taken

    def wait(self, seconds: float) -> None:
        """Wait until it has ended, but no longer than this."""
        until = time.monotonic() + seconds
        comes_true(lambda: self._file.closed or self._has_ended(), seconds, _LOOK_S)
        time.sleep(max(0.0, min(self._settled_s, until - time.monotonic())))
        self._is_settled = self._has_ended()

    def close(self) -> None:
        """Take no more."""
        self._file.close()

    def _unread(self) -> int:
        return max(0, os.fstat(self._file.fileno()).st_size - self._lines.place)

    def _go_on(self) -> bool:
        """Open the file that goes on where this one ends; tell whether there is more to read."""
        held = os.fstat(self._file.fileno())
        files = [
            (path, seen) for path in (*rotated(self._path), self._path) if (seen := _status(path))
        ]
        at = next((n for n, (_, seen) in enumerate(files) if os.path.samestat(seen, held)), None)
        if at is None:  # it was packed or removed: what is newer goes on
            files = [pair for pair in files if pair[1].st_mtime >= held.st_mtime]
        elif at + 1 < len(files):
            files = files[at + 1 :]
        elif held.st_size >= self._lines.place:
            return self._unread() > 0
        else:  # it was emptied
            files = files[at:]
        if not files:
            return False
        if self._unread():  # it was written to before the new one was made
            return True
        path, seen = files[0]
        try:
            file = path.open("rb", buffering=0)
        except OSError:
            return False
        if os.path.samestat(os.fstat(file.fileno()), seen):  # not rotated at this very moment
            self._file.close()
            self._file, self._lines = file, _Lines(file)
        else:
            file.close()
        return True


def _status(path: Path) -> os.stat_result | None:
    try:
        return path.stat()
    except OSError:
        return None


def _size(path: Path) -> int:
    seen = _status(path)
    return seen.st_size if seen else 0


def _changed(path: Path) -> float:
    """Return when a file was last written to (seconds since 1970), 0 where it is gone."""
    seen = _status(path)
    return seen.st_mtime if seen else 0.0
