"""Observations as a run: when each container came and went, what it got, and what it reported."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import pairwise
from typing import TYPE_CHECKING

from dltools import labels
from dltools.errors import DataError
from dltools.notation.cpu_lists import parse_cpus
from dltools.observations import metrics
from dltools.observations.sample_reader import chunks, samples_by_host
from dltools.observations.samples import HostSamples, Rows
from dltools.observations.schema import DEFAULT_CPU_WEIGHT
from dltools.plan.policy.targets import Targets, parse
from dltools.plan.realisation.settings import Settings
from dltools.report.fates import exit_codes, told
from dltools.report.outcomes import JobResult, satisfies
from dltools.report.run import Lane, Run, Series

if TYPE_CHECKING:
    import pyarrow as pa

_MICRO = 1e6
_Row = tuple[float, str, float, float, float, float, float]
"""Seconds, host, CPUs of the host, CPU seconds used, limit in cores (0: paused), start (s), weight;
NaN where it is not known."""
_UNKNOWN = (math.nan, math.nan, math.nan, math.nan, DEFAULT_CPU_WEIGHT)
_STOPPED = (130, 137, 143)
"""Exit codes of who was told to end."""


@dataclass(slots=True)
class _Seen:
    """A container of one name; one that came back on another host is the same job."""

    key: tuple[str, str]
    counted: bool = True  # or else it is known from its progress alone
    started: float = math.nan
    labels: dict[str, str] = field(default_factory=dict)
    rows: list[_Row] = field(default_factory=list)
    points: dict[str, Series] = field(default_factory=dict)
    settings: Settings = field(default_factory=dict)  # as last seen


def run(table: pa.Table, label: str, name: str) -> Run:
    """Return what a recording shows.

    Of a saved log, whose host showed no container, a job is what reported progress; what it used
    and whether it finished is not known. Raises `DataError` where there is neither.
    """
    seen: dict[tuple[str, str], _Seen] = {}
    names: dict[tuple[str, str], str] = {}
    last_of: dict[str, float] = {}
    for key, names[key], micros in told(table):
        one = seen.setdefault(key, _Seen(key, counted=False, started=micros / _MICRO))
        one.rows.append((micros / _MICRO, key[0], *_UNKNOWN))
    for chunk in chunks(table):
        for host, feed in samples_by_host(chunk).items():
            _note(host, feed, seen, names)
            if feed.times:
                last_of[host] = feed.times[-1] / _MICRO
    if not seen:
        raise DataError(f"{name}: no container and no progress was observed: nothing to report")
    codes = exit_codes(table)
    begun = min(one.rows[0][0] for one in seen.values())
    ended = max(last_of.values(), default=math.inf)
    found = Run(label, begun=begun, counted=any(one.counted for one in seen.values()))
    weights = _weights(seen)
    jobs: list[JobResult] = []
    for title, parts in _jobs(seen, names).items():
        lane = Lane()
        for part in parts:
            if lane.limit:  # it came from another host, and had nothing on the way
                lane.migrated.append(part.rows[0][0] - begun)
                lane.limit.append((lane.limit[-1][0], 0.0))
                lane.use.append((part.rows[0][0] - begun, 0.0))
            _measure(lane, part, weights, begun)
        lane.settings = parts[-1].settings
        targets = parse(parts[0].labels)
        points = _merged(parts)
        lane.metric = targets.metric or min(points, key=metrics.rank, default="")
        said = points.get(lane.metric, [])
        lane.progress = [(time - begun, value) for time, value in said if math.isfinite(value)]
        lane.diverged = bool(said) and not math.isfinite(said[-1][1])
        found.lanes[title] = lane
        last = parts[-1]
        if last.counted and (last.rows[-1][0] < ended or last.key in codes):
            lane.ended = last.rows[-1][0] - begun
        jobs.append(_result(title, parts, lane, targets, points, begun, codes.get(last.key)))
    found.repeats = [sorted(jobs, key=lambda job: (job.arrival, job.name))]
    found.satisfied = _satisfied(found, seen, names, begun)
    return found


def _note(
    host: str,
    feed: HostSamples,
    seen: dict[tuple[str, str], _Seen],
    names: dict[tuple[str, str], str],
) -> None:
    rows = feed.rows
    for tick, time in enumerate(feed.times):
        size = feed.sizes[tick]
        for at in range(feed.bounds[tick], feed.bounds[tick + 1]):
            key = (host, rows["container_id"][at])
            one = seen.setdefault(key, _Seen(key))
            names[key] = rows["container_name"][at] or key[1][:12]
            if rows["labels"][at]:
                one.labels = labels.read(rows["labels"][at])
            if rows["started_at"][at] is not None:
                one.started = rows["started_at"][at] / _MICRO
            weight = rows["cpu_weight"][at]
            one.rows.append(
                (time / _MICRO, host, size, rows["cpu_seconds"][at], _allowed(rows, at),
                 one.started, weight if weight == weight else DEFAULT_CPU_WEIGHT)
            )  # fmt: skip
            one.settings = _settings(rows, at, size)
    for container, own in feed.points.items():
        if (host, container) in seen:
            for metric, points in own.items():
                seen[host, container].points.setdefault(metric, []).extend(
                    (t / _MICRO, v) for t, v in zip(points.times, points.values, strict=True)
                )  # fmt: skip


def _allowed(rows: Rows, at: int) -> float:
    """Return the cores that quota, CPU list and state allow, NaN where that is unknown."""
    if rows["state"][at] == "paused":
        return 0.0
    limit = rows["cpu_limit_cores"][at]
    listed = len(parse_cpus(rows["cpuset"][at] or ""))
    return min(limit, float(listed)) if listed else limit  # type: ignore[no-any-return]


def _settings(rows: Rows, at: int, size: float) -> Settings:
    """Return the settings of a row, defaults left out."""
    limit, weight = rows["cpu_limit_cores"][at], rows["cpu_weight"][at]
    turn, cpuset = rows["turn_seconds"][at], rows["cpuset"][at]
    told = {
        "cpus": limit < size and limit,
        "cpu_weight": weight == weight and weight != DEFAULT_CPU_WEIGHT and weight,
        "cpuset": cpuset and len(parse_cpus(cpuset)) < size and cpuset,
        "state": rows["state"][at] == "paused" and "paused",
        "turn_s": turn == turn and turn,
    }
    return {name: value for name, value in told.items() if value}


def _jobs(
    seen: dict[tuple[str, str], _Seen], names: dict[tuple[str, str], str]
) -> dict[str, list[_Seen]]:
    """Return the containers of each job, in order: those of one name on different hosts, one after
    the other, are one job; others of the same name are told apart by a number."""
    found: dict[str, list[_Seen]] = {}
    for one in sorted((o for o in seen.values() if o.rows), key=lambda o: (o.rows[0][0], o.key)):
        title, number = names[one.key], 2
        while title in found:
            last = found[title][-1]
            if last.rows[0][1] != one.rows[0][1] and last.rows[-1][0] <= one.rows[0][0]:
                break
            title, number = f"{names[one.key]} ({number})", number + 1
        found.setdefault(title, []).append(one)
    return found


def _weights(seen: dict[tuple[str, str], _Seen]) -> dict[tuple[float, str], float]:
    """Return the sum of weights of a host's containers by time."""
    sums: dict[tuple[float, str], float] = {}
    for one in seen.values():
        for time, host, *_, limit, weight in one.rows:
            sums[time, host] = sums.get((time, host), 0.0) + (weight if limit != 0 else 0.0)
    return sums


