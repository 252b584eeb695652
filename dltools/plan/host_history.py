"""A host as policies see it: what is remembered of its containers, its rounds, its last grants.

This is where a round is decided, the same for a recording, a live stream and a simulation.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from dltools.plan import queue as queue_module
from dltools.plan import round_timer
from dltools.plan.policy import container_history
from dltools.plan.policy.base import (
    ActionKind,
    Allocation,
    Decision,
    HostState,
    JobAction,
    Requirements,
)
from dltools.plan.policy.container_history import MICRO, ContainerHistory
from dltools.plan.queue import Queue
from dltools.plan.round_timer import RoundTimer


@dataclass(slots=True)
class HostHistory:
    """One host.

    `cpuset`: the most CPUs that its containers were ever seen to have. `sampled_at`: the time of
    its newest sample (microseconds). `actions`: those of that sample. `gain`: that of the last
    round. `queue`: which jobs run first and which wait.
    """

    name: str
    cpus: float = 0.0
    cpuset: str | None = None
    sampled_at: int | None = None
    containers: dict[str, ContainerHistory] = field(default_factory=dict)
    round_timer: RoundTimer = field(default_factory=lambda: RoundTimer(None))
    allocations: dict[str, Allocation] = field(default_factory=dict)
    actions: tuple[JobAction, ...] = ()
    gain: str = ""
    queue: Queue = field(default_factory=Queue)

    def jobs(self) -> tuple[ContainerHistory, ...]:
        """Return the running, unprotected containers that have reported progress, by name."""
        jobs = [
            t for t in self.containers.values() if t.metrics and not t.protected and self.cpus > 0
        ]
        return tuple(sorted(jobs, key=lambda job: (job.name, job.id)))

    def silent(self) -> tuple[ContainerHistory, ...]:
        """Return the running, unprotected containers that have reported nothing yet, by name."""
        silent = [t for t in self.containers.values() if not t.metrics and not t.protected]
        return tuple(sorted(silent, key=lambda job: (job.name, job.id)))

    def node(self, jobs: tuple[ContainerHistory, ...] | None = None) -> HostState:
        """Return the host for a policy."""
        return HostState(
            self.name, self.cpus, self.jobs() if jobs is None else jobs, self.allocations
        )

    def open_round(self, requirements: Requirements, *, met: bool) -> tuple[ContainerHistory, ...]:
        """Return the jobs of a round that is due at the newest sample, () where none is.

        `met` tells that a job has just met a target.
        """
        jobs = self.jobs()
        before = self.round_timer
        self.round_timer = before.listen(jobs, requirements)
        if met and requirements.targets:
            self.round_timer = self.round_timer.interrupted()
        stayed = set(before.run_ids)
        self.allocations = {job.id: self.allocations[job.id] for job in jobs
                       if job.id in self.allocations and job.run_id in stayed}  # fmt: skip
        return jobs if self.round_timer.due(self.sampled_at or 0) else ()

    def close_round(
        self, decision: Decision, requirements: Requirements, jobs: Iterable[ContainerHistory]
    ) -> None:
        """Take on what has been decided, and forget what no later round needs."""
        self.allocations = dict(decision.allocations)
        for key, allocation in self.allocations.items():
            if allocation.share is not None and key in self.containers:
                self.containers[key].managed = True
        self.actions, self.gain = decision.actions, decision.gain
        self.round_timer = self.round_timer.ran(
            self.sampled_at or 0, decision.interval_change, requirements
        )
        self._forget(requirements, jobs)

    # What is forgotten must not tell how a recording was cut up, or two halves would not make a
    # whole: jobs forget when a round has run; who is in no round, up to now.

    def forget_bystanders(self, requirements: Requirements) -> None:
        """Forget what is not needed of who is in no round."""
        run_ids = set(self.round_timer.run_ids) if requirements.windows else ()
        self._forget(requirements, (t for t in self.containers.values() if t.run_id not in run_ids))

    def _forget(self, requirements: Requirements, containers: Iterable[ContainerHistory]) -> None:
        itval = self.round_timer.interval_s or requirements.interval_s or 0.0
        reach = (requirements.windows + 1) * itval if requirements.windows else 0.0
        for container in containers:
            container.forget((self.sampled_at or 0) - round(reach * MICRO))

    def wait_s(self, requirements: Requirements) -> float | None:
        """Return the seconds until the next round, None where time brings none."""
        return (
            self.round_timer.wait_s(self.sampled_at or 0)
            if self.jobs()
            else requirements.interval_s
        )

    def to_json(self) -> dict[str, Any]:
        """Return JSON values from which `load` restores the site."""
        return {
            "cpus": self.cpus,
            "cpuset": self.cpuset,
            "settled": self.sampled_at,
            "tracks": {
                key: container_history.to_json(t) for key, t in sorted(self.containers.items())
            },
            "rounds": self.round_timer.to_json(),
            "grants": {
                key: [g.share, g.job_class, g.reason, g.signal, g.prediction, g.unlimited, g.rank]
                for key, g in sorted(self.allocations.items())
            },
            "orders": [[o.kind.value, o.job_id, o.reason, o.to] for o in self.actions],
            "gain": self.gain,
            "line": self.queue.to_json(),
        }

    def load(self, saved: Mapping[str, Any]) -> None:
        """Restore what was saved. Raises KeyError, TypeError, ValueError or IndexError."""
        self.cpus = float(saved["cpus"])
        self.cpuset = saved["cpuset"]
        self.sampled_at = saved["settled"]
        self.containers = {
            key: container_history.from_json(key, data) for key, data in saved["tracks"].items()
        }
        self.round_timer = round_timer.from_json(saved["rounds"])
        self.allocations = {key: Allocation(*data) for key, data in saved["grants"].items()}
        self.actions = tuple(JobAction(ActionKind(o[0]), o[1], o[2], o[3]) for o in saved["orders"])
        self.gain = saved["gain"]
        self.queue = queue_module.from_json(saved["line"]) if "line" in saved else Queue()
