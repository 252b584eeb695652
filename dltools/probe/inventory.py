"""Keeps the list of the containers that run on a host, each with its cgroup and its sources of
progress.

`sampler` refreshes the inventory at each sample.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from dltools.engine import cgroup, host
from dltools.engine.cgroup import Cgroup
from dltools.engine.cpu_demand import DemandWatch
from dltools.engine.interface import Container, Engine, GoneError, Listed, RefusedError
from dltools.errors import DltoolsError, UnavailableError
from dltools.labels import unknown_labels
from dltools.probe.container_watch import ProcessWatch, RoleWatch
from dltools.probe.progress import Extractor
from dltools.probe.progress.source import Target
from dltools.probe.progress_sources import SourceSet
from dltools.threads import in_threads


@dataclass(slots=True)
class Watched:
    """A container with its cgroup, if visible on this machine, and its sources of progress. `gap`:
    why a part of it cannot be measured. `fault`: why the engine cannot describe it now."""

    container: Container
    cgroup: Cgroup | None
    gap: str | None
    fault: str | None = None
    cgroup_parent: str | None = None
    sources: SourceSet = field(default_factory=SourceSet)
    processes: ProcessWatch = field(default_factory=ProcessWatch)
    demand: DemandWatch = field(default_factory=DemandWatch)
    role: RoleWatch = field(default_factory=RoleWatch)

    @property
    def gaps(self) -> str | None:
        """Why a part of it cannot be measured now, None if all can."""
        return "; ".join(filter(None, (self.gap, self.fault, *self.sources.gaps))) or None


_RELIST_S = 30.0

_REST = 10
"""How many times as long as the engine took to fail to describe a container it is not asked."""


class _Fault(NamedTuple):
    """Why the engine cannot describe a container, and until when it is not asked again (s,
    monotonic)."""

    why: str
    until: float


@dataclass(slots=True)
class _News:
    """What an engine's events have told since it was asked for all. `exited`: ids that it may list
    as running for a moment. `listed_at`: when it was asked (s, monotonic)."""

    is_stale: bool = True
    listed_at: float = 0.0
    started: set[str] = field(default_factory=set)
    exited: set[str] = field(default_factory=set)
    removed: set[str] = field(default_factory=set)

    def note(self, action: str, id_: str) -> None:
        if not action:
            return
        if action == "start":
            self.started.add(id_)
            self.exited.discard(id_)
        elif action == "exit":
            self.exited.add(id_)
        elif action == "remove":
            self.removed.add(id_)
        self.is_stale = True


class Inventory:
    """The containers of one engine. Methods raise the errors of `Engine`."""

    def __init__(
        self, engine: Engine, filters: Mapping[str, list[str]], pattern: Extractor | None = None
    ) -> None:
        """List nothing yet."""
        self.running: dict[str, Watched] = {}
        self.is_followed = False
        """Whether every event is passed to `note_event`: then the engine is asked only after one,
        and twice a minute."""
        self._engine = engine
        self._filters = filters
        self._pattern = pattern
        self._stopped: dict[str, Watched] = {}
        self._just_stopped: list[Watched] = []
        self._mounts = cgroup.mounts()
        self.shared_cgroups = host.shared_cgroups((), self._mounts)
        self._news = _News()
        self._faults: dict[str, _Fault] = {}  # by id, of what the engine cannot describe

    @property
    def all(self) -> Iterable[Watched]:
        """The containers that run, and those that have stopped and may start again."""
        yield from self.running.values()
        yield from self._stopped.values()

    def expire(self) -> None:
        """Ask the engine at the next `refresh`."""
        self._news.is_stale = True

    def distrust(self) -> None:
        """Inspect every container at the next `refresh`, because events may have been lost."""
        self._news.started |= self.running.keys()
        self._news.is_stale = True

    def note_event(self, action: str, id_: str) -> None:
        """Record an event. It may be called from any thread."""
        self._news.note(action, id_)

    def take_stopped(self) -> list[Watched]:
        """Return the containers that have stopped since the last call."""
        stopped, self._just_stopped = self._just_stopped, []
        return stopped

    def refresh(self) -> None:
        """Bring the inventory up to date."""
        now, news = time.monotonic(), self._news
        is_fresh = not news.is_stale and now - news.listed_at < _RELIST_S
        if self.is_followed and is_fresh:
            return
        news.is_stale, news.listed_at = False, now
        started = set(news.started)
        labels, names = self._filters.get("label", ()), self._filters.get("name", ())
        try:
            listed = {
                container.id: container for container in self._engine.containers(labels, names)
            }
        except RefusedError as error:
            news.is_stale = True
            raise UnavailableError(f"the engine lists no containers: {error}") from error
        news.exited &= listed.keys()
        for id_ in tuple(news.exited):
            listed.pop(id_, None)
        self._put_aside(self.running.keys() - listed.keys())
        self._forget_removed()
        due = [id_ for id_ in listed if self._is_new(id_, started) and self._may_ask(id_, now)]
        for id_, answer in zip(due, self._inspect(due), strict=True):
            if isinstance(answer, Container):
                self._watch(answer)
            elif answer is not None:
                self._put_up_with(listed[id_], answer)
        news.started -= started
        for id_ in self.running.keys() & listed.keys():
            _update(self.running[id_], listed[id_])
        groups = [watched.cgroup for watched in self.running.values() if watched.cgroup]
        self.shared_cgroups = host.shared_cgroups(groups, self._mounts)

    def _put_aside(self, ids: Iterable[str]) -> None:
        for id_ in ids:
            watched = self._stopped[id_] = self.running.pop(id_)
            self._faults.pop(id_, None)
            self._just_stopped.append(watched)
            if watched.cgroup is not None:
                watched.cgroup.files.close()

    def _forget_removed(self) -> None:
        while self._news.removed:
            watched = self._stopped.pop(self._news.removed.pop(), None)
            for source in watched.sources.all if watched else ():
                source.close()

    def _is_new(self, id_: str, started: set[str]) -> bool:
        watched = self.running.get(id_)
        if watched is None or id_ in started or watched.fault:
            return True
        return watched.cgroup is not None and not watched.cgroup.exists

    def _inspect(self, ids: list[str]) -> list[Container | _Fault | None]:
        """Return containers as the engine describes them, None for one that is gone, and for others
        why they cannot be described.

        An engine on another machine is asked for many at once; on a local socket the threads would
        cost more than they save (measured).
        """

        def inspect(id_: str) -> Container | _Fault | None:
            begun = time.monotonic()
            try:
                return self._engine.inspect(id_)
            except GoneError:
                return None
            except DltoolsError as error:
                now = time.monotonic()
                return _Fault(str(error), now + _REST * (now - begun))

        if self._engine.is_local:
            return list(map(inspect, ids))
        return in_threads(inspect, ids)

    def _may_ask(self, id_: str, now: float) -> bool:
        fault = self._faults.get(id_)
        return fault is None or now >= fault.until

    def _put_up_with(self, listed: Listed, fault: _Fault) -> None:
        """Keep what is known of a container that the engine cannot describe now. Raises
        `UnavailableError` where the engine is away altogether."""
        self._engine.containers()
        self._faults[listed.id] = fault
        self._news.is_stale = True  # it is asked for again
        if listed.id not in self.running:
            container = Container(listed.id, listed.name, state=listed.state)
            self.running[listed.id] = Watched(container, None, None)
        self.running[listed.id].fault = f"engine: {fault.why}"

    def _watch(self, container: Container) -> None:
        """Watch a container that has started, unless it is already watched since that start."""
        old = self.running.get(container.id)
        self._faults.pop(container.id, None)
        if old is not None:
            old.fault = None
        if old is not None and old.container.started == container.started:
            return
        if old is not None and old.cgroup is not None:
            old.cgroup.files.close()
        earlier = old or self._stopped.pop(container.id, None)
        is_here = bool(container.pid) and container.holds(container.pid)
        group = container.local_cgroup(self._mounts) if is_here else None
        parent = group.parent if group else None
        watched = Watched(container, group, _gap(container, is_here, group), None, parent)
        if earlier is not None:
            watched.sources = earlier.sources
            watched.role.reports = earlier.role.reports
        watched.sources.start(
            Target(self._engine, container, self._pattern, group is not None, self.is_followed)
        )
        self.running[container.id] = watched


def _gap(container: Container, is_here: bool, group: Cgroup | None) -> str | None:
    """Return why a part of a container cannot be measured, and which of its labels are unknown."""
    gaps = unknown_labels(container.dltools_labels)
    if not is_here:
        gaps.insert(0, "counters: its processes are not on this machine")
    elif group is None:
        gaps.insert(0, "counters: its cgroup is not visible here")
    return "; ".join(gaps) or None


def _update(watched: Watched, listed: Listed) -> None:
    """Update what can change without a restart: state and name."""
    old = watched.container
    if (listed.name, listed.state) != (old.name, old.state):
        watched.container = replace(
            old, name=listed.name or old.name, state=listed.state or old.state
        )
