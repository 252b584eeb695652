"""One file of a container, read as it grows or is replaced."""

from __future__ import annotations

import os
from dataclasses import dataclass, field

from dltools.probe.files.readers import reader_of
from dltools.probe.files.rooted import Root
from dltools.probe.files.tables import Reader, Timed

_MOST_BYTES = 8 << 20
"""Bytes of one file that one reading takes; the next reading takes the rest."""


@dataclass(frozen=True, slots=True)
class News:
    """What is new in a file: points, with the time that the file says, and when it was changed
    (seconds since the epoch)."""

    timed: list[Timed] = field(default_factory=list)
    changed: float = 0.0


class FollowedFile:
    """One file: its reader, and how far it has been read."""

    def __init__(self, path: str, reader: Reader) -> None:
        self._path = path
        self._reader = reader
        self._inode: int | None = None
        self._at = 0
        self._changed = -1.0

    def read(self, root: Root) -> News:
        """Return what is new. Raises OSError."""
        handle = root.open(self._path)
        try:
            info = os.fstat(handle)
            is_first = self._inode is None
            self._note_replacement(info)
            read = self._read_whole if self._reader.whole else self._read_on
            timed = read(handle, info)
        finally:
            os.close(handle)
        return News(_newest(timed) if is_first else timed, info.st_mtime)

    def _note_replacement(self, info: os.stat_result) -> None:
        """Begin again with a file that was replaced or cut."""
        if info.st_ino == self._inode and info.st_size >= self._at:
            return
        if self._inode is not None:
            self._reader = reader_of(self._path) or type(self._reader)()
        self._inode, self._at = info.st_ino, 0

    def _read_whole(self, handle: int, info: os.stat_result) -> list[Timed]:
        if info.st_mtime == self._changed or info.st_size > _MOST_BYTES:
            return []
        self._changed = info.st_mtime
        return self._reader.feed(os.pread(handle, _MOST_BYTES, 0))

    def _read_on(self, handle: int, info: os.stat_result) -> list[Timed]:
        del info
        data = os.pread(handle, _MOST_BYTES, self._at)
        self._at += len(data)
        return self._reader.feed(data) if data else []


def _newest(timed: list[Timed]) -> list[Timed]:
    """Return the points of a file that already had some: those with a time, and those of the newest
    record, since the times of the older ones are unknown."""
    last = next((point for seconds, point in reversed(timed) if seconds is None), None)
    newest = last and (last.step, last.epoch)
    return [
        one
        for one in timed
        if one.seconds is not None or (one.point.step, one.point.epoch) == newest
    ]
