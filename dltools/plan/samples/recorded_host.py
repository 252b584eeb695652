"""A host read from observations: its history is filled sample by sample, or in stretches.

As long as the same containers run, nothing happens between two rounds that a policy would see, and
the samples in between are added to the history all at once. That is what makes a week of them a
matter of seconds.
"""

from __future__ import annotations

import bisect
import math
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from operator import eq
from typing import TypeVar

from dltools.notation.limits import ASKED, CPU_LIMITS, IN_FORCE, WEIGHT, known_cell
from dltools.notation.resources import union_of_cpus
from dltools.observations.host_samples import HostSamples, Layout, Points
from dltools.observations.roles import from_row
from dltools.plan.hosts.host_history import HostHistory
from dltools.plan.policy.interface import Requirements
from dltools.plan.samples.job_members import Reporters, in_force_at, merged, names_of
from dltools.plan.signals.container_history import ContainerHistory
from dltools.plan.signals.in_force import Membership, Runtime, limits_of

_COUNTED = ("cpu_seconds", "cpu_throttled_seconds", "demand_cores")
"""The columns that differ from sample to sample; most others seldom do."""

_LIMITS = (*(IN_FORCE[name] for name in CPU_LIMITS), *ASKED.values())
"""The columns of what is in force, and of what the owner asked for."""

_N = TypeVar("_N", int, float)

Introduce = Callable[[ContainerHistory, str | None], None]
"""Gives a container its labels, and what the user says of its role, by its name and the text of its
labels."""


