"""A job on a host in virtual time: it starts up, works, reports and ends."""

from __future__ import annotations

import math

from dltools.actions.settings import Settings
from dltools.notation.limits import CPU_LIMITS, only
from dltools.observations.outcomes import JobResult
from dltools.plan.signals.container_history import ContainerHistory
from dltools.sim.training_and_serving import Portion, Readers, Report, Serving, Training, without
from dltools.sim.workload import Job

_TURN = ("group", "turn_s")


class SimulatedJob:
    """A job on a host.

    `startup_left`: CPU seconds left of its start-up; `activity`: what it does afterwards. `cpu`:
    CPU seconds used on this host. `limits`: those of all its containers together, with its turn.
    `devices`: the numbers of those that it holds. `unread`: reports that are not yet in the
    policy's history. `observed`: those of all jobs of its host for an observer, None without one.
    """

    def __init__(self, job: Job, result: JobResult, readers: Readers) -> None:
        self.job = job
        self.result = result
        activity = Serving if job.serves else Training
        self.activity = activity(job, result, readers)
        self.devices: tuple[int, ...] = ()
        self.portion = Portion()
        self.unread: list[Report] = []
        self.observed: list[tuple[SimulatedJob, Report]] | None = None

    def start(self, history: ContainerHistory) -> None:
        """Start on a host, with the limits that its owner asked for."""
        job = self.job
        self.history = history
        self.startup_left, self.cpu = job.startup, 0.0
        quota = job.cpus * job.members if job.cpus else None
        self.limits: Settings = {"cpus": quota, "weight": job.cpu_weight * job.members}

    @property
    def busy_threads(self) -> float:
        """The number of its threads that want a CPU while it is awake."""
        return float(self.job.members) if self.startup_left > 0 else self.activity.busy_threads

    @property
    def demand(self) -> float:
        """The mean number of CPUs that its threads want."""
        return self.busy_threads * (self.portion.awake if self.is_working else 1.0)

    @property
    def is_working(self) -> bool:
        """Whether it does its work: not its start-up, its shutdown or a phase."""
        return self.startup_left == 0 and self.activity.is_working

    # Limits

    def set_limits(self, setting: Settings) -> None:
        """Set limits, with a weight for each container, and a turn; without one it takes none."""
        new = only(setting, CPU_LIMITS)
        if "weight" in new:
            new["weight"] *= self.job.members
        self.limits = {**only(self.limits, CPU_LIMITS), **new, **only(setting, _TURN)}

    @property
    def weight(self) -> float:
        """The weight of each of its containers."""
        return self.limits["weight"] / self.job.members

    # Working

    def advance(self, now: float, span: float) -> float:
        """Work for `span` seconds from `now`; return the CPU seconds used."""
        portion = self.portion
        used = portion.cores * span
        self.cpu += used
        self.result.cpu += used
        if self.startup_left > 0:
            self.startup_left = without(self.startup_left, used)
            if self.startup_left == 0:
                self.activity.begin(now + span)
            return used
        made = self.activity.advance(now, span, portion)
        self.unread += made
        if self.observed is not None:
            self.observed += [(self, report) for report in made]
        return used

    def forget_reports(self) -> None:
        """Forget the reports that have been read, or that nobody reads."""
        self.activity.news = math.inf
        self.unread.clear()

    # What comes next

    def is_finished(self, now: float) -> bool:
        """Tell whether it has ended: it has shut down after its work, or served its time."""
        return self.startup_left == 0 and self.activity.is_finished(now)

    def next_change(self, now: float) -> float:
        """Return when its start-up, its work or its life ends, at its present speed (s); infinity
        for never."""
        if self.startup_left == 0:
            return self.activity.next_change(now, self.portion)
        cores = self.portion.cores
        return now + self.startup_left / cores if cores > 0 else math.inf

    def next_news(self, now: float) -> float:
        """Return when it has made, or will make, a report that a round is due for (s); infinity for
        never."""
        if self.startup_left > 0:
            return self.activity.news
        return self.activity.next_news(now, self.portion)
