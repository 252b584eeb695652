"""What is remembered of a host: its containers, its last allocations, and when a round is due.

A recording, a live stream and a simulation fill the same history, and the same rounds read it.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from statistics import fmean
from typing import NamedTuple

from dltools.labels import Role
from dltools.notation.times import MICRO
from dltools.plan.policy.interface import (
    Allocation,
    Decision,
    HostState,
    IntervalChange,
    JobAction,
    Requirements,
)
from dltools.plan.realisation.arrangement import Outlook
from dltools.plan.realisation.queue_positions import Queue
from dltools.plan.signals.busy_cpus import CpuLoad, OthersUse
from dltools.plan.signals.container_history import JITTER, ContainerHistory

Jobs = tuple[ContainerHistory, ...]


class Look(NamedTuple):
    """A host's jobs, by name: running trainings, and servers where they are jobs too, that have
    reported progress; those that are `silent` have reported nothing yet."""

    jobs: Jobs
    silent: Jobs


@dataclass(slots=True)
class LastDecision:
    """What was decided in the last round: `allocations`, by job id; `actions`, which are those of
    the newest sample; and `gain`, what it is expected to bring."""

    allocations: dict[str, Allocation] = field(default_factory=dict)
    actions: tuple[JobAction, ...] = ()
    gain: str = ""


@dataclass(slots=True)
class HostHistory:
    """One host."""

    name: str
    """What its rows call it."""

    cpus: float = 0.0
    """Usable CPUs, 0 where unknown."""

    cpuset: str | None = None
    """The most CPUs that its containers were ever seen to have, None before any is known."""

    sampled_at: int | None = None
    """The time of its newest sample (microseconds), None before one."""

    containers: dict[str, ContainerHistory] = field(default_factory=dict)
    """Those that run, by id."""

    timer: RoundTimer = field(default_factory=lambda: RoundTimer(None))
    """When the next round is due."""

    decision: LastDecision = field(default_factory=LastDecision)
    """What was decided in the last round."""

    queue: Queue = field(default_factory=Queue)
    """Which jobs run first, which wait."""

    outlook: Outlook = field(default_factory=Outlook)
    """What its next arrangement is judged by."""

    load: CpuLoad = field(default_factory=CpuLoad)
    """How busy its CPUs are."""

    jobs_elsewhere: frozenset[str] = frozenset()
    """Jobs of which other hosts run containers."""

    cannot: frozenset[str] = frozenset()
    """What its engine can do with no container: names of limits, pause, move."""

    has_servers: bool = False
    """Whether servers are jobs too, and not trainings alone."""

    looks_after_changes: bool = False
    """Whether who samples it looks again after each change by itself, and in between there is
    nothing new to see, as in a simulation."""

    def look(self) -> Look:
        """Return who its jobs are at its newest sample, without those that must not be touched."""
        groups: tuple[list[ContainerHistory], list[ContainerHistory]] = ([], [])
        for container in self.containers.values() if self.cpus > 0 else ():
            if self._is_job(container):
                groups[not container.progress.metrics].append(container)
        return Look(*map(_by_name, groups))

    def jobs(self) -> Jobs:
        """Return the jobs that have reported progress, by name."""
        return self.look().jobs

    def no_longer_jobs(self) -> Jobs:
        """Return the containers, by name, that were given settings as jobs and are none any more:
        one that seemed to train has turned out to serve."""
        return _by_name(
            c
            for c in self.containers.values()
            if c.managed and not c.standing.protected and not self._is_job(c)
        )

    def _is_job(self, container: ContainerHistory) -> bool:
        roles = (Role.TRAINING, Role.SERVER) if self.has_servers else (Role.TRAINING,)
        return container.standing.role in roles and container.standing.may_be_touched

    def note_others(self, look: Look) -> None:
        """Measure what programs that are no jobs use, at the newest sample. Where the host's own
        use is unknown, it is that of the other containers."""
        if self.cpus <= 0:
            return
        jobs, load = (*look.jobs, *look.silent), self.load
        if load.busy.samples:
            attained = {job.run_id: job.use.attained for job in jobs}
            load.others = load.others.after(*load.busy.samples[-1], attained, self.cpus)
            return
        ids = {job.id for job in jobs}
        others = [
            container.use.cpu.cores
            for container in self.containers.values()
            if container.id not in ids and container.use.cpu.cores
        ]
        load.others = OthersUse(sum(map(fmean, others)) / self.cpus)

    def containers_changed(self) -> None:
        """Have the settings looked at with the next sample: a container came, left or restarted."""
        self.queue = replace(self.queue, due=0)

    def state(self, jobs: Jobs | None = None) -> HostState:
        """Return the host as policies see it, with its jobs or some of them."""
        jobs = self.jobs() if jobs is None else jobs
        return HostState(
            self.name,
            self.cpus,
            jobs,
            self.decision.allocations,
            self.sampled_at,
            self.load.busy.is_contested,
            self.load.busy.share(self.cpus),
            self.jobs_elsewhere,
            others=self.load.others.share,
            cannot=self.cannot,
        )

    def start_round(self, requirements: Requirements, jobs: Jobs, *, is_interrupted: bool) -> Jobs:
        """Return the jobs of the round that is due at the newest sample, () where none is.

        `is_interrupted`: something has happened for which the next round must not wait.
        """
        before = self.timer
        self.timer = before.with_jobs(jobs, requirements)
        if is_interrupted:
            self.timer = replace(self.timer, last=None)
        stayed, given = set(before.run_ids), self.decision.allocations
        self.decision.allocations = {
            job.id: given[job.id] for job in jobs if job.id in given and job.run_id in stayed
        }
        return jobs if self.timer.is_due(self.sampled_at or 0) else ()

    def finish_round(self, decision: Decision, requirements: Requirements, jobs: Jobs) -> None:
        """Keep what has been decided, and drop the history that no later round needs."""
        given = dict(decision.allocations)
        self.decision = LastDecision(given, decision.actions, decision.gain)
        for job in jobs:
            job.progress.has_news = False
        for key, allocation in given.items():
            if allocation.share is not None and key in self.containers:
                self.containers[key].managed = True
        compared = self.outlook.compared
        self.outlook.compared = compared and compared.outdated()
        self.timer = self.timer.after_round(
            self.sampled_at or 0, decision.interval_change, requirements
        )
        since = self.timer.needed_since(self.sampled_at or 0, requirements)
        for job in jobs:
            job.forget(since)

    # What is dropped must not depend on where a recording was cut, or two halves would not make a
    # whole: jobs drop history when a round has run; containers in no round, up to now.

    def forget_bystanders(self, requirements: Requirements) -> None:
        """Drop the history of containers that take part in no round."""
        run_ids = set(self.timer.run_ids) if requirements.windows else ()
        since = self.timer.needed_since(self.sampled_at or 0, requirements)
        for container in self.containers.values():
            if container.run_id not in run_ids:
                container.forget(since)

    def wait_s(self, requirements: Requirements) -> float | None:
        """Return the seconds until the next round, None where time brings none."""
        if not self.jobs():
            return requirements.interval_s
        return self.timer.wait_s(self.sampled_at or 0)


def _by_name(containers: Iterable[ContainerHistory]) -> Jobs:
    return tuple(sorted(containers, key=lambda job: (job.name, job.id)))


@dataclass(frozen=True, slots=True)
class RoundTimer:
    """When a policy runs: every interval, at once when a job arrives or leaves, less often while
    nothing changes. This is FlowCon's pair of listeners and its exponential back-off, kept as data,
    for every policy.

    The interval in force (seconds; None: no rounds by time), when the last round ran
    (microseconds; None: one is due), and with which jobs."""

    interval_s: float | None
    last: int | None = None
    run_ids: tuple[str, ...] = ()

    def is_due(self, now: int) -> bool:
        """Tell whether the interval has passed, but for the samplers' jitter."""
        if self.last is None or self.interval_s is None:
            return self.last is None
        return now - self.last >= round(self.interval_s * MICRO * (1 - JITTER))

    @property
    def has_fallen_idle(self) -> bool:
        """Whether there are no jobs, and no round has seen that yet."""
        return not self.run_ids and self.last is None

    def needed_since(self, now: int, requirements: Requirements) -> int:
        """Return the time since which a policy's windows need the history of jobs."""
        interval_s = self.interval_s or requirements.interval_s or 0.0
        reach_s = (requirements.windows + 1) * interval_s if requirements.windows else 0.0
        return now - round(reach_s * MICRO)

    def with_jobs(self, jobs: Iterable[ContainerHistory], requirements: Requirements) -> RoundTimer:
        """Return the timer for these jobs.

        Where one has arrived or left, the interval is reset and a round is due.
        """
        run_ids = tuple(sorted(job.run_id for job in jobs))
        if run_ids == self.run_ids:
            return self
        return RoundTimer(requirements.interval_s, None, run_ids)

    def after_round(
        self, now: int, change: IntervalChange, requirements: Requirements
    ) -> RoundTimer:
        """Return the timer after a round at `now`, the interval kept, doubled or reset."""
        interval_s = self.interval_s
        if change is IntervalChange.RESET:
            interval_s = requirements.interval_s
        elif change is IntervalChange.DOUBLE and interval_s is not None:
            interval_s = min(2 * interval_s, max(interval_s, requirements.longest_interval_s))
        return RoundTimer(interval_s, now, self.run_ids)

    def wait_s(self, now: int) -> float | None:
        """Return the seconds from `now` until the next round; None where time brings none."""
        if self.last is None or self.interval_s is None:
            return self.interval_s
        return max(0.0, (self.last - now) / MICRO + self.interval_s)
