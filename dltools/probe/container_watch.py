"""Finds the role of a container from its processes, labels and reports, and limits the cost.

`inventory` keeps both watches of each container, `counters` asks them at each sample. To search the
processes of a container costs at least as much as everything else that a sample reads of it. So a
sample searches each new container, whose inspection and log cost even more; of the others it
searches only as many as a tenth of its time allows.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from dltools.engine.cgroup import Cgroup
from dltools.engine.interface import Container
from dltools.engine.process_search import Processes, interactive_program, search
from dltools.observations import roles
from dltools.observations.roles import NO_REPORTS, Judgement, Reports, Rules, Signs
from dltools.probe.progress import Pattern, Point

SEARCH_PART = 0.1
"""Part of the time for reading counters that searches of known containers may take (ours)."""

_REST_S = 30.0
"""Seconds between two searches while threads come and go. The first growth is never missed."""

_SOON_S = 0.5
"""Seconds after which a new process is searched again (ours): it may load its libraries later,
without a new thread. With samples every 2 s that is at its second sample."""

_NEW_S = 10.0
"""Seconds for which a new container is searched before older ones (ours): by then it has loaded its
libraries."""


class ProcessWatch:
    """Decides when the processes of one run of a container are searched.

    That is at its first sample, whenever it has more threads than ever before, and at most twice a
    minute when their number has changed otherwise. While its role is unknown, it is also searched
    whenever the time since its start has doubled.
    """

    def __init__(self) -> None:
        self.found = Processes()
        self.begun: float | None = None
        self.searched_at = 0.0
        self._threads: int | None = None
        self._most = 0

    def is_due(self, now: float, threads: int | None, *, is_known: bool) -> bool:
        """Tell whether to search it now (s, monotonic). `threads`: how many it has; `is_known`:
        whether its role is known from something stronger than its processes."""
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
        """Search its processes. `shares_network`: it has no network of its own."""
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
    """Search the containers that are due: first all that never were searched; then at least one
    more, and others for `budget_s` seconds. Of these, new containers come first, then those whose
    last search is oldest."""
    now = time.monotonic()
    due = [
        candidate
        for candidate in candidates
        if candidate.watch.is_due(now, candidate.threads, is_known=candidate.is_known)
    ]

    def place(run: Searchable) -> tuple[bool, bool, float]:
        begun = run.watch.begun
        return begun is not None, begun is not None and now - begun > _NEW_S, run.watch.searched_at

    until: float | None = None
    for run in sorted(due, key=place):
        if run.watch.begun is not None:
            reached = time.perf_counter()
            if until is None:
                until = reached + budget_s
            elif reached >= until:
                return
        run.watch.search(now, run.group, run.threads, shares_network=run.shares_network)


class RoleWatch:
    """Finds the role of one container. `reports`: all that it has reported since this dl-probe
    started, also in earlier runs of the container."""

    def __init__(self) -> None:
        self.reports = NO_REPORTS
        self._judged_on: Any = None
        self._judgement: Judgement = roles.NO_SIGN

    @property
    def is_known(self) -> bool:
        """Whether its reports alone show its role, which counts more than its processes."""
        return roles.by_reports(self.reports) is not None

    def note(self, points: Iterable[Point], labels: Mapping[str, str]) -> None:
        """Note what it reports. An expression that finds a metric is as good as a step: somebody
        has said what to look for."""
        reports = self.reports
        metrics, is_counted = set(reports.metrics), reports.is_counted
        for point in points:
            metrics.add(point.metric)
            is_counted = is_counted or not (
                point.step is None and point.epoch is None and point.source != Pattern.name
            )
        if metrics and (len(metrics), is_counted) != (len(reports.metrics), reports.is_counted):
            self.reports = Reports(frozenset(metrics), is_counted, labels)

    def look(
        self, container: Container, rules: Rules, processes: Processes | None, device: str
    ) -> Judgement:
        """Return the role of the container; `processes` is None if they are not on this machine."""
        basis = (container.name, self.reports, processes, device)
        if basis != self._judged_on:
            self._judged_on = basis
            searched = processes or Processes(is_readable=False)
            self._judgement = self._judge(container, rules, searched, device)
        return self._judgement

    def _judge(
        self, container: Container, rules: Rules, processes: Processes, device: str
    ) -> Judgement:
        labels = container.labels
        if said := roles.by_word(rules.said(container.name, labels), labels):
            return said
        signs = Signs(
            interactive_program(container.program.command) or processes.program,
            container.network.ports,
            processes.runtimes,
            device,
            processes.is_readable,
            container.network.serves_nodes,
        )
        return roles.by_evidence(signs, self.reports)