def _measure(
    lane: Lane, part: _Seen, weights: dict[tuple[float, str], float], begun: float
) -> None:
    """Add what a container was allowed and what it used: a quota, a CPU list, nothing while it was
    paused, and no more than its weight's part of the CPUs where the weights differ."""
    for time, host, size, _, limit, _, weight in part.rows:
        cores = size if limit != limit else min(limit, size)
        if weights[time, host] > 0 and size == size and abs(cores - size) < 1e-9:
            cores = size * weight / weights[time, host]
        if cores == cores:
            lane.limit.append((time - begun, cores))
    lane.use += [(t1 - begun, used / (t1 - t0)) for t0, t1, used in _uses(part) if t1 > t0]


def _uses(part: _Seen) -> Iterator[tuple[float, float, float]]:
    """Yield (from, to, CPU seconds used) between samples that know it. A counter begins anew when
    the container does; where nobody says when that was, it has fallen."""
    known = [row for row in part.rows if row[3] == row[3]]
    for (t0, _, _, used, _, start, _), (t1, _, _, more, _, again, _) in pairwise(known):
        dated = start == start and again == again
        anew = again > start if dated else more < used
        yield t0, t1, more if anew else max(0.0, more - used)


def _cpu(part: _Seen, begun: float) -> float:
    """Return the CPU seconds that a container used while it was recorded: all of them where it
    began later than the recording."""
    first = next((row for row in part.rows if row[3] == row[3]), None)
    before = first[3] if first is not None and first[5] > begun else 0.0
    return before + math.fsum(used for _, _, used in _uses(part))


