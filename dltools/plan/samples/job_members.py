"""Makes one job of containers that are members of it: each waits for the others at every step.

Whoever reads a host's samples sees such a job as one container: its CPU seconds, threads and demand
are the sums of its members', its points are those of the member that reports them. So it has one
place in the queue, one class, one share and one turn, and no policy need know. `decisions` gives
each member its part of what the job gets.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping, MutableMapping, Sequence
from dataclasses import replace
from typing import Any

from dltools.labels import LONGEST_PAUSE, PROTECT, Role, is_true, longest_pause_s, parse_labels
from dltools.notation.limits import ASKED, IN_FORCE, WEIGHT, known_cell, known_name, limits_at
from dltools.notation.resources import format_cpus, parse_cpus, union_of_cpus
from dltools.observations.host_samples import DeviceUse, DeviceUses, HostSamples, PointsByMetric
from dltools.plan.signals.in_force import InForce, Member

PREFIX = "job:"
"""Begins the id of a job of several containers; no container's id does."""

_SUMS = ("cpu_seconds", "cpu_throttled_seconds", "demand_cores", "cpu_limit_cores")
"""The columns that tell of a job what its members have together."""

Reporters = MutableMapping[str, dict[str, str]]
"""By job and metric: the member whose points count."""


def merged(samples: HostSamples, reporters: Reporters) -> HostSamples:
    """Return samples in which each job of several containers is one container.

    `reporters` is brought up to date: of several members that report a metric, as ranks do, the
    first one counts.
    """
    jobs = samples.rows["job"]
    if not any(jobs):
        return samples
    columns: dict[str, list[Any]] = {name: [] for name in (*samples.rows, "members")}
    bounds = [0]
    members: dict[str, set[str]] = {}
    alone: set[str] = set()
    for low, high in zip(samples.bounds, samples.bounds[1:], strict=False):
        for rows in _grouped(samples.rows, low, high):
            row: Mapping[str, Any] = {name: samples.rows[name][rows[0]] for name in samples.rows}
            if len(rows) > 1:
                ids = {samples.rows["container_id"][at] for at in rows}
                members.setdefault(PREFIX + jobs[rows[0]], set()).update(ids)
                row = _one_row(samples.rows, rows)
            else:
                alone.add(row["container_id"])
            for name, column in columns.items():
                column.append(row.get(name))
        bounds.append(len(columns["members"]))
    together = set().union(*members.values()) - alone
    points = {key: own for key, own in samples.points.items() if key not in together}
    for job, ids in members.items():
        points[job] = _points(samples.points, ids, reporters.setdefault(job, {}))
    return replace(
        samples,
        bounds=bounds,
        rows=columns,
        points=points,
        devices=_devices(samples.devices, members),
    )


def _grouped(rows: Mapping[str, list[Any]], low: int, high: int) -> list[list[int]]:
    """Return the rows of a sample in groups: those of one job together, at the place of the first.

    Where a job seems to have more containers than it says, nobody knows which belong together, as
    two jobs may give themselves one name: then each is alone.
    """
    jobs, counts = rows["job"], rows["job_containers"]
    groups: dict[str | int, list[int]] = {}
    for at in range(low, high):
        groups.setdefault(at if jobs[at] is None else jobs[at], []).append(at)
    apart: list[list[int]] = []
    for group in groups.values():
        most = max((counts[at] for at in group if counts[at] is not None), default=len(group))
        apart += [group] if len(group) <= most else [[at] for at in group]
    return apart


def _one_row(rows: Mapping[str, list[Any]], at: Sequence[int]) -> dict[str, Any]:
    """Return the row of a job of several containers; what is unknown of one member is unknown."""
    order = sorted(
        at, key=lambda row: (rows["container_name"][row] or "", rows["container_id"][row])
    )

    def all_of(name: str) -> list[Any]:
        return [rows[name][row] for row in order]

    trains = next((row for row in order if rows["role"][row] == Role.TRAINING), order[0])
    cpusets = [text for text in all_of("cpuset") if text]
    turns = [turn for turn in all_of("turn_seconds") if not math.isnan(turn)]
    threads, started = all_of("thread_count"), all_of("started_at")
    return {
        **{
            name: next((value for value in all_of(name) if value is not None), None)
            for name in rows
        },
        "container_id": PREFIX + rows["job"][order[0]],
        "state": "paused" if "paused" in all_of("state") else rows["state"][order[0]],
        "labels": _labels(all_of("labels")),
        "role": rows["role"][trains],
        "role_reason": rows["role_reason"][trains],
        "cpuset": union_of_cpus(None, cpusets) if len(cpusets) == len(order) else None,
        "cgroup_parent": _parents(all_of("cgroup_parent")),
        "cannot": "+".join(filter(None, all_of("cannot"))) or None,
        **{name: sum(all_of(name)) for name in _SUMS},
        WEIGHT: min(all_of(WEIGHT)),
        "turn_seconds": max(turns, default=math.nan),
        **_wishes(all_of),
        "thread_count": None if None in threads else sum(threads),
        "started_at": None if None in started else max(started),
        "members": tuple(_member(rows, row) for row in order),
    }


