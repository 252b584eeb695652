"""Walking a host through its feed: samples are settled one after the other, and taken in stretches.

As long as the same containers run, nothing happens between two rounds that a policy would see, and
the samples in between are added to what is remembered all at once. That is what makes a week of
them a matter of seconds.
"""

from __future__ import annotations

import bisect
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from dltools.cpus import widest
from dltools.observations import samples as feeds
from dltools.observations.samples import HostSamples, Points, Remainder
from dltools.plan.host_history import HostHistory
from dltools.plan.policy.base import Requirements
from dltools.plan.policy.container_history import ContainerHistory

Labels = Callable[[str, str | None], dict[str, str]]
"""From a container's name and the text of its labels to its labels."""


def _nothing() -> HostSamples:
    return HostSamples([], [], [], [0], {}, {})


@dataclass(slots=True)
class RecordedHost(HostHistory):
    """A host and the feed that it is walked through: `reached` of its ticks are settled, `taken` of
    these are in the tracks already. `rest` is what the feed before has left."""

    rest: Remainder = field(default_factory=Remainder)
    feed: HostSamples = field(default_factory=_nothing)
    reached: int = 0
    taken: int = 0
    layout: tuple[list[str], list[int | None], list[str | None]] = field(
        default_factory=lambda: ([], [], [])
    )
    alarms: dict[str, int] = field(default_factory=dict)  # when a job first speaks, meets a target

    def clone(self) -> RecordedHost:
        """Return a copy that shares nothing that changes."""
        containers = {key: container.clone() for key, container in self.containers.items()}
        return replace(self, containers=containers, allocations=dict(self.allocations))

    def begin(self, feed: HostSamples, requirements: Requirements) -> None:
        """Go on with a feed, that of the rest before it."""
        self.feed, self.reached, self.taken, self.alarms = feed, 0, 0, {}
        for container in self.containers.values():
            self._set_alarm(container, requirements)

    def end(self, requirements: Requirements, *, whole: bool) -> None:
        """Take what is settled; keep the rest for later: the last tick, unless that is settled
        too (`whole`), and the points after it."""
        self.take(requirements)
        self.forget_bystanders(requirements)
        feed, ticks = self.feed, len(self.feed.times)
        settled = feed.times[self.reached - 1] if self.reached else None
        points = feeds.ungrouped(feed.points, settled)
        self.rest = Remainder(points=points)
        if not whole and ticks:
            low, high = feed.bounds[ticks - 1], feed.bounds[ticks]
            rows = {name: column[low:high] for name, column in feed.rows.items()}
            self.rest = Remainder(feed.times[-1], feed.sizes[-1], rows, points)
        self.feed = _nothing()
        self.reached = self.taken = 0

    def settle_tick(self, requirements: Requirements, labels: Labels) -> None:
        """Settle the next tick: see who has come, gone or restarted."""
        tick = self.reached
        layout = self.feed.layout(tick)
        if layout != self.layout:
            self.take(requirements)
            self._arrive(tick, layout, requirements, labels)
        self.reached += 1
        self.sampled_at, self.actions = self.feed.times[tick], ()

    def is_quiet(self) -> bool:
        """Tell whether nothing happens at the next tick that a policy would see."""
        tick = self.reached
        now = self.feed.times[tick]
        return not (
            self.feed.layout(tick) != self.layout
            or any(time <= now for time in self.alarms.values())
            or (self.cpus == 0 and self.feed.sizes[tick] > 0)
            or (self.round_timer.run_ids and self.round_timer.due(now))
            or self.queue.is_due(now)
        )

    def _arrive(self, tick: int, layout: Any, requirements: Requirements, labels: Labels) -> None:
        """Make the tracks of the containers that run at a tick."""
        feed, low, containers = self.feed, self.feed.bounds[tick], {}
        for at, (key, started, text) in enumerate(zip(*layout, strict=True), low):
            container = self.containers.get(key)
            known = container is not None
            if container is None or (
                started and container.started and started != container.started
            ):
                known, managed = False, container is not None and container.managed
                title = feed.rows["container_name"][at] or key[:12]
                container = ContainerHistory(
                    key, title, self.name, arrived=feed.times[tick], managed=managed
                )
                self.allocations.pop(key, None)
                self.alarms.pop(key, None)
                if tick > 0:  # what it said while it was not seen to run is nobody's
                    for points in feed.points.get(key, {}).values():
                        points.at = points.upto(feed.times[tick - 1])
            container.started = started or container.started
            container.label(labels(container.name, text))
            containers[key] = container
            if not known:
                self._set_alarm(container, requirements)
        self.containers, self.layout = containers, layout
        self.alarms = {key: time for key, time in self.alarms.items() if key in containers}

    def take(self, requirements: Requirements) -> bool:
        """Bring the tracks up to the last settled tick; the same containers run at all of them.

        Tell whether one has met a target.
        """
        begin, end, feed, rows = self.taken, self.reached, self.feed, self.feed.rows
        if begin == end:
            return False
        met = False
        self.taken = end
        size = next((s for s in reversed(feed.sizes[begin:end]) if s > 0), None)
        self.cpus = size or self.cpus
        times, order = feed.times[begin:end], self.layout[0]
        low, high, many = feed.bounds[begin], feed.bounds[end], len(order)
        for number, key in enumerate(order):
            container = self.containers[key]
            last = high - many + number
            container.name = rows["container_name"][last] or container.name
            container.state = rows["state"][last] or "running"
            container.cpus = _known(rows["cpu_limit_cores"][last])
            container.weight = _known(rows["cpu_weight"][last])
            container.turn_s = _known(rows["turn_seconds"][last])
            container.threads = rows["thread_count"][last]
            container.cpuset = rows["cpuset"][last]
            container.add_samples(times, rows["cpu_seconds"][low + number : high : many])
            own = feed.points.get(key)
            if own:
                before = (container.met_first, container.met_final)
                self._take_points(container, own, times[-1], requirements)
                met = met or (container.met_first, container.met_final) != before
        self.cpuset = widest(
            self.cpuset, (container.cpuset for container in self.containers.values())
        )
        return met

    def _take_points(
        self,
        container: ContainerHistory,
        own: Mapping[str, Points],
        now: int,
        requirements: Requirements,
    ) -> None:
        for metric, points in own.items():
            low, high = points.at, points.upto(now)
            if low == high:
                continue
            points.at = high
            if container.started is not None and points.times[low] < container.started:
                low = bisect.bisect_left(points.times, container.started, low, high)
                if low == high:
                    continue
            steps, epochs = points.steps[low:high], points.epochs[low:high]
            container.add_points(metric, points.times[low:high], points.values[low:high], steps,
                             curves=requirements.curves)  # fmt: skip
            container.step = next((s for s in reversed(steps) if s is not None), container.step)
            container.epoch = next((e for e in reversed(epochs) if e == e), container.epoch)
        if self.alarms and self.alarms.get(container.id, now + 1) <= now:
            del self.alarms[container.id]
            self._set_alarm(container, requirements)

    def _set_alarm(self, container: ContainerHistory, requirements: Requirements) -> None:
        """Note when a job that has said nothing yet does, and when one meets its next target."""
        own = self.feed.points.get(container.id)
        if not own:
            return
        started, targets = container.started or 0, container.targets
        unmet = targets.final if container.met_first is not None else targets.first
        if not container.metrics:
            times = [
                next((t for t in points.times[points.at :] if t >= started), None)
                for points in own.values()
            ]
        elif requirements.targets and unmet is not None and container.met_final is None:
            points = own.get(targets.metric or "", Points())
            rest = zip(points.times[points.at :], points.values[points.at :], strict=True)
            times = [next((t for t, v in rest if t >= started and targets.meets(v, unmet)), None)]
        else:
            return
        known = [time for time in times if time is not None]
        if known:
            self.alarms[container.id] = min(known)

    def to_json(self) -> dict[str, Any]:
        """Return JSON values from which `load` restores the walk between two feeds."""
        layout = [list(column) for column in self.layout]
        return HostHistory.to_json(self) | {"layout": layout, "rest": self.rest.to_json()}

    def load(self, saved: Mapping[str, Any]) -> None:
        """Restore what was saved. Raises KeyError, TypeError, ValueError or IndexError."""
        HostHistory.load(self, saved)
        ids, starts, texts = saved["layout"]
        self.layout = (list(ids), list(starts), list(texts))
        self.rest = feeds.rest_from_json(saved["rest"])
        if set(ids) != set(self.containers):
            raise ValueError("the layout names other containers than the tracks")


def _known(value: float | None) -> float | None:
    return value if value is not None and math.isfinite(value) else None
