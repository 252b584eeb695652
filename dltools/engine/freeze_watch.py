"""Hearing of a pause before it is done: whoever pauses writes the file of the freezer first.

An engine tells of a pause afterwards. But to stop, processes must run once more, and where a
container gets little CPU time that takes seconds, or fails: on version 1 runc gives up after 0.2 s.
The kernel tells of the write at once (inotify; 0.4 ms, measured on version 1).
"""

from __future__ import annotations

import ctypes
import os
import select
import struct
import threading
import time
from collections.abc import Callable
from contextlib import suppress

from dltools.engine.cgroup_files import Directory
from dltools.engine.freezer import FILES, is_freezing
from dltools.threads import in_background

_LOOK_S = 1.0
"""How often it is looked whether a watch was closed (ours)."""

_AGAIN_S = 0.1
"""runc may write the file a thousand times: so often it is told (ours)."""

_IN_MODIFY, _IN_IGNORED = 0x2, 0x8000
_HEAD = struct.Struct("iIII")

_libc = ctypes.CDLL(None, use_errno=True)


class FreezeWatch:
    """Calls `hear` with a container's id, in a thread of its own, while somebody is freezing it.

    Where the kernel has no inotify left for this user, nothing is heard.
    """

    def __init__(self, hear: Callable[[str], None]) -> None:
        self._hear = hear
        self._watched: dict[int, tuple[str, Directory]] = {}
        self._told: dict[str, float] = {}
        self._is_closed = threading.Event()
        self._handle = _libc.inotify_init1(os.O_CLOEXEC | os.O_NONBLOCK)
        if self._handle >= 0:
            in_background(self._follow)

    def add(self, container_id: str, freezer: Directory | None) -> None:
        """Watch a container, given by the directory of its freezer; until its cgroup is removed.
        One that is watched already may be added again."""
        if freezer is not None and self._handle >= 0 and not self._is_closed.is_set():
            path = os.fsencode(freezer.path / FILES[freezer.version][0])
            number = _libc.inotify_add_watch(self._handle, path, _IN_MODIFY)
            if number >= 0:
                self._watched[number] = (container_id, freezer)

    def close(self) -> None:
        """Watch no longer. The thread ends within a second."""
        self._is_closed.set()

    def _follow(self) -> None:
        poll = select.poll()
        poll.register(self._handle, select.POLLIN)
        while not self._is_closed.is_set():
            if poll.poll(1000 * _LOOK_S):
                self._read()
        os.close(self._handle)

    def _read(self) -> None:
        """Take what the kernel tells. A file's events have no name, so all are of one size."""
        for number, mask, _, _ in _HEAD.iter_unpack(os.read(self._handle, 256 * _HEAD.size)):
            if mask & _IN_IGNORED:
                self._watched.pop(number, None)
            elif number in self._watched:
                self._tell(*self._watched[number])

    def _tell(self, container_id: str, freezer: Directory) -> None:
        now = time.monotonic()
        if now - self._told.get(container_id, 0.0) > _AGAIN_S and is_freezing(freezer):
            self._told[container_id] = now
            with suppress(Exception):  # whatever is wrong with one, others are heard
                self._hear(container_id)
