"""The history of a container: its progress points and CPU counter, as far back as a policy needs.

Policies see it as a job. Times are integer microseconds since the epoch, so that the bounds of
windows are exact. Points may come late, twice, or out of order; values may be NaN or infinite. No
data makes this module raise.
"""

from __future__ import annotations

import bisect
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from operator import le

from dltools import labels as known_labels
from dltools.labels import PROTECT, USER, Role, is_true
from dltools.notation.cpu_weights import V2_STEP
from dltools.notation.times import MICRO
from dltools.observations import roles
from dltools.observations.host_samples import GpuUse
from dltools.observations.roles import Judgement, Reports
from dltools.plan.signals.cpu_demand import NOT_THROTTLED, CpuDemand, Throttled
from dltools.plan.signals.effort import GPU_USED, EpochCost, GpuLever, GpuSeconds, value_at
from dltools.plan.signals.metric_series import LearningHistory, Series
from dltools.plan.signals.owner import UNKNOWN_OWNER, Owner
from dltools.plan.signals.paces import Pace
from dltools.plan.signals.targets import NONE, STEP, Length, Targets, length, parse

JITTER = 0.05
"""Share of an interval by which a sample may come early (ours). Without it a sample that comes some
milliseconds early would delay the round until the next sample."""

_SWARM_ID = re.compile("[a-z0-9]{25}")

_REPORTING = (Role.TRAINING, Role.SERVER)
"""Roles that reports can show."""

_BEFORE = (-math.inf, -math.inf)
_EVER = -(2**63)

_BUSY, _IDLE = 0.2, 0.05
"""CPU use in cores from which a silent container counts as busy, and below which it does not."""

_LOOK = MICRO // 2
"""Between samples that are nearer (microseconds) no container is found idle."""

_NEW_S = 5.0
"""A silent container counts as busy from its start, if it is seen this early (s)."""

_FEEDS_S = 300.0
"""For how long (s) after its last use of a GPU a container counts as using it (ours)."""

WAITING_WEIGHT = V2_STEP
"""A container of this weight or less may be idle because it waits in the queue: the second weight
of the mode `priority` is 10 in cgroup v1, and the least possible weight in cgroup v2."""


@dataclass(frozen=True, slots=True)
class Member:
    """One of several containers of a job, with its state and the limits in force; fields as in
    `ContainerHistory`."""

    id: str
    name: str
    state: str = "running"
    cpus: float | None = None
    weight: float | None = None
    turn_s: float | None = None
    cpuset: str | None = None


