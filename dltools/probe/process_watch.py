"""When containers' processes are searched for runtimes and programs.

A search costs as much as all else that a sample reads of a container, or more. So a sample searches
each container that it sees for the first time, whose inspection and log cost more still, and of the
others only as many as a tenth of its time allows.
"""

from __future__ import annotations

import time
from collections.abc import Iterable
from dataclasses import dataclass

from dltools.engine.cgroup import Cgroup
from dltools.engine.process_search import Processes, search

SEARCH_PART = 0.1
"""What searches of containers that are known already may take, of the time that a sample takes to
read counters (ours)."""

_REST_S = 30.0
"""Seconds between two searches while threads come and go; the first growth is never missed."""

_SOON_S = 0.5
"""Seconds after which a process that begins is looked at again (ours): what it is to load, it may
load later, without another thread. At intervals of 2 s that is at its second sample."""

_NEW_S = 10.0
"""For how long a container goes before older ones (s, ours): what it loads, it loads by then."""


class ProcessWatch:
    """One run of one container: it is searched at its first sample, whenever it has more threads
    than ever before, and, twice a minute at most, when their number has changed otherwise.

    As long as nothing tells what it is, it is searched again after as long as it has been watched.
    """

    def __init__(self) -> None:
        self.found = Processes()
        self.begun: float | None = None
        self.searched_at = 0.0
        self._threads: int | None = None
        self._most = 0

    def is_due(self, now: float, threads: int | None, *, is_known: bool) -> bool:
        """Tell whether to search it now (s, monotonic). `threads` is how many it has; `is_known`:
        something stronger than its processes tells what it is."""
        since = now - self.searched_at
        if self.begun is None or (threads is not None and threads > self._most):
            return True
        if (threads is None or threads != self._threads) and since >= _REST_S:
            return True
        if is_known or self.found.runtimes or self.found.program:
            return False
        return since >= max(_SOON_S, self.searched_at - self.begun)

    def search(
        self, now: float, group: Cgroup, threads: int | None, *, shares_network: bool = False
    ) -> None:
        """Look at its processes. `shares_network`: it has no network of its own."""
        self.begun = now if self.begun is None else self.begun
        self.found = search(group.processes, shares_network=shares_network)
        self.searched_at, self._threads = now, threads
        self._most = max(self._most, threads or 0)


@dataclass(frozen=True, slots=True)
class Candidate:
    """A container that may be searched: see `ProcessWatch`."""

    watch: ProcessWatch
    group: Cgroup
    threads: int | None
    is_known: bool
    shares_network: bool = False


def search_due(candidates: Iterable[Candidate], budget_s: float) -> None:
    """Search the containers that are due: all that never were; then, one at least and for so long
    as `budget_s` allows, new ones, and then those that were not searched for longest."""
    now = time.monotonic()
    due = [one for one in candidates if one.watch.is_due(now, one.threads, is_known=one.is_known)]

    def place(one: Candidate) -> tuple[bool, bool, float]:
        begun = one.watch.begun
        return begun is not None, begun is not None and now - begun > _NEW_S, one.watch.searched_at

    until: float | None = None
    for one in sorted(due, key=place):
        if one.watch.begun is not None:
            reached = time.perf_counter()
            if until is None:
                until = reached + budget_s
            elif reached >= until:
                return
        one.watch.search(now, one.group, one.threads, shares_network=one.shares_network)
