"""A run, as reports need it: its jobs with their timelines, the plans, and the results of actions.

`dltools.report.observed_run` makes a run from a recording. Plans and results are added to it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC
from typing import Any, NamedTuple

from dltools.actions.plans import Plan
from dltools.actions.settings import Settings
from dltools.notation.times import parse_time
from dltools.observations.container_records import Series
from dltools.observations.outcomes import JobResult
from dltools.plan.policy.interface import JobClass, Policy, classes_of


@dataclass(slots=True)
class Run:
    """Jobs that shared hosts."""

    label: str
    """What reports call it."""

    repeats: list[list[JobResult]] = field(default_factory=list)
    """The results of the jobs, a list for each repetition; times are in seconds since the run
    began."""

    begun: float | None = None
    """When the run began (Unix seconds), None for virtual time."""

    timelines: dict[str, Timeline] = field(default_factory=dict)
    """By job name."""

    results: Counter[str] = field(default_factory=Counter)
    """The number of actions, by status."""

    is_sampled: bool = True
    """Whether containers were observed, not only progress."""

    seeds: Sequence[int] = ()
    """The seed of each repetition, () where none is known."""

    idle_joules: float = 0.0
    """The energy that no container used (J)."""

    @property
    def jobs(self) -> Sequence[JobResult]:
        """The jobs of the first repetition."""
        return self.repeats[0] if self.repeats else ()

    @property
    def end(self) -> float:
        """When the last job ended, or was last seen (s)."""
        lines = self.timelines.values()
        ends = [*(job.finish for job in self.jobs), *(line.ended for line in lines)]
        series = [series_points for line in lines for series_points in (line.use, line.progress)]
        times = [end for end in ends if end is not None]
        return max([*times, *(points[-1].time for points in series if points)], default=0.0)


@dataclass(slots=True)
class Timeline:
    """What was measured of one job, in seconds since the run began."""

    limit: Series = field(default_factory=list)
    """The cores that it may use."""

    bound: Series = field(default_factory=list)
    """The same while its settings hold it back, else NaN."""

    use: Series = field(default_factory=list)
    """The cores that it used."""

    classes: list[ClassChange] = field(default_factory=list)
    """The classes that a policy put it into."""

    metric: str = ""
    """The metric to judge it by, "" for none."""

    progress: Series = field(default_factory=list)
    """The finite values of this metric."""

    has_diverged: bool = False
    """Whether its last value was not finite."""

    migrated: list[float] = field(default_factory=list)
    """When it came to another host."""

    ended: float | None = None
    """When it exited, or else was last seen; None for a job that was there at the end."""

    paused: float = 0.0
    """For how many seconds it was paused."""

    held_back: float = 0.0
    """For how many seconds its weight or quota let it do almost nothing."""

    settings: Settings = field(default_factory=Settings)
    """Its limits when it was last seen, without those at their defaults."""


class ClassChange(NamedTuple):
    """When a policy put a job into a class."""

    time: float
    """Seconds since the run began."""

    job_class: JobClass
    """The class from then on."""


def add_plans(run: Run, plans: Iterable[Plan], policies: Mapping[str, Policy]) -> None:
    """Add the class of each job whenever a plan changes it.

    Jobs are known by their names. The policies by name say what their classes mean.
    """
    for plan in plans:
        if not plan.at:
            continue
        time = parse_time(plan.at, UTC).timestamp() - (run.begun or 0.0)
        for name, job_class in _classes(plan, policies.get(plan.policy)):
            timeline = run.timelines.get(name)
            if timeline is None:
                continue
            if not timeline.classes or timeline.classes[-1].job_class != job_class:
                timeline.classes.append(ClassChange(time, job_class))


def _classes(plan: Plan, policy: Policy | None) -> Iterable[tuple[str, JobClass]]:
    """Yield the names and classes of a plan's jobs. A class that the policy does not name has no
    word."""
    by_name = {kind.name: kind for kind in (classes_of(policy) if policy is not None else ())}
    for jobs in plan.classes.values():
        for name, job_class in jobs.items():
            yield name, by_name.get(job_class) or JobClass(job_class, "", "")


def add_results(run: Run, records: Iterable[Mapping[str, Any]]) -> None:
    """Count the actions of each status."""
    run.results.update(str(record.get("status")) for record in records)
