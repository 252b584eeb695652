"""The history of a container: what holds for it, what it has used, and how far it has come.

Policies see it as a `Job`. Times are integer microseconds since the epoch, so that the bounds of
windows are exact.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from dltools import labels as known_labels
from dltools.labels import USER
from dltools.observations.host_samples import GpuUse
from dltools.observations.roles import Judgement, Reports
from dltools.plan.signals.in_force import (
    ALONE,
    NO_RUNTIME,
    NOTHING_KNOWN,
    InForce,
    Member,
    Membership,
    Runtime,
)
from dltools.plan.signals.owner import UNKNOWN_OWNER, Owner, waiting_weight
from dltools.plan.signals.progress import Progress
from dltools.plan.signals.standing import Standing
from dltools.plan.signals.targets import parse
from dltools.plan.signals.use import Use

JITTER = 0.05
"""Share of an interval by which a sample may come early (ours). Without it a sample that comes some
milliseconds early would delay the round until the next sample."""


@dataclass(slots=True)
class ContainerHistory:
    """One container, or a job of several containers.

    `arrived`: when it was first seen in this run (microseconds); `run_id` differs for each run of a
    container. `managed`: whether a plan has ever given it a share or a setting, also in an earlier
    run. `in_force`: its limits and state; `owner`: what its owner asked for. `use`: what it used.
    `progress`: what it has reported. `standing`: what it is to dltools. `membership`: which
    containers make a job with it. `runtime`: what starts threads in it. `observed_user`: the user
    that its rows name.
    """

    id: str
    name: str
    arrived: int
    labels: Mapping[str, str] = field(default_factory=dict)
    managed: bool = False
    in_force: InForce = NOTHING_KNOWN
    owner: Owner = UNKNOWN_OWNER
    use: Use = field(default_factory=Use)
    progress: Progress = field(default_factory=Progress)
    standing: Standing = field(default_factory=Standing)
    membership: Membership = ALONE
    runtime: Runtime = NO_RUNTIME
    observed_user: str | None = None
    run_id: str = field(init=False, default="")

    def __post_init__(self) -> None:
        """Compute `run_id` and its role."""
        self.run_id = f"{self.id}@{self.arrived}"
        self.judge()

    def judge(self) -> None:
        """Compute its role from all that is known of it."""
        progress = self.progress
        self.standing.judge(
            self.labels, Reports(progress.metrics, progress.is_counted, self.labels)
        )

    @property
    def may_be_paused(self) -> bool:
        """Whether it can be paused, and is certainly a training."""
        return self.standing.is_surely_a_training and "pause" not in self.in_force.cannot

    @property
    def waits_up_to(self) -> float:
        """The weight up to which it may be idle because it waits, infinity if it takes turns."""
        return math.inf if self.in_force.turn_s is not None else waiting_weight(self.owner)

    @property
    def user(self) -> str:
        """The user whose job it is, "" if unknown."""
        return self.labels.get(USER, "").strip() or self.observed_user or ""

    @property
    def priority(self) -> float:
        """Its priority among the jobs of its user."""
        return known_labels.priority(self.labels) or 1.0

    @property
    def containers(self) -> tuple[Member, ...]:
        """Its containers: itself if it has no members."""
        return self.membership.members or (Member(self.id, self.name, self.in_force),)

    def label(self, labels: Mapping[str, str]) -> None:
        """Set its labels, and the targets that they give."""
        if labels != self.labels:
            self.labels = labels
            self.progress.targets = parse(labels)
            self.judge()

    def observe(self, observed: Judgement | None) -> None:
        """Set the role that its newest row reports."""
        if observed != self.standing.observed:
            self.standing.observed = observed
            self.judge()

    def add_points(
        self,
        metric: str,
        times: Sequence[int],
        values: Sequence[float],
        steps: Sequence[int | None],
        *,
        curves: bool = False,
    ) -> None:
        """Remember progress points in order of time; with `curves` for the learning curve too."""
        if not times:
            return
        self.use.is_busy = False
        reports, is_new = self.progress.reports, metric not in self.progress.metrics
        self.progress.add(metric, times, values, steps, self.use, curves=curves)
        if reports < self.progress.reports == 2:
            # What compiled and loaded until then says nothing of its training.
            self.use.cpu = self.use.cpu.newest
        if is_new:
            self.judge()

    def note_gpus(self, times: Sequence[int], uses: Sequence[Mapping[str, GpuUse] | None]) -> None:
        """Record from new samples, before their points are added, which GPUs it holds and uses."""
        if self.use.note_gpus(times, uses):
            self.progress.forget_costs()

    def forget(self, until: int) -> None:
        """Drop the samples and points that no window from `until` on needs."""
        self.progress.forget(until)
        self.use.forget(until)
