"""When a container's processes are searched for OpenMP runtimes."""

from __future__ import annotations

import time

from dltools.engine.cgroup import Cgroup
from dltools.engine.openmp import OpenMP, openmp_of

_REST_S = 30.0
"""Seconds between two searches while threads come and go; the first growth is never missed."""


class OpenMPWatch:
    """One run of one container: it is searched at its first sample, whenever it has more threads
    than ever before, and, twice a minute at most, when their number has changed otherwise."""

    def __init__(self) -> None:
        """Nothing is searched yet."""
        self._found = OpenMP()
        self._threads: int | None = None
        self._most = 0
        self._searched_at = -_REST_S

    def look(self, group: Cgroup, threads: int | None) -> OpenMP:
        """Return what the processes use; `threads` is how many they have now."""
        now = time.monotonic()
        has_grown = threads is not None and threads > self._most
        has_changed = threads is None or threads != self._threads
        if has_grown or (has_changed and now - self._searched_at >= _REST_S):
            self._found = openmp_of(group.processes)
            self._searched_at, self._threads = now, threads
            self._most = max(self._most, threads or 0)
        return self._found
