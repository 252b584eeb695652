"""When a container's processes are searched for runtimes and programs."""

from __future__ import annotations

import time

from dltools.engine.cgroup import Cgroup
from dltools.engine.process_search import Processes, search

_REST_S = 30.0
"""Seconds between two searches while threads come and go; the first growth is never missed."""

_SOON_S = 2.0
"""Seconds after which a process that begins is looked at again (ours): what it is to load, it may
load later, without another thread."""


class ProcessWatch:
    """One run of one container: it is searched at its first sample, whenever it has more threads
    than ever before, and, twice a minute at most, when their number has changed otherwise.

    As long as nothing tells what it is, it is searched again after as long as it has been watched.
    """

    def __init__(self) -> None:
        """Nothing is searched yet."""
        self._found = Processes()
        self._threads: int | None = None
        self._most = 0
        self._begun: float | None = None
        self._searched_at = 0.0

    def look(
        self, group: Cgroup, threads: int | None, *, is_known: bool, shares_network: bool = False
    ) -> Processes:
        """Return what the processes are. `threads` is how many they have now; `is_known`: something
        stronger tells what the container is; `shares_network`: it has no network of its own."""
        now = time.monotonic()
        if self._begun is None or self._is_due(now, threads, is_known=is_known):
            self._begun = now if self._begun is None else self._begun
            self._found = search(group.processes, shares_network=shares_network)
            self._searched_at, self._threads = now, threads
            self._most = max(self._most, threads or 0)
        return self._found

    def _is_due(self, now: float, threads: int | None, *, is_known: bool) -> bool:
        since = now - self._searched_at
        if threads is not None and threads > self._most:
            return True
        if (threads is None or threads != self._threads) and since >= _REST_S:
            return True
        if is_known or self._found.runtimes or self._found.program:
            return False
        return since >= max(_SOON_S, self._searched_at - (self._begun or 0.0))
