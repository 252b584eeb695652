"""A host read from observations: its history is filled sample by sample, or in stretches.

As long as the same containers run, nothing happens between two rounds that a policy would see, and
the samples in between are added to the history all at once. That is what makes a week of them a
matter of seconds.
"""

from __future__ import annotations

import bisect
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import TypeVar

from dltools.notation.cpu_lists import union_of_cpus
from dltools.observations.points import Points, points_after
from dltools.observations.samples import HostSamples, Layout, Remainder, pending_sample
from dltools.plan.host_history import HostHistory
from dltools.plan.policy.base import Requirements
from dltools.plan.policy.container_history import ContainerHistory

N = TypeVar("N", int, float)

LabelReader = Callable[[str, str | None], dict[str, str]]
"""From a container's name and the text of its labels to its labels."""


@dataclass(slots=True)
class RecordedHost:
    """A host's history and the samples that it is read from.

    `remainder`: what the samples before have left. `sample_count`: how many of `samples` have been
    reached, `recorded_count` how many of these are in the history already. `layout`: which
    containers ran at the newest sample. `wake_times`: when a job first reports, or meets a target.
    """

    history: HostHistory
    requirements: Requirements
    remainder: Remainder = field(default_factory=Remainder)
    layout: Layout = field(default_factory=Layout)
    samples: HostSamples = field(default_factory=HostSamples.empty)
    sample_count: int = 0
    recorded_count: int = 0
    wake_times: dict[str, int] = field(default_factory=dict)

    def clone(self) -> RecordedHost:
        """Return a copy that shares nothing that changes, for reading the remainder."""
        containers = {key: one.clone() for key, one in self.history.containers.items()}
        allocations = dict(self.history.allocations)
        history = replace(self.history, containers=containers, allocations=allocations)
        return replace(self, history=history)

    def begin_remainder(self) -> None:
        """Begin with the one sample that the samples before have left."""
        self.begin(pending_sample(self.remainder))

    def begin(self, samples: HostSamples) -> None:
        """Begin with samples, those of the remainder before them."""
        self.samples, self.sample_count, self.recorded_count = samples, 0, 0
        self.wake_times = {}
        for container in self.history.containers.values():
            self._set_wake_time(container)

    def end(self, *, all_complete: bool) -> None:
        """Record what has been reached, and keep the remainder for later.

        The last sample remains, unless `all_complete`: more of its rows may come. So do the points
        after it.
        """
        self.record()
        self.history.forget_bystanders(self.requirements)
        samples, count = self.samples, len(self.samples.times)
        reached = samples.times[self.sample_count - 1] if self.sample_count else None
        points = points_after(samples.points, reached)
        self.remainder = Remainder(points=points)
        if not all_complete and count:
            low, high = samples.bounds[count - 1], samples.bounds[count]
            rows = {name: column[low:high] for name, column in samples.rows.items()}
            self.remainder = Remainder(samples.times[-1], samples.sizes[-1], rows, points)
        self.samples = HostSamples.empty()
        self.sample_count = self.recorded_count = 0

    def next_sample(self, labels: LabelReader) -> None:
        """Move on to the next sample: see which containers came, left or restarted."""
        number = self.sample_count
        layout = self.samples.layout(number)
        if layout != self.layout:
            self.record()
            self._set_containers(number, layout, labels)
        self.sample_count += 1
        self.history.sampled_at, self.history.actions = self.samples.times[number], ()

    def is_next_uneventful(self) -> bool:
        """Tell whether nothing happens at the next sample that a policy would see."""
        history, number = self.history, self.sample_count
        now = self.samples.times[number]
        return not (
            self.samples.layout(number) != self.layout
            or any(time <= now for time in self.wake_times.values())
            or (history.cpus == 0 and self.samples.sizes[number] > 0)
            or (history.timer.run_ids and history.timer.is_due(now))
            or history.queue.is_due(now)
        )

    def _set_containers(self, number: int, layout: Layout, labels: LabelReader) -> None:
        """Begin a history for each container that is new, or restarted, at a sample."""
        samples, running = self.samples, {}
        low, now = samples.bounds[number], samples.times[number]
        known = self.history.containers
        for at, (key, started, text) in enumerate(layout.containers(), low):
            before = known.get(key)
            restarted = (before is not None and started and before.started
                         and started != before.started)  # fmt: skip
            is_new = before is None or bool(restarted)
            if before is None or restarted:
                title = samples.rows["container_name"][at] or key[:12]
                managed = before is not None and before.managed
                container = ContainerHistory(key, title, self.history.name, now, managed=managed)
                self._drop_earlier_run(key, number)
            else:
                container = before
            container.started = started or container.started
            container.label(labels(container.name, text))
            running[key] = container
            if is_new:
                self._set_wake_time(container)
        self.history.containers, self.layout = running, layout
        self.history.containers_changed()
        self.wake_times = {key: time for key, time in self.wake_times.items() if key in running}

    def _drop_earlier_run(self, key: str, number: int) -> None:
        """Drop what is known of a container's earlier run, and its points up to the last sample."""
        self.history.allocations.pop(key, None)
        self.wake_times.pop(key, None)
        if number > 0:
            for points in self.samples.points.get(key, {}).values():
                points.at = points.upto(self.samples.times[number - 1])

    def record(self) -> bool:
        """Add all samples reached to the history; the same containers run at all of them.

        Tell whether a job has met a target.
        """
        begin, end, rows = self.recorded_count, self.sample_count, self.samples.rows
        if begin == end:
            return False
        self.recorded_count = end
        history, order = self.history, self.layout.ids
        sizes = self.samples.sizes[begin:end]
        history.cpus = next((size for size in reversed(sizes) if size > 0), None) or history.cpus
        times = self.samples.times[begin:end]
        low, high, many = self.samples.bounds[begin], self.samples.bounds[end], len(order)
        target_met = False
        for number, key in enumerate(order):
            container = history.containers[key]
            seconds = rows["cpu_seconds"][low + number : high : many]
            demands = rows["demand_cores"][low + number : high : many]
            states = rows["state"][low + number : high : many]
            container.note_demand(times, demands, seconds, states)
            self._set_present(container, high - many + number)
            if not container.metrics:
                weights = rows["cpu_weight"][low + number : high : many]
                container.note_cpu_use(times, seconds, [_known(weight) for weight in weights])
            container.add_samples(times, seconds)
            points = self.samples.points.get(key)
            if points:
                before = (container.met_first, container.met_final)
                self._add_points(container, points, times[-1])
                target_met |= (container.met_first, container.met_final) != before
        cpusets = (container.cpuset for container in history.containers.values())
        history.cpuset = union_of_cpus(history.cpuset, cpusets)
        return target_met

    def _set_present(self, container: ContainerHistory, row: int) -> None:
        """Set a container's name, state and limits to those of a row."""
        rows = self.samples.rows
        container.name = rows["container_name"][row] or container.name
        container.state = rows["state"][row] or "running"
        container.cpus = _known(rows["cpu_limit_cores"][row])
        container.weight = _known(rows["cpu_weight"][row])
        container.turn_s = _known(rows["turn_seconds"][row])
        container.threads = rows["thread_count"][row]
        container.cpuset = rows["cpuset"][row]
        container.cgroup_parent = rows["cgroup_parent"][row]
        container.openmp_runtime = rows["openmp_runtime"][row]
        container.openmp_settings = rows["openmp_settings"][row]

    def _add_points(
        self, container: ContainerHistory, points: Mapping[str, Points], now: int
    ) -> None:
        """Add a container's progress points up to a time; those before its start are not its."""
        reports: list[tuple[int, int | None, float | None]] = []
        newest_steps: list[tuple[int, int]] = []
        newest_epochs: list[tuple[int, float]] = []
        for metric, found in points.items():
            low, high = found.at, found.upto(now)
            if low == high:
                continue
            found.at = high
            if container.started is not None and found.times[low] < container.started:
                low = bisect.bisect_left(found.times, container.started, low, high)
                if low == high:
                    continue
            steps, epochs = found.steps[low:high], found.epochs[low:high]
            container.add_points(metric, found.times[low:high], found.values[low:high], steps,
                                 curves=self.requirements.curves)  # fmt: skip
            newest_steps += _newest(found.times[low:high], steps)
            newest_epochs += _newest(found.times[low:high], epochs)
            if container.targets.length is not None:
                reports += zip(found.times[low:high], steps, map(_known, epochs), strict=True)
        container.step = max(newest_steps)[1] if newest_steps else container.step
        container.epoch = max(newest_epochs)[1] if newest_epochs else container.epoch
        container.note_positions(sorted(reports, key=_by_time))
        if self.wake_times and self.wake_times.get(container.id, now + 1) <= now:
            del self.wake_times[container.id]
            self._set_wake_time(container)

    def _set_wake_time(self, container: ContainerHistory) -> None:
        """Note when a job reports for the first or second time, and when it meets its target."""
        points = self.samples.points.get(container.id)
        if not points:
            return
        started, targets = container.started or 0, container.targets
        unmet = targets.final if container.met_first is not None else targets.first
        if container.reports < 2:
            last = max((s.times[-1] for s in container.metrics.values() if s.times), default=-1)
            started = max(started, last + 1)
            times = [
                next((t for t in found.times[found.at :] if t >= started), None)
                for found in points.values()
            ]
        elif self.requirements.targets and unmet is not None and container.met_final is None:
            found = points.get(targets.metric or "", Points())
            rest = zip(found.times[found.at :], found.values[found.at :], strict=True)
            times = [next((t for t, v in rest if t >= started and targets.meets(v, unmet)), None)]
        else:
            return
        known = [time for time in times if time is not None]
        if known:
            self.wake_times[container.id] = min(known)


def _newest(times: Sequence[int], values: Sequence[N | None]) -> list[tuple[int, N]]:
    """Return the newest of a metric's values that is neither None nor NaN, and its time, if any."""
    newest = zip(reversed(times), reversed(values), strict=True)
    return list(
        islice(((t, value) for t, value in newest if value is not None and value == value), 1)
    )


def _by_time(report: tuple[int, int | None, float | None]) -> tuple[int, float, float]:
    """Return a sort key that does not depend on which metric was read first."""
    time, step, epoch = report
    return time, -1 if step is None else step, -1.0 if epoch is None else epoch


def _known(value: float | None) -> float | None:
    return value if value is not None and math.isfinite(value) else None