def _wishes(all_of: Callable[[str], list[Any]]) -> dict[str, Any]:
    """Return what owners asked for, as a bound that holds for each member: it gets an equal part of
    the quota, the least weight, and the CPUs that all may have."""
    quotas = [quota for quota in all_of("owner_cpu_limit_cores") if not math.isnan(quota)]
    weights = [weight for weight in all_of(ASKED["weight"]) if not math.isnan(weight)]
    lists = [set(parse_cpus(text)) for text in all_of("owner_cpuset") if text]
    cpus = set.intersection(*lists) or lists[0] if lists else set()
    return {
        "owner_cpu_limit_cores": len(all_of("job")) * min(quotas) if quotas else math.nan,
        ASKED["weight"]: min(weights, default=math.nan),
        "owner_cpuset": format_cpus(sorted(cpus)) if cpus else None,
    }


def _member(rows: Mapping[str, list[Any]], at: int) -> Member:
    id_ = rows["container_id"][at]
    return Member(id_, rows["container_name"][at] or id_[:12], in_force_at(rows, at))


def in_force_at(rows: Mapping[str, list[Any]], at: int) -> InForce:
    """Return what is in force for the container of a row."""
    return InForce(
        limits_at(rows, at, IN_FORCE),
        known_cell(rows["turn_seconds"][at]),
        rows["state"][at] or "running",
        rows["cgroup_parent"][at],
        names_of(rows["cannot"][at]),
    )


def names_of(text: str | None) -> frozenset[str]:
    """Return the names that are joined by + in a cell."""
    return frozenset(map(known_name, filter(None, (text or "").split("+"))))


def _labels(texts: Sequence[str | None]) -> str | None:
    """Return the labels of all members, the first one's first; who protects one protects all, and
    the job bears the shortest pause that one of them bears."""
    job_labels: dict[str, str] = {}
    every = [parse_labels(text) for text in texts]
    for labels in reversed(every):
        job_labels |= labels
    if any(is_true(labels.get(PROTECT)) for labels in every):
        job_labels[PROTECT] = "true"
    if LONGEST_PAUSE in job_labels:
        job_labels[LONGEST_PAUSE] = f"{min(map(longest_pause_s, every))}"
    return json.dumps(job_labels, sort_keys=True) if job_labels else None


def _parents(values: Sequence[str | None]) -> str | None:
    """Return the cgroups under which members are, joined by +; None where one is unknown."""
    parents = {value for value in values if value is not None}
    return "+".join(sorted(parents)) if None not in values else None


def _points(points: PointsByMetric, ids: set[str], reporters: dict[str, str]) -> dict[str, Any]:
    """Return a job's points. A metric's points are those of its reporter as long as that is a
    member, else those of the member that reports it first."""
    job_points = {}
    for metric in sorted({metric for id_ in ids for metric in points.get(id_, ())}):
        reporter = reporters.get(metric)
        if reporter not in ids:
            candidates = [id_ for id_ in ids if metric in points.get(id_, ())]
            reporter = min(candidates, key=lambda id_: (points[id_][metric].times[0], id_))
            reporters[metric] = reporter
        if metric in points.get(reporter, ()):
            job_points[metric] = points[reporter][metric]
    return job_points


def _devices(uses: DeviceUses, members: Mapping[str, set[str]]) -> DeviceUses:
    """Return the use of devices with that of a job's members together."""
    owner = {id_: job for job, ids in members.items() for id_ in ids}
    job_uses: DeviceUses = {}
    for time, by_container in uses.items():
        together: dict[str, dict[str, DeviceUse]] = job_uses.setdefault(time, {})
        for key, own in sorted(by_container.items()):
            others = together.setdefault(owner.get(key, key), {})
            for name, use in own.items():
                others[name] = others[name].joined(use) if name in others else use
    return job_uses
