"""What a container is, from its processes, labels and reports, and when those are searched.

`inventory` keeps both watches of each container, `counters` asks them at each sample. A search of
processes costs as much as all else that a sample reads of a container, or more. So a sample
searches each container that it sees for the first time, whose inspection and log cost more still,
and of the others only as many as a tenth of its time allows.
"""

from __future__ import annotations

import time
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from dltools.engine.cgroup import Cgroup
from dltools.engine.interface import Container
from dltools.engine.process_search import Processes, interactive_program, search
from dltools.observations import roles
from dltools.observations.roles import Judgement, Rules, Signs

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
class Searchable:
    """A container that may be searched: see `ProcessWatch`."""

    watch: ProcessWatch
    group: Cgroup
    threads: int | None
    is_known: bool
    shares_network: bool = False


def search_due(candidates: Iterable[Searchable], budget_s: float) -> None:
    """Search the containers that are due: all that never were; then, one at least and for so long
    as `budget_s` allows, new ones, and then those that were not searched for longest."""
    now = time.monotonic()
    due = [one for one in candidates if one.watch.is_due(now, one.threads, is_known=one.is_known)]

    def place(one: Searchable) -> tuple[bool, bool, float]:
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


@dataclass(slots=True)
class RoleWatch:
    """One container: `metrics` are the names of those that it has reported in this run of the
    probe, in earlier runs of the container too."""

    metrics: set[str] = field(default_factory=set)
    _judged_on: Any = None
    _judgement: Judgement = roles.NO_SIGN

    @property
    def has_reported(self) -> bool:
        """Whether reports tell what it is, which is stronger than what its processes are."""
        return bool(self.metrics)

    def look(
        self, container: Container, rules: Rules, processes: Processes | None, *, has_gpu: bool
    ) -> Judgement:
        """Return what the container is; `processes` is None where they are not on this machine."""
        basis = (container.name, len(self.metrics), processes, has_gpu)
        if basis != self._judged_on:
            self._judged_on = basis
            self._judgement = self._judge(container, rules, processes or Processes(), has_gpu)
        return self._judgement

    def _judge(
        self, container: Container, rules: Rules, processes: Processes, has_gpu: bool
    ) -> Judgement:
        labels = container.labels
        word = roles.by_word(rules.said(container.name, labels), labels)
        if known := word or roles.by_reports(self.metrics):
            return known
        program = interactive_program(container.command) or processes.program
        return roles.by_signs(
            Signs(
                program,
                container.network.ports,
                processes.runtimes,
                has_gpu,
                processes.is_readable,
                container.network.serves_nodes,
            )
        )
