"""SpeCon's choice of a migration: which job, from where, and whether it is worth its pause.

The choice of source, candidate and target is our reconstruction.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

from dltools.notation.times import MICRO
from dltools.plan.policy.base import Cluster, HostState
from dltools.plan.policy.container_history import ContainerHistory
from dltools.plan.policy.growth import cpu_use
from dltools.plan.policy.prediction import refit, remaining

PROGRESSING, WATCHING, CONVERGED = "PC", "WC", "CC"
"""Classes of jobs, by their growth."""


@dataclass(frozen=True, slots=True)
class KnownJob:
    """What is remembered of a job: its best growth efficiency, its class, its newest growth
    efficiency."""

    best: float = 0.0
    job_class: str = PROGRESSING
    growth: float | None = None

    @classmethod
    def load(cls, saved: Any) -> KnownJob:
        """Return what was saved; a state of version 2 has a list."""
        return cls(**saved) if isinstance(saved, Mapping) else cls(*saved)


KnownJobs = Mapping[str, Mapping[str, KnownJob]]
"""By host, then by run of a container."""


@dataclass(frozen=True, slots=True)
class Migration:
    """A migration and the job seconds that it is predicted to save."""

    job: ContainerHistory
    source: str
    target: str
    saves: float


@dataclass(frozen=True, slots=True)
class Choice:
    """The migration to order, None where there is none, and why."""

    migration: Migration | None
    why: str


@dataclass(frozen=True, slots=True)
class Chooser:
    """Chooses among the jobs of a cluster.

    `load`: what makes a host loaded (progressing, jobs or cpu); `pause_s`: seconds that a migration
    takes a job out of training; `moved`: names of jobs that stay where they are.
    """

    cluster: Cluster
    known: KnownJobs
    moved: Collection[str]
    load: str
    pause_s: float

    def choose(self) -> Choice:
        """Return a migration that lowers the heaviest load and saves more than it costs.

        The job is the converged one that grows least, of the host with the most load that holds one
        next to a progressing one; a host that is idle takes any job of the busiest.
        """
        hosts = {name: host for name, host in self.cluster.hosts.items() if host.cpus > 0}
        if len(hosts) < 2:
            return Choice(None, "no migration: one host only")
        loads = {name: self._load(host) for name, host in hosts.items()}
        target = min(sorted(hosts), key=lambda name: loads[name])
        sources = sorted((name for name in hosts if name != target), key=lambda name: loads[name],
                         reverse=True)  # fmt: skip
        for source in sources:
            candidates = self._candidates(hosts[source], is_target_idle=not hosts[target].jobs)
            if candidates:
                job = min(candidates, key=lambda job: self._key(source, job))
                return self._weighed(job, hosts[source], hosts[target])
        return Choice(None, "no migration: no host holds a converged job next to a progressing one")

    def _candidates(self, source: HostState, *, is_target_idle: bool) -> list[ContainerHistory]:
        jobs = [job for job in source.jobs if job.name not in self.moved]
        classes = {job.id: self._known_of(source.name, job).job_class for job in source.jobs}
        converged = [job for job in jobs if classes[job.id] == CONVERGED]
        if is_target_idle and len(source.jobs) > 1:
            return converged or jobs
        return converged if PROGRESSING in classes.values() else []

    def _weighed(self, job: ContainerHistory, source: HostState, target: HostState) -> Choice:
        after = max(self._load(source, -1)[:2], self._load(target, +1)[:2])
        if after >= self._load(source)[:2]:
            return Choice(None, f"no migration: {job.name} on {target.name} would not lower the "
                          "heaviest load")  # fmt: skip
        saves = saved_seconds(job, source, target, self.pause_s)
        if saves <= 0:
            return Choice(None, f"no migration: {job.name} to {target.name} would cost "
                          f"{abs(saves):.3g} s more than it saves")  # fmt: skip
        why = f"{job.name} to {target.name} saves {saves:.3g} job seconds (predicted)"
        return Choice(Migration(job, source.name, target.name, saves), why)

    def _load(self, host: HostState, plus: int = 0) -> tuple[float, float, float]:
        """Return a host's load, the first number by the kind asked for.

        Jobs and CPU use decide among equals. `plus` converged jobs come or go.
        """
        progressing = sum(
            self._known_of(host.name, job).job_class == PROGRESSING for job in host.jobs
        )
        interval = round(self.cluster.interval_s * MICRO)
        cpu = math.fsum(
            cpu_use(job, self.cluster.now, interval, host.cpus).share or 0.0 for job in host.jobs
        )
        jobs = len(host.jobs) + plus
        by_kind = {"progressing": float(progressing), "jobs": float(jobs), "cpu": cpu}
        return by_kind[self.load], float(jobs), cpu

    def _key(self, source: str, job: ContainerHistory) -> tuple[float, str, str]:
        return self._known_of(source, job).growth or 0.0, job.name, job.id

    def _known_of(self, host: str, job: ContainerHistory) -> KnownJob:
        return self.known.get(host, {}).get(job.run_id, KnownJob())


def saved_seconds(
    job: ContainerHistory, source: HostState, target: HostState, pause_s: float
) -> float:
    """Return the job seconds that a migration saves, in equal shares on both hosts (ours).

    The job itself goes faster or slower and pauses; its neighbours on the source are rid of it for
    as long as it would have stayed, those on the target have it. What it still needs is predicted;
    where that is unknown it is as much as it has had.
    """
    refit([job])
    left = remaining(job).seconds
    need = job.attained if left is None or math.isinf(left) else left
    n, m = len(source.jobs), len(target.jobs)
    here = need * n / source.cpus
    there = need * (m + 1) / target.cpus
    return (here - there - pause_s) + here * (n - 1) / n - there * m / (m + 1)