@dataclass(slots=True)
class ContainerHistory:
    """One container, or a job of several containers. Times are microseconds.

    Identity. `arrived`: when it was first seen in this run; `run_id` differs for each run of a
    container. `protected`: its owner forbids any change. `job`: the job that it is a member of;
    `members`: the containers of that job here, () for a container alone; `job_containers`: how many
    the job has in all, None if unknown.
    Limits in force. `cpus` is the quota in cores and `weight` the relative weight, None if unknown;
    `turn_s` is the length of its turn (s), None if it takes no turns; `cgroup_parent` is the cgroup
    among whose children its weight counts. `owner`: the limits that its owner asked for. `managed`:
    whether a plan has ever given it a share or a setting, also in an earlier run. `cannot`: what
    its engine cannot do with it: names of limits, pause, move.
    Use. `samples` are (time, CPU seconds so far); `cpu` is how many CPUs it wanted and got at the
    newest samples; `throttled`: for how much of the time its quota stopped it; `is_busy`: whether
    it uses CPU, updated until it reports. `openmp_runtime`, `openmp_settings` and `thread_pools`
    are as the columns of these names. `gpu_seconds` are those of the GPUs that it holds;
    `gpu_used_at` is when it was last seen to use one, or to hold one of unknown use.
    Progress. `metrics` has the points of each metric; `met_first` and `met_final` are the times of
    the first points that met its targets; `epoch` and `step` are its newest; `epoch_count` and
    `step_count` are how many it says that it will train; `epoch_cost` is the effort that each
    takes, if a label or the job says how many there are. `reports` counts the different times of
    its points, up to 2; `has_news`: the second was after the last round. `pace` is its progress per
    CPU second, `gpu_lever` how it is brought to its share of GPUs; None while not tracked.
    Role. `judgement` is its role and the reason. It follows from `role_by_option`, from labels,
    from what it has `reported`, from the `earlier_role` that an earlier run has shown, and from
    `observed_role`, which its rows report. `is_left_alone`: the user wants it left alone because
    its owner has not labelled it. `observed_user`: the user that its rows name.
    """

    id: str
    name: str
    host: str
    arrived: int
    started: int | None = None
    state: str = "running"
    labels: Mapping[str, str] = field(default_factory=dict)
    cpus: float | None = None
    weight: float | None = None
    turn_s: float | None = None
    threads: int | None = None
    cpuset: str | None = None
    openmp_runtime: str | None = None
    openmp_settings: str | None = None
    thread_pools: str | None = None
    throttled: Throttled = NOT_THROTTLED
    samples: list[tuple[int, float]] = field(default_factory=list)
    metrics: dict[str, Series] = field(default_factory=dict)
    met_first: int | None = None
    met_final: int | None = None
    epoch: float | None = None
    step: int | None = None
    epoch_count: int | None = None
    step_count: int | None = None
    epoch_cost: EpochCost | None = None
    reports: int = 0
    has_news: bool = False
    targets: Targets = NONE
    managed: bool = False
    is_busy: bool = False
    pace: Pace | None = None
    run_id: str = field(init=False, default="")
    protected: bool = field(init=False, default=False)
    cpu: CpuDemand = field(default_factory=CpuDemand)
    cgroup_parent: str | None = None
    cannot: frozenset[str] = frozenset()
    gpu_seconds: GpuSeconds = field(default_factory=GpuSeconds)
    gpu_used_at: int | None = None
    gpu_lever: GpuLever | None = None
    job: str | None = None
    members: tuple[Member, ...] = ()
    job_containers: int | None = None
    owner: Owner = UNKNOWN_OWNER
    observed_user: str | None = None
    role_by_option: Judgement | None = None
    earlier_role: Role | None = None
    observed_role: Judgement | None = None
    is_left_alone: bool = False
    judgement: Judgement = field(init=False, default=roles.NO_SIGN)

    def __post_init__(self) -> None:
        """Compute `run_id`, `protected` and `judgement`."""
        self.run_id = f"{self.id}@{self.arrived}"
        self.protected = is_true(self.labels.get(PROTECT))
        self.judge()

    def judge(self) -> None:
        """Compute its role from all that is known of it."""
        said = roles.by_word(self.role_by_option, self.labels)
        self.judgement = said or self._judged_by_reports()

    def _judged_by_reports(self) -> Judgement:
        """Return what it is by its reports and its row, where nobody has said it."""
        if self.earlier_role is not None and not self.metrics:
            return Judgement(self.earlier_role, "has reported before it restarted")
        return roles.by_row(self.observed_role, self.reported)

    @property
    def reported(self) -> Reports:
        """What it has reported in this run."""
        is_counted = self.step is not None or self.epoch is not None
        return Reports(self.metrics, is_counted, self.labels)

    @property
    def role(self) -> Role:
        """Its role: training, server, interactive or other."""
        return self.judgement.role

    @property
    def reported_role(self) -> Role | None:
        """The role that its reports show, in this run or an earlier one; None without reports, and
        where it only seems to be one."""
        if not self.metrics:
            return self.earlier_role
        found = self._judged_by_reports()
        return found.role if found.role in _REPORTING and not found.is_doubtful else None

    @property
    def may_be_paused(self) -> bool:
        """Whether it can be paused, and is certainly a training: it has reported, or a label or an
        option says so."""
        is_sure = self.judgement.is_said or self.reported_role is Role.TRAINING
        return self.role is Role.TRAINING and is_sure and "pause" not in self.cannot

    @property
    def user(self) -> str:
        """The user whose job it is, "" if unknown."""
        return self.labels.get(USER, "").strip() or self.observed_user or ""

    @property
    def priority(self) -> float:
        """Its priority among the jobs of its user."""
        return known_labels.priority(self.labels) or 1.0

    @property
    def may_be_touched(self) -> bool:
        """Whether dltools may change it: neither a label nor an option forbids that."""
        return not self.protected and not self.is_left_alone

    @property
    def job_name(self) -> str:
        """The part of its name that stays when its job continues in another container: of Swarm's
        names SERVICE.SLOT.TASK all but the last part."""
        if "." not in self.name:
            return self.name
        job, _, task = self.name.rpartition(".")
        return job if "." in job and _SWARM_ID.fullmatch(task) else self.name

    def label(self, labels: Mapping[str, str]) -> None:
        """Set its labels, and the targets that they give."""
        if labels != self.labels:
            self.labels = labels
            self.protected = is_true(labels.get(PROTECT))
            self.targets = parse(labels)
            self.judge()

    def observe(self, observed: Judgement | None) -> None:
        """Set the role that its newest row reports."""
        if observed != self.observed_role:
            self.observed_role = observed
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
        self.is_busy = False
        self._count_reports(times)
        series = self.metrics.get(metric)
        if series is None:
            series = self.metrics[metric] = Series()
            self.judge()
        new = series.extend(times, values, steps)
        if self.pace is not None and self.pace.metric == metric:
            self.pace = self.pace.reported(times, steps, self.work_at)
        if metric == self.targets.metric and self.targets.first is not None:
            self._meet(times, values)
        if not curves:
            return
        learning = series.learning = series.learning or LearningHistory()
        since = self.effort_since
        if new is not None or times[0] <= since or not all(map(math.isfinite, values)):
            kept = [
                i
                for i in (range(len(times)) if new is None else new)
                if math.isfinite(values[i]) and times[i] > since
            ]
            times, values = [times[i] for i in kept], [values[i] for i in kept]
            steps = [steps[i] for i in kept]
        learning.extend(self.effort_at, times, values, steps)

    def _count_reports(self, times: Sequence[int]) -> None:
        if self.reports < 2:
            known = {time for series in self.metrics.values() for time in series.times[:2]}
            self.reports = min(2, len(known.union(times[:1], times[-1:])))
            self.has_news = self.reports == 2
            if self.has_news:  # what compiled and loaded until then says nothing of its training
                self.cpu = self.cpu.newest

    @property
    def length(self) -> Length | None:
        """How long it will train, None if neither its labels nor its log say so."""
        return length(self.targets, self.epoch_count, self.step_count)

    def note_counts(self, epochs: int | None, steps: int | None) -> None:
        """Record how many epochs, or else steps, the job says that it will train."""
        before = self.length
        self.epoch_count, self.step_count = epochs, steps
        if before and self.length and before.unit != self.length.unit:
            self.epoch_cost = None

    def note_positions(self, reports: Iterable[tuple[int, int | None, float | None]]) -> None:
        """Measure what an epoch or a step costs, from reports (time, step, epoch) in order of time.
        Samples up to these times must be added before."""
        known = self.length
        for time, step, epoch in reports if known is not None else ():
            position = step if known and known.unit == STEP else epoch
            if position is not None and time > self.effort_since:
                cost, report = self.epoch_cost, (float(position), self.effort_at(time))
                self.epoch_cost = cost.after(*report) if cost else EpochCost(*report)

    def _meet(self, times: Sequence[int], values: Sequence[float]) -> None:
        targets = self.targets
        for target, name in ((targets.first, "met_first"), (targets.final, "met_final")):
            if target is None or getattr(self, name) is not None:
                continue
            met = (t for t, v in zip(times, values, strict=True) if targets.meets(v, target))
            setattr(self, name, next(met, None))

    def add_sample(self, time: int, cpu_seconds: float) -> None:
        """Add a counter sample. One that goes back in time or count starts a new record."""
        if self.samples and (time <= self.samples[-1][0] or cpu_seconds < self.samples[-1][1]):
            self.samples.clear()
        self.samples.append((time, cpu_seconds))

    def add_samples(self, times: Sequence[int], seconds: Sequence[float]) -> None:
        """Add counter samples, at least one, with rising times. NaN means no sample."""
        # Never true with a NaN among them: those after a NaN are not greater, nor is it.
        last = self.samples[-1] if self.samples else _BEFORE
        if (
            last[0] < times[0]
            and last[1] <= seconds[0]
            and all(map(le, seconds, islice(seconds, 1, None)))
        ):
            self.samples += zip(times, seconds)  # noqa: B905 (of one length, and often)
            return
        for time, used in zip(times, seconds, strict=True):
            if not math.isnan(used):
                self.add_sample(time, used)

    def note_cpu_use(
        self,
        times: Sequence[int],
        seconds: Sequence[float],
        weights: Sequence[float | None],
        demands: Sequence[float],
    ) -> None:
        """Update `is_busy` from new counter samples, before they are added.

        `weights`: the weight in force at each sample; `demands`: the CPUs wanted (NaN: unknown).
        A container that others keep from the CPUs is busy, too. One that waits in the queue, or
        whose weight is unknown, never becomes idle.
        """
        started = self.started
        last = self.samples[-1] if self.samples else None
        if last is None and started is not None:
            self.is_busy = times[0] - started <= _NEW_S * MICRO
            last = (started, 0.0)
        for time, used, weight, wanted in zip(times, seconds, weights, demands, strict=True):
            if math.isnan(used):
                continue
            self.is_busy |= wanted >= _BUSY
            if last is not None and time > last[0] and used >= last[1]:
                cores = (used - last[1]) * MICRO / (time - last[0])
                waits = weight is None or self.may_wait_at(weight) or self.turn_s is not None
                if cores >= _BUSY:
                    self.is_busy = True
                elif cores < _IDLE and not (waits or wanted >= _BUSY or time - last[0] < _LOOK):
                    self.is_busy = False
            last = (time, used)

    def note_demand(
        self,
        times: Sequence[int],
        demands: Sequence[float],
        seconds: Sequence[float],
        states: Sequence[str | None],
    ) -> None:
        """Update `cpu` from new samples, before their counters are added."""
        last = self.samples[-1] if self.samples else None
        self.cpu = self.cpu.after(
            times, demands, seconds, states, last, self.state, takes_turns=self.turn_s is not None
        )

    def may_wait_at(self, weight: float) -> bool:
        """Tell whether it may be idle at a weight because it waits."""
        return weight <= WAITING_WEIGHT * max(1.0, self.owner.ratio)

    def note_gpus(self, times: Sequence[int], uses: Sequence[Mapping[str, GpuUse] | None]) -> None:
        """Record from new samples, before their points are added, which GPUs it holds and uses.

        When its effort begins to count in GPU seconds, the costs of its learning and epochs in CPU
        seconds are dropped: the two units do not mix.
        """
        for time, use in zip(times, uses, strict=True):
            if use and any(not one.ratio < GPU_USED for one in use.values()):
                self.gpu_used_at = time
            if self.gpu_seconds.add(time, use or {}):
                self.epoch_cost = None
                for series in self.metrics.values():
                    series.forget_learning()

    @property
    def gpus(self) -> tuple[str, ...]:
        """The GPUs that it holds."""
        return tuple(self.gpu_seconds.gpus)

    @property
    def container_ids(self) -> tuple[str, ...]:
        """The ids of its containers: its own id if it has no members."""
        return tuple(member.id for member in self.members) or (self.id,)

    @property
    def lacks_members(self) -> bool:
        """Whether its job has containers that this history does not include."""
        if self.job is None:
            return False
        return max(1, len(self.members)) < (self.job_containers or 2)

    def feeds_gpu(self, now: int) -> bool:
        """Tell whether it trains or serves on a GPU: it has used one within the last minutes, so
        that a validation or a checkpoint does not count as the end."""
        return self.gpu_used_at is not None and now - self.gpu_used_at <= round(_FEEDS_S * MICRO)

    @property
    def is_idle(self) -> bool:
        """Whether it has wanted almost no CPU for a while: it sleeps, and waits for no CPU."""
        return bool(self.samples) and self.cpu.is_quiet_at(self.samples[-1][0])

    @property
    def uses_gpu(self) -> bool:
        """Whether its effort counts in GPU seconds: it has been known to use a GPU."""
        return self.gpu_seconds.since is not None

    @property
    def effort_unit(self) -> str:
        """The unit of its effort, abbreviated."""
        return "GPU s" if self.uses_gpu else "CPU s"

    @property
    def effort_since(self) -> int:
        """The time after which its effort counts in this unit (microseconds)."""
        since = self.gpu_seconds.since
        return _EVER if since is None else since

    @property
    def effort(self) -> float:
        """The CPU seconds that it has had; the GPU seconds since it began to use a GPU."""
        return self.gpu_seconds.samples[-1][1] if self.uses_gpu else self.attained

    def effort_at(self, time: int) -> float:
        """Return its effort up to a time, interpolated between samples (ours)."""
        return value_at(self.gpu_seconds.samples, time) if self.uses_gpu else self.work_at(time)

    def work_at(self, time: int) -> float:
        """Return the CPU seconds used up to a time, interpolated between samples (ours)."""
        if not self.samples or time > self.samples[0][0]:
            return value_at(self.samples, time)
        end, used = self.samples[0]
        start = self.started
        if start is None or not start < end:
            return used
        return used * max(0.0, (time - start) / (end - start))

    def explores(self, seconds: float) -> bool:
        """Tell whether it has had less than this many CPU seconds and has not reported twice: one
        report does not show how fast it progresses. Nor do two that come too soon for a cost of
        each epoch, where its length is known."""
        is_unmeasured = self.epoch_cost is not None and not self.epoch_cost.needs
        return self.attained < seconds and (self.reports < 2 or is_unmeasured)

    @property
    def attained(self) -> float:
        """The CPU seconds that it has had."""
        return self.samples[-1][1] if self.samples else 0.0

    def forget(self, until: int) -> None:
        """Drop the samples and points that no window from `until` on needs."""
        for series in self.metrics.values():
            series.forget(until)
        for samples in (self.samples, self.gpu_seconds.samples):
            at = bisect.bisect_right(samples, (until, math.inf))
            if at > 1:
                del samples[: at - 1]

    def clone(self) -> ContainerHistory:
        """Return a copy that shares nothing that changes."""
        return replace(
            self,
            samples=self.samples[:],
            gpu_seconds=self.gpu_seconds.clone(),
            metrics={name: series.clone() for name, series in self.metrics.items()},
        )
