"""Logs that are plain files: read, and followed as they grow.

Such a file has no time stamps. Each line gets the time at which the file was last written when the
line was read: the time of the newest line exactly, and of a line that came between two readings
the end of that time.
"""

from __future__ import annotations

import fcntl
import os
import re
import stat
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from dltools.engine.interface import LARGEST_BACKLOG, Container, LogFlow
from dltools.engine.kernel_reading import ROOT, read_text
from dltools.engine.patience import comes_true

LONGEST_LINE = 16 << 10
"""A line that is longer is cut into several entries."""

_CHUNK = 1 << 20
_MOST_FILES = 8
_MOST_PROCESSES = 64
_OUTPUTS = (1, 2)
_SEARCH_S = 5.0
"""How long files that are known count before they are searched again (ours)."""

_LOOK_S = 0.05
_LINE = re.compile(rb"[^\n\r]*[\n\r]")


def outputs_of(pids: Iterable[int], root: Path = ROOT) -> list[str]:
    """Return the files into which processes write their output and their errors, as paths of /proc
    that open them; each file once."""
    outputs: dict[tuple[int, int], str] = {}
    for pid in list(pids)[:_MOST_PROCESSES]:
        for number in _OUTPUTS:
            path = f"{root}/proc/{pid}/fd/{number}"
            with suppress(OSError):
                status = Path(path).stat()
                if stat.S_ISREG(status.st_mode) and _is_written(pid, number, root):
                    outputs.setdefault((status.st_dev, status.st_ino), path)
    return list(outputs.values())[:_MOST_FILES]


def _is_written(pid: int, number: int, root: Path) -> bool:
    """Tell whether a process has a descriptor open for writing."""
    for line in read_text(f"{root}/proc/{pid}/fdinfo/{number}").splitlines():
        if line.startswith("flags:"):
            return bool(int(line.split()[1], 8) & (os.O_WRONLY | os.O_RDWR))
    return False


@dataclass(slots=True)
class _File:
    """A file that is read: its number, how far it was read, and the begin of a line without an
    end."""

    handle: int
    offset: int = 0
    begun: bytes = b""

    @property
    def status(self) -> os.stat_result:
        return os.fstat(self.handle)

    def read(self) -> bytes:
        """Return what has come, a part of it at least; a file that was cut is read anew."""
        if self.status.st_size < self.offset:
            self.offset, self.begun = 0, b""
        data = os.pread(self.handle, _CHUNK, self.offset)
        self.offset += len(data)
        return data

    def lines(self, data: bytes, *, is_last: bool) -> list[bytes]:
        """Return the lines that end in new data; with the last data, what has no end too."""
        text = self.begun + data
        lines, at = [], 0
        for match in _LINE.finditer(text):
            lines.append(match[0])
            at = match.end()
        rest = text[at:]
        if len(rest) > LONGEST_LINE or (is_last and rest):
            lines.append(rest)
            rest = b""
        self.begun = rest
        return [
            line[start : start + LONGEST_LINE]
            for line in lines
            for start in range(0, len(line), LONGEST_LINE)
        ]


