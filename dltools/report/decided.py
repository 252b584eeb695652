"""Plans and results as part of a run: the classes that a policy put its jobs into, and what became
of its actions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any

from dltools.plan.records import Plan
from dltools.report.run import Run


def add_plans(run: Run, plans: Iterable[Plan]) -> None:
    """Add the class of each job whenever a plan changes it; jobs are known by their names."""
    for plan in plans:
        if not plan.at:
            continue
        moment = datetime.fromisoformat(plan.at).timestamp()
        time = moment if run.begun is None else moment - run.begun
        for name, job_class in _classes(plan):
            lane = run.lanes.get(name)
            if lane is not None and (not lane.classes or lane.classes[-1][1] != job_class):
                lane.classes.append((time, job_class))


def _classes(plan: Plan) -> Iterable[tuple[str, str]]:
    """Yield the names and classes of a plan's jobs."""
    for jobs in plan.classes.values():
        yield from jobs.items()


def add_results(run: Run, records: Iterable[Mapping[str, Any]]) -> None:
    """Count what became of actions, by status."""
    counts = Counter(str(record.get("status")) for record in records)
    for status, count in counts.items():
        run.results[status] = run.results.get(status, 0) + count
