"""The history of a container: what holds for it, what it has used, and how far it has come.

Policies see it as a `Job`. Times are integer microseconds since the epoch, so that the bounds of
windows are exact.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from dltools import labels as known_labels
from dltools.labels import Role
from dltools.observations import roles
from dltools.observations.host_samples import DeviceUse
from dltools.observations.roles import Judgement, Reports
from dltools.observations.targets import parse
from dltools.plan.signals.in_force import InForce, Member, Membership, Owner, Runtime
from dltools.plan.signals.metric_series import Columns
from dltools.plan.signals.progress import Progress
from dltools.plan.signals.resource_use import Use

JITTER = 0.05
"""Share of an interval by which a sample may come early (ours). Without it a sample that comes some
milliseconds early would delay the round until the next sample."""


_REPORTING = (Role.TRAINING, Role.SERVER)
"""Roles that reports can show."""


@dataclass(slots=True)
class Standing:
    """A container's role, and what it follows from: the first four, and its labels and reports."""

    by_option: Judgement | None = None
    """What the user says of its role, None for nothing."""

    earlier: Role | None = None
    """The role that an earlier run of it has shown, None for none."""

    observed: Judgement | None = None
    """The role that its rows report, None for none."""

    is_left_alone: bool = False
    """Whether the user wants it left alone because its owner has not labelled it."""

    protected: bool = field(init=False, default=False)
    """Whether its owner forbids any change."""

    judgement: Judgement = field(init=False, default=roles.NO_SIGN)
    """Its role and the reason."""

    shown: Judgement = field(init=False, default=roles.NO_SIGN)
    """What it is where nobody has said it."""

    has_reported: bool = field(init=False, default=False)
    """Whether it has reported progress in this run."""

    def judge(self, reports: Reports) -> None:
        """Compute what follows from a container's labels, and from its reports in this run."""
        self.protected = known_labels.is_true(reports.labels.get(known_labels.PROTECT))
        self.has_reported = bool(reports.metrics)
        if self.earlier is not None and not self.has_reported:
            self.shown = Judgement(self.earlier, "has reported before it restarted")
        else:
            self.shown = roles.by_row(self.observed, reports)
        self.judgement = roles.by_word(self.by_option, reports.labels) or self.shown

    @property
    def role(self) -> Role:
        """Its role: training, server, interactive or other."""
        return self.judgement.role

    @property
    def reported_role(self) -> Role | None:
        """The role that its reports show, in this run or an earlier one; None without reports, and
        where it only seems to be one."""
        if not self.has_reported:
            return self.earlier
        is_shown = self.shown.role in _REPORTING and not self.shown.is_doubtful
        return self.shown.role if is_shown else None

    @property
    def is_surely_a_training(self) -> bool:
        """Whether it has reported as one, or a label or an option says so."""
        is_sure = self.judgement.is_said or self.reported_role is Role.TRAINING
        return self.role is Role.TRAINING and is_sure

    @property
    def may_be_touched(self) -> bool:
        """Whether dltools may change it: neither a label nor an option forbids that."""
        return not self.protected and not self.is_left_alone


@dataclass(slots=True)
class ContainerHistory:
    """One container, or a job of several containers."""

    id: str
    """The engine's id; of a job of several containers a text made of the name of the job."""

    name: str
    """What people call it."""

    arrived: int
    """When it was first seen in this run (microseconds)."""

    labels: Mapping[str, str] = field(default_factory=dict)
    """Its labels, with those that the user gives to its name."""

    managed: bool = False
    """Whether a plan has ever given it a share or a setting, also in an earlier run."""

    in_force: InForce = field(default_factory=InForce)
    """Its limits and state."""

    owner: Owner = field(default_factory=Owner)
    """What its owner asked for."""

    use: Use = field(default_factory=Use)
    """What it used."""

    progress: Progress = field(default_factory=Progress)
    """What it has reported."""

    standing: Standing = field(default_factory=Standing)
    """What it is to dltools."""

    membership: Membership = field(default_factory=Membership)
    """Which containers make a job with it."""

    runtime: Runtime = field(default_factory=Runtime)
    """What starts threads in it."""

    observed_user: str | None = None
    """The user that its rows name, None for none."""

    run_id: str = field(init=False, default="")
    """What tells this run of it from all others."""

    def __post_init__(self) -> None:
        """Compute `run_id` and its role."""
        self.run_id = f"{self.id}@{self.arrived}"
        self.judge()

    def judge(self) -> None:
        """Compute its role from all that is known of it."""
        progress = self.progress
        self.standing.judge(Reports(progress.metrics, progress.is_counted, self.labels))

    @property
    def may_be_paused(self) -> bool:
        """Whether it can be paused, and is certainly a training."""
        return self.standing.is_surely_a_training and "pause" not in self.in_force.cannot

    @property
    def user(self) -> str:
        """The user whose job it is, "" if unknown."""
        return self.labels.get(known_labels.USER, "").strip() or self.observed_user or ""

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

    def add_points(self, metric: str, points: Columns, *, curves: bool = False) -> None:
        """Remember progress points in order of time; with `curves` for the learning curve too."""
        if not points[0]:
            return
        self.use.is_busy = False
        reports, is_new = self.progress.reports, metric not in self.progress.metrics
        self.progress.add(metric, points, self.use, curves=curves)
        if reports < self.progress.reports == 2:
            # What compiled and loaded until then says nothing of its training.
            self.use.cpu = self.use.cpu.newest
        if is_new:
            self.judge()

    def note_devices(
        self, times: Sequence[int], uses: Sequence[Mapping[str, DeviceUse] | None]
    ) -> None:
        """Record from new samples, before their points are added, which devices it holds and how it
        uses each."""
        begun = [self.use.gpu_use.add(*sample) for sample in zip(times, uses, strict=True)]
        if any(begun):  # its effort counts in another unit from then on
            self.progress.forget_costs()

    def forget(self, until: int) -> None:
        """Drop the samples and points that no window from `until` on needs."""
        self.progress.forget(until)
        self.use.forget(until)