@dataclass(slots=True)
class RecordedHost:
    """A host's history and the samples that it is read from."""

    history: HostHistory
    """What is known of the host."""

    layout: Layout = field(default_factory=Layout)
    """Which containers ran at the newest sample."""

    reporters: Reporters = field(default_factory=dict)
    """Whose points count, of jobs of several containers."""

    requirements: Requirements = field(default=Requirements(), compare=False)
    """What the policy requires."""

    samples: HostSamples = field(init=False, default_factory=HostSamples.empty)
    """Those of a table, in which each job of several containers is one."""

    sample_count: int = field(init=False, default=0)
    """How many of `samples` have been reached."""

    recorded_count: int = field(init=False, default=0)
    """How many of these are in the history already."""

    wake_times: dict[str, int] = field(init=False, default_factory=dict)
    """When a job first reports, or meets a target (microseconds), by its id."""

    holds_devices: bool = field(init=False, default=False)
    """Whether a container did at the newest sample that is in the history."""

    laid_out: int = field(init=False, default=0)
    """The number of the sample since which `layout` has held."""

    def begin(self, samples: HostSamples) -> None:
        """Begin with the samples of a table."""
        self.samples = merged(samples, self.reporters)
        self.sample_count = self.recorded_count = self.laid_out = 0
        self.wake_times = {}
        self._note_holders()
        for container in self.history.containers.values():
            self._set_wake_time(container)

    def end(self) -> int | None:
        """Record what has been reached; return the time of the last sample reached, None for none:
        all that is later is to be read again."""
        self.record()
        self.history.forget_bystanders(self.requirements)
        reached = self.samples.times[self.sample_count - 1] if self.sample_count else None
        self.samples = HostSamples.empty()
        self.reporters = {
            job: ids for job, ids in self.reporters.items() if job in self.history.containers
        }
        self.sample_count = self.recorded_count = 0
        return reached

    @property
    def jobs(self) -> frozenset[str]:
        """The jobs of several containers of which some run at the newest sample."""
        low, high = self.samples.bounds[self.sample_count - 1 : self.sample_count + 1]
        return frozenset(filter(None, self.samples.rows["job"][low:high]))

    def next_sample(self, introduce: Introduce) -> None:
        """Move on to the next sample: see which containers came, left or restarted."""
        number = self.sample_count
        layout = self.samples.layout(number)
        if layout != self.layout:
            self.record()
            self._set_containers(number, layout, introduce)
        if self._holds_other_devices(number):
            self.history.containers_changed()
        self.sample_count += 1
        self.history.sampled_at, self.history.decision.actions = self.samples.times[number], ()

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
            or self._holds_other_devices(number)
        )

    def _holds_other_devices(self, number: int) -> bool:
        """Tell whether a container holds other devices at a sample than at the newest one in the
        history."""
        uses = self.samples.devices.get(self.samples.times[number], {})
        if not uses and not self.holds_devices:
            return False
        return any(
            uses.get(key, {}).keys() != container.use.gpu_use.gpus.keys()
            for key, container in self.history.containers.items()
        )

    def _note_holders(self) -> None:
        self.holds_devices = any(
            container.use.gpus for container in self.history.containers.values()
        )

    def _set_containers(self, number: int, layout: Layout, introduce: Introduce) -> None:
        """Begin a history for each container that is new, or restarted, at a sample."""
        running, low = {}, self.samples.bounds[number]
        reasons = self.samples.rows["role_reason"]
        for at, (key, started, text) in enumerate(layout.containers()):
            container = self.history.containers.get(key)
            is_new = container is None or _is_restarted(container.use.started, started)
            if container is None or is_new:
                container = self._new_run(key, container, number)
            container.name = layout.names[at] or container.name
            container.use.started = started or container.use.started
            introduce(container, text)
            container.observe(from_row(layout.roles[at], reasons[low + at]))
            running[key] = container
            if is_new:
                self._set_wake_time(container)
        if not layout.is_reordered(self.layout):
            self.history.containers_changed()
        self.history.containers, self.layout, self.laid_out = running, layout, number
        self.wake_times = {key: time for key, time in self.wake_times.items() if key in running}

    def _new_run(self, key: str, before: ContainerHistory | None, number: int) -> ContainerHistory:
        """Begin a container's history at a sample; drop what is known of its earlier run, but for
        what a plan or its reports have made of it, and its points up to the sample before."""
        container = ContainerHistory(key, key[:12], self.samples.times[number])
        if before is not None:
            container.standing.earlier = before.standing.reported_role
            container.managed = before.managed
            container.owner = before.owner if before.managed else container.owner
        self.history.decision.allocations.pop(key, None)
        if number > 0:
            for points in self.samples.points.get(key, {}).values():
                points.at = points.upto(self.samples.times[number - 1])
        return container

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
        before = history.cpus
        history.cpus = next((size for size in reversed(sizes) if size > 0), None) or before
        said = [text for text in self.samples.cannot[begin:end] if text is not None]
        history.cannot = names_of(said[-1]) if said else history.cannot
        times = self.samples.times[begin:end]
        load = history.load
        load.cores = self.samples.cores or load.cores
        load.busy = load.busy.after(times, self.samples.busy[begin:end], sizes, before)
        low, high, many = self.samples.bounds[begin], self.samples.bounds[end], len(order)
        changed = range(many) if begin <= self.laid_out else self._changed(low, high)
        throttled = rows["cpu_throttled_seconds"][low:high]
        is_throttled = any(map(eq, throttled, throttled))  # NaN equals nothing
        target_met = False
        for number, key in enumerate(order):
            container = history.containers[key]
            use, progress = container.use, container.progress
            seconds = rows["cpu_seconds"][low + number : high : many]
            demands = rows["demand_cores"][low + number : high : many]
            states = rows["state"][low + number : high : many]
            use.note_demand((times, seconds, demands), states, container.in_force)
            if is_throttled:
                use.throttled = use.throttled.after(times, throttled[number::many])
            if number in changed:
                self._set_present(container, high - many + number)
            if self.samples.devices or self.holds_devices or use.resource.is_device:
                uses = [self.samples.devices.get(time, {}).get(key) for time in times]
                container.note_devices(times, uses)
            if number in changed or not (container.owner.is_known or container.managed):
                self._learn_owner(container, slice(low + number, high, many), sizes, before)
            if not progress.metrics:
                weights = rows[WEIGHT][low + number : high : many]
                cells = [known_cell(weight) for weight in weights]
                waits_up_to = container.owner.waits_up_to(container.in_force.turn_s)
                use.note_busy((times, seconds, demands), cells, waits_up_to)
            use.add_samples(times, seconds)
            points = self.samples.points.get(key)
            if points:
                met = (progress.met_first, progress.met_final)
                self._add_points(container, points, times[-1])
                target_met |= (progress.met_first, progress.met_final) != met
        cpusets = (
            container.in_force.limits.get("cpuset") for container in history.containers.values()
        )
        history.cpuset = union_of_cpus(history.cpuset, cpusets)
        self._note_holders()
        return target_met

    def _changed(self, low: int, high: int) -> Collection[int]:
        """Return which containers, by number, differ in rows from `low` to before `high` from the
        sample before, which had the same ones, in more than counters."""
        many = len(self.layout.ids)
        numbers = set[int]()
        for name in self.samples.rows.keys() - _COUNTED:
            column = self.samples.rows[name]
            old, new = column[low - many : high - many], column[low:high]
            if old != new:  # lists of one NaN are equal
                pairs = enumerate(zip(old, new, strict=True))
                numbers |= {at % many for at, (a, b) in pairs if a is not b and a != b}
        return numbers

    def _set_present(self, container: ContainerHistory, row: int) -> None:
        """Set a container's name, state and limits to those of a row."""
        rows = self.samples.rows
        container.name = rows["container_name"][row] or container.name
        container.in_force = in_force_at(rows, row)
        container.use.threads = rows["thread_count"][row]
        container.runtime = Runtime(*(rows[name][row] for name in Runtime._fields))
        container.observed_user = rows["user"][row]
        members = (rows["members"][row] if "members" in rows else None) or ()
        container.membership = Membership(rows["job"][row], members, rows["job_containers"][row])
        container.observe(from_row(rows["role"][row], rows["role_reason"][row]))

    def _learn_owner(
        self, container: ContainerHistory, rows: slice, sizes: Sequence[float], cpus: float
    ) -> None:
        """Learn what a container's owner asked for from rows of samples, at which the host had
        these sizes, and `cpus` before. Where none says it, the first limits that are seen count, of
        a container that no plan has changed."""
        columns = (self.samples.rows[name][rows] for name in _LIMITS)
        owner, before = container.owner, None
        for row in zip(*columns, sizes, strict=True):
            if row == before:
                continue
            before = row
            here, said, cpus = row[:3], row[3:6], row[6] if row[6] > 0 else cpus
            if not math.isnan(said[1]):
                owner = owner.after_sample(limits_of(*said), limits_of(*here))
            elif not (owner.is_known or container.managed):
                owner = owner.when_first_seen(limits_of(*here), cpus)
        container.owner = owner

    def _add_points(
        self, container: ContainerHistory, points: Mapping[str, Points], now: int
    ) -> None:
        """Add a container's progress points up to a time; those before its start are not its."""
        spans: list[tuple[Points, int, int]] = []
        started, progress = container.use.started, container.progress
        for metric, series in points.items():
            low, high = series.at, series.upto(now)
            series.at = high
            if started is not None:
                low = bisect.bisect_left(series.times, started, low, high)
            if low == high:
                continue
            columns = series.times[low:high], series.values[low:high], series.steps[low:high]
            container.add_points(metric, columns, curves=self.requirements.curves)
            spans.append((series, low, high))
        was_counted = progress.is_counted
        progress.step = _newest(spans, "steps", progress.step)
        progress.epoch = _newest(spans, "epochs", progress.epoch)
        if progress.is_counted and not was_counted:
            container.judge()
        progress.note_counts(
            _newest(spans, "epoch_counts", progress.epoch_count),
            _newest(spans, "step_counts", progress.step_count),
        )
        if progress.length is not None:
            reports = [
                (series.times[at], series.steps[at], _epoch(series, at))
                for series, low, high in spans
                for at in range(low, high)
            ]
            progress.note_positions(sorted(reports, key=_by_time), container.use)
        if self.wake_times and self.wake_times.get(container.id, now + 1) <= now:
            self._set_wake_time(container)

    def _set_wake_time(self, container: ContainerHistory) -> None:
        """Note when a job reports for the first or second time, when it meets its target, and when
        another metric, or its first step or epoch, may show it to be another thing than it was."""
        progress, started = container.progress, container.use.started or 0
        targets, is_counted = progress.targets, progress.is_counted
        unmet = targets.final if progress.met_first is not None else targets.first
        looks = self.requirements.targets and progress.met_final is None
        times: list[int] = []
        for name, points in self.samples.points.get(container.id, {}).items():
            is_new = progress.reports < 2 or name not in progress.metrics
            target = unmet if looks and name == targets.metric else None
            if is_counted and not is_new and target is None:
                continue
            first = bisect.bisect_left(points.times, started, points.at)
            news = (
                time
                for at, time in enumerate(points.times[first:], first)
                if is_new
                or (target is not None and targets.meets(points.values[at], target))
                or not (is_counted or (points.steps[at] is None and _epoch(points, at) is None))
            )
            times += islice(news, 1)
        self.wake_times.pop(container.id, None)
        if times:
            self.wake_times[container.id] = min(times)


def _is_restarted(before: int | None, started: int | None) -> bool:
    """Tell whether a container has started anew, by both times, None where one is unknown."""
    return bool(before and started) and before != started


def _newest(spans: Iterable[tuple[Points, int, int]], name: str, before: _N | None) -> _N | None:
    """Return the newest known value of a column of points, each from a place to before another;
    `before` where none is known."""
    newest = []
    for points, low, high in spans:
        column = getattr(points, name)
        for at in range(high - 1, low - 1, -1) if column else ():
            if column[at] is not None and math.isfinite(column[at]):
                newest.append((points.times[at], column[at]))
                break
    return max(newest)[1] if newest else before


def _epoch(points: Points, at: int) -> float | None:
    return known_cell(points.epochs[at]) if points.epochs else None


def _by_time(report: tuple[int, int | None, float | None]) -> tuple[int, float, float]:
    """Return a sort key that does not depend on which metric was read first."""
    time, step, epoch = report
    return time, -1 if step is None else step, -1.0 if epoch is None else epoch
