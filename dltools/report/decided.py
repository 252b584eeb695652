"""Plans and results as part of a run: the classes of its jobs, and the status of its actions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from datetime import UTC
from typing import Any

from dltools.notation.times import parse_time
from dltools.plan.policy.interface import JobClass, Policy, classes_of
from dltools.plan.records import Plan
from dltools.report.run import ClassChange, Run


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
    known = {one.name: one for one in (classes_of(policy) if policy is not None else ())}
    for jobs in plan.classes.values():
        for name, job_class in jobs.items():
            yield name, known.get(job_class) or JobClass(job_class, "", "")


def add_results(run: Run, records: Iterable[Mapping[str, Any]]) -> None:
    """Count the actions of each status."""
    counts = Counter(str(record.get("status")) for record in records)
    for status, count in counts.items():
        run.results[status] = run.results.get(status, 0) + count
