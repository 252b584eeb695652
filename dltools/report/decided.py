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
    """Yield the names and classes of a plan's jobs; an older plan has them in its state alone."""
    for jobs in plan.classes.values():
        yield from jobs.items()
    hosts = None if plan.classes else plan.state.get("hosts")
    for host in hosts.values() if isinstance(hosts, Mapping) else ():
        tracks = host.get("tracks") or {}
        for key, allocation in (host.get("grants") or {}).items():
            if key in tracks and isinstance(allocation, list) and len(allocation) > 1:
                yield str(tracks[key].get("name")), str(allocation[1])


def add_results(run: Run, records: Iterable[Mapping[str, Any]]) -> None:
    """Count what became of actions, by status."""
    counts = Counter(str(record.get("status")) for record in records)
    for status, count in counts.items():
        run.results[status] = run.results.get(status, 0) + count