def _merged(parts: list[_Seen]) -> dict[str, Series]:
    found: dict[str, Series] = {}
    for part in parts:
        for metric, points in part.points.items():
            found.setdefault(metric, []).extend(points)
    return {metric: sorted(points, key=lambda point: point[0]) for metric, points in found.items()}


def _result(
    title: str,
    parts: list[_Seen],
    lane: Lane,
    targets: Targets,
    points: dict[str, Series],
    begun: float,
    exit_code: int | None,
) -> JobResult:
    first, last = parts[0], parts[-1]
    start = max(0.0, (first.started if first.started == first.started else begun) - begun)
    progress = points.get(targets.metric or "", [])
    latencies = _latencies(points)
    served, satisfied = _served(latencies, targets.qoe_s)
    stopped = served > 0 and exit_code in _STOPPED
    failed = lane.ended is not None and bool(exit_code) and not stopped
    return JobResult(
        title, last.rows[-1][1], start, start,
        None if failed else lane.ended,
        _meeting(progress, targets, targets.first, begun),
        _meeting(progress, targets, targets.final, begun),
        served, satisfied,
        math.fsum(_cpu(part, begun) for part in parts),
        len(lane.migrated),
        exit_code if failed else None,
    )  # fmt: skip


def _meeting(
    progress: Series, targets: Targets, target: float | None, begun: float
) -> float | None:
    if target is None:
        return None
    met = (time - begun for time, value in progress if targets.meets(value, target))
    return next(met, None)


def _latencies(points: dict[str, Series]) -> Series:
    names = [name for name in points if name.startswith("latency")]
    if not names:
        return []
    return points[min(names, key=lambda name: (name != "latency_seconds", metrics.rank(name)))]


def _served(latencies: Series, qoe: float | None) -> tuple[float, float]:
    """Return for how many seconds it answered, and for how many as asked."""
    served = satisfied = 0.0
    for (t0, value), (t1, _) in pairwise(latencies):
        served += t1 - t0
        if satisfies(value, qoe):
            satisfied += t1 - t0
    return served, satisfied


def _satisfied(
    found: Run, seen: dict[tuple[str, str], _Seen], names: dict[tuple[str, str], str], begun: float
) -> Series:
    """Return how many jobs keep their response-time targets, whenever that changes."""
    changes: list[tuple[float, str, bool]] = []
    for title, parts in _jobs(seen, names).items():
        qoe = parse(parts[0].labels).qoe_s
        if qoe is None:
            continue
        changes += [(time - begun, title, satisfies(value, qoe))
                    for time, value in _latencies(_merged(parts))]  # fmt: skip
        if (last := found.lanes[title].ended) is not None:
            changes.append((last, title, False))
    if not changes:
        return []
    now: dict[str, bool] = {}
    series: Series = [(0.0, 0.0)]
    for time, title, kept in sorted(changes):
        now[title] = kept
        count = float(sum(now.values()))
        if count != series[-1][1]:
            series.append((time, count))
    return [*series, (max(time for time, *_ in changes), series[-1][1])]