class PlainLog:
    """The log of one container: one file, or several. It remembers how far each was read, so that
    it is followed from there."""

    def __init__(self, find: Callable[[], Sequence[str]]) -> None:
        """`find` returns the paths of its files now."""
        self._find = find
        self._files: dict[tuple[int, int], _File] = {}
        self._searched = float("-inf")
        self._stamp = 0  # the newest that was given, in ns

    def all(self, since: float) -> Iterator[list[bytes]]:
        """Yield the entries of files that were written since a time (seconds since 1970), from
        their begin to their end."""
        self.close()
        self._search()
        for file in self._files.values():
            if file.status.st_mtime < since:
                file.offset = file.status.st_size
        while entries := self.new()[0]:
            yield entries

    def new(self) -> tuple[list[bytes], bool]:
        """Return the entries that have come since, and whether more came than is kept."""
        self._search()
        entries: list[bytes] = []
        came = 0
        for file in self._files.values():
            while came < LARGEST_BACKLOG and (data := file.read()):
                entries += self._entries(file, data)
                came += len(data)
        return entries, came >= LARGEST_BACKLOG

    def rest(self) -> list[bytes]:
        """Return the begins of lines that will have no end."""
        return [
            entry
            for file in self._files.values()
            for entry in self._entries(file, b"", is_last=True)
        ]

    def skip(self) -> None:
        """Leave out what is there."""
        self._search()
        for file in self._files.values():
            file.offset, file.begun = file.status.st_size, b""

    def close(self) -> None:
        """Close the files, and forget how far they were read."""
        for file in self._files.values():
            os.close(file.handle)
        self._files.clear()
        self._searched = float("-inf")

    def _entries(self, file: _File, data: bytes, *, is_last: bool = False) -> list[bytes]:
        lines = file.lines(data, is_last=is_last)
        if not lines:
            return []
        stamp = self._next_stamp(file.status.st_mtime_ns)
        return [stamp + b" " + line for line in lines]

    def _next_stamp(self, written_ns: int) -> bytes:
        """Return a time stamp that is later than the one before: who goes on after that one must
        miss no line."""
        self._stamp = max(min(written_ns, time.time_ns()), self._stamp + 1000)
        at = datetime.fromtimestamp(self._stamp // 1_000_000_000, UTC)
        return f"{at:%Y-%m-%dT%H:%M:%S}.{self._stamp % 1_000_000_000:09d}Z".encode()

    def _search(self) -> None:
        """Open the files that there are, unless that was done a moment ago."""
        now = time.monotonic()
        if self._files and now - self._searched < _SEARCH_S:
            return
        self._searched = now
        for path in self._find():
            with suppress(OSError):
                handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY)
                status = os.fstat(handle)
                key = (status.st_dev, status.st_ino)
                if key in self._files or not stat.S_ISREG(status.st_mode):
                    os.close(handle)
                    continue
                fcntl.fcntl(handle, fcntl.F_SETFL, 0)
                self._files[key] = _File(handle)
        while len(self._files) > 2 * _MOST_FILES:  # those that were rotated away
            os.close(self._files.pop(next(iter(self._files))).handle)


_MOST_LOGS = 256
"""So many logs are kept, and more while their containers are there (ours)."""


class PlainLogs:
    """The logs of an engine's containers."""

    def __init__(
        self, files_of: Callable[[Container], Sequence[str]], ids: Callable[[], set[str]]
    ) -> None:
        """`files_of` returns the paths of a container's log, `ids` those of all containers."""
        self._files_of = files_of
        self._ids = ids
        self._logs: dict[str, PlainLog] = {}

    def of(self, container: Container) -> PlainLog:
        """Return a container's log."""
        if container.id not in self._logs:
            if len(self._logs) >= _MOST_LOGS:
                for id_ in self._logs.keys() - self._ids():
                    self._logs.pop(id_).close()
            self._logs[container.id] = PlainLog(lambda: self._files_of(container))
        return self._logs[container.id]


class PlainFlow(LogFlow):
    """A plain log as it goes on."""

    def __init__(self, log: PlainLog, has_ended: Callable[[], bool]) -> None:
        """`has_ended` tells whether nobody writes into it any more."""
        self.is_behind = False
        self._log = log
        self._has_ended = has_ended
        self._is_over = False

    @property
    def ended(self) -> bool:
        """Whether nothing more will come."""
        return self._is_over

    def take(self) -> list[bytes]:
        """Return the entries that have come since the last call, without waiting."""
        if self._is_over:
            return []
        has_ended = self._has_ended()
        entries, self.is_behind = self._log.new()
        if has_ended and not self.is_behind:
            entries += self._log.rest()
            self._is_over = True
        return entries

    def wait(self, seconds: float) -> None:
        """Wait until nobody writes any more, but no longer than this."""
        comes_true(self._has_ended, seconds, _LOOK_S)

    def close(self) -> None:
        """Take no more."""
        self._is_over = True
        self._log.close()
