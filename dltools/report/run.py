"""A run as a report sees it: its jobs, and what was measured of them over time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from dltools.plan.realisation.settings import Settings
from dltools.report.outcomes import JobResult

Series = list[tuple[float, float]]
"""Pairs of seconds since the run began and a value."""


@dataclass(slots=True)
class Lane:
    """What was measured of one job: `limit`, the cores that its settings allow; `use`, the cores
    that it used; `classes`, pairs of a time and the class that a policy put it into; `metric`, the
    name of the one to go by, and `progress`, its finite values; `diverged`, whether its last value
    was no number; `migrated`, when it came to another host; `ended`, when it was seen for the last
    time, None where it was still there at the end; `settings`, what limits it had when it was last
    seen, defaults left out."""

    limit: Series = field(default_factory=list)
    use: Series = field(default_factory=list)
    classes: list[tuple[float, str]] = field(default_factory=list)
    metric: str = ""
    progress: Series = field(default_factory=list)
    diverged: bool = False
    migrated: list[float] = field(default_factory=list)
    ended: float | None = None
    settings: Settings = field(default_factory=dict)


@dataclass(slots=True)
class Run:
    """Jobs that shared machines. `repeats` are the jobs' results, a list for each time that the
    run was repeated; times are in seconds since it began, at `begun` (Unix seconds, None for
    virtual time). `satisfied` is how many serving jobs kept their response-time targets, over time;
    `results` counts what became of actions, by status; `counted` tells whether any container was
    observed, and not progress alone."""

    label: str
    repeats: list[list[JobResult]] = field(default_factory=list)
    begun: float | None = None
    lanes: dict[str, Lane] = field(default_factory=dict)
    satisfied: Series = field(default_factory=list)
    results: dict[str, int] = field(default_factory=dict)
    counted: bool = True

    @property
    def jobs(self) -> Sequence[JobResult]:
        """The jobs of the first repeat."""
        return self.repeats[0] if self.repeats else ()

    @property
    def end(self) -> float:
        """When the last job ended, or was last seen (s)."""
        ends = [job.finish for job in self.jobs if job.finish is not None]
        seen = [lane.use[-1][0] for lane in self.lanes.values() if lane.use]
        said = [lane.progress[-1][0] for lane in self.lanes.values() if lane.progress]
        return max([*ends, *seen, *said], default=0.0)
