"""A planner's state as JSON values: what the next plan needs to continue where this one ended.

Fields are saved by name. Measured paces and contention are saved only where the mode depends on
them.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from dltools.errors import DataError
from dltools.notation.json_values import from_json_number, to_json_number
from dltools.observations.host_samples import ROW_COLUMNS, GpuUses, Layout, Point, Remainder
from dltools.observations.samples_by_host import REALS
from dltools.plan.container_state import (
    field_values,
    load_container,
    load_use,
    null_if_infinite,
    real,
    save_container,
    save_use,
)
from dltools.plan.forecast.completion import Forecasts
from dltools.plan.forecast.promise import DockerAlone, Imagined
from dltools.plan.foreign_settings import Watched
from dltools.plan.host_history import HostHistory, RoundTimer
from dltools.plan.policy.interface import ActionKind, Allocation, JobAction, Requirements, State
from dltools.plan.realisation.contention import Contention, MeasuredSharing
from dltools.plan.realisation.queue import Queue, QueuePosition
from dltools.plan.recorded_host import RecordedHost
from dltools.plan.signals.busy_cpus import BusyCpus
from dltools.plan.signals.targets import TargetMet

VERSION = 1


@dataclass(frozen=True, slots=True)
class SavedState:
    """The newest time read (microseconds), what the policy remembers, and the hosts."""

    newest: int | None
    memory: State
    hosts: Mapping[str, RecordedHost]


def save(state: SavedState, policy: str) -> dict[str, Any]:
    """Return the state of a planner of a policy as JSON values. NaN and the infinities become
    strings."""
    return {
        "v": VERSION,
        "policy": policy,
        "newest": state.newest,
        "memory": state.memory,
        "hosts": {name: _save_host(host) for name, host in sorted(state.hosts.items())},
    }


def load(saved: Mapping[str, Any], policy: str, requirements: Requirements) -> SavedState:
    """Return what `save` was given. Raises `DataError` for another version or policy, and for
    damage."""
    version = saved.get("v")
    if version != VERSION:
        raise DataError(
            f"state version {version}; this dltools reads {VERSION}: begin anew without it"
        )
    if saved.get("policy") != policy:
        raise DataError(f"the state is of policy {saved.get('policy')!r}, not {policy!r}")
    try:
        hosts = {
            name: _load_host(name, data, requirements) for name, data in saved["hosts"].items()
        }
        return SavedState(saved["newest"], dict(saved["memory"]), hosts)
    except (KeyError, TypeError, ValueError, AttributeError, IndexError) as error:
        raise DataError(f"damaged state: {type(error).__name__}: {error}") from error


def _save_host(host: RecordedHost) -> dict[str, Any]:
    history = host.history
    saved: dict[str, Any] = {
        "cpus": history.cpus,
        "cpuset": history.cpuset,
        "sampled_at": history.sampled_at,
        "containers": {key: save_container(c) for key, c in sorted(history.containers.items())},
        "timer": field_values(history.timer),
        "allocations": {key: field_values(one) for key, one in sorted(history.allocations.items())},
        "actions": [_save_action(action) for action in history.actions],
        "gain": history.gain,
        "queue": save_queue(history.queue),
        "layout": field_values(host.layout),
        "remainder": _save_remainder(host.remainder),
        "busy": {
            "times": [time for time, _ in history.busy.samples],
            "cpu_seconds": [seconds for _, seconds in history.busy.samples],
            "is_contested": history.busy.is_contested,
        },
        "reporters": host.reporters,
    }
    if history.cannot or host.remainder.cannot:
        saved["cannot"] = sorted(history.cannot)
        saved["remainder"]["cannot"] = host.remainder.cannot
    if history.contention != Contention():
        saved["contention"] = _save_contention(history.contention)
    if history.alone.jobs:
        saved["alone"] = field_values(history.alone) | {
            "jobs": {key: field_values(one) for key, one in sorted(history.alone.jobs.items())}
        }
    if history.forecasts.ends or history.forecasts.errors:
        saved["forecasts"] = field_values(history.forecasts)
    if history.gpu_sharing:
        saved["gpu_sharing"] = _save_sharing(history.gpu_sharing)
    if history.watched:
        saved["watched"] = {
            key: {name: field_values(one) for name, one in sorted(watched.items())}
            for key, watched in sorted(history.watched.items())
        }
    return saved


def _load_host(name: str, saved: Mapping[str, Any], requirements: Requirements) -> RecordedHost:
    history = HostHistory(
        name,
        cpus=float(saved["cpus"]),
        cpuset=saved["cpuset"],
        sampled_at=saved["sampled_at"],
        containers={key: load_container(key, c) for key, c in saved["containers"].items()},
        timer=_load_timer(saved["timer"]),
        allocations={key: Allocation(**one) for key, one in saved["allocations"].items()},
        actions=tuple(_load_action(one) for one in saved["actions"]),
        gain=saved["gain"],
        queue=load_queue(saved["queue"]),
        contention=_load_contention(saved["contention"]) if "contention" in saved else Contention(),
        alone=_load_alone(saved["alone"]) if "alone" in saved else DockerAlone(),
        forecasts=_load_forecasts(saved.get("forecasts")),
        gpu_sharing=_load_sharing(saved.get("gpu_sharing", {})),
        busy=_load_busy(saved["busy"]),
        watched={
            key: {
                name: Watched(**{**one, "asked": tuple(one["asked"])})
                for name, one in watched.items()
            }
            for key, watched in saved.get("watched", {}).items()
        },
        cannot=frozenset(map(str, saved.get("cannot", ()))),
        has_servers=requirements.servers,
    )
    history.foreign = history.changed_by_others()
    names = (field.name for field in dataclasses.fields(Layout))
    layout = Layout(**{name: list(saved["layout"][name]) for name in names})
    if set(layout.ids) != set(history.containers):
        raise ValueError("the layout names other containers than there are")
    remainder = _load_remainder(saved["remainder"])
    reporters = {
        str(job): {str(metric): str(id_) for metric, id_ in one.items()}
        for job, one in saved["reporters"].items()
    }
    return RecordedHost(
        history, requirements, remainder=remainder, layout=layout, reporters=reporters
    )


def _load_busy(saved: Mapping[str, Any]) -> BusyCpus:
    samples = zip(map(int, saved["times"]), map(float, saved["cpu_seconds"]), strict=True)
    return BusyCpus(tuple(samples), saved["is_contested"])


def _save_action(action: JobAction) -> dict[str, Any]:
    return field_values(action) | {"met": action.met and field_values(action.met)}


def _load_action(saved: Mapping[str, Any]) -> JobAction:
    met = saved.get("met")
    return JobAction(
        **{**saved, "kind": ActionKind(saved["kind"]), "met": met and TargetMet(**met)}
    )


def _load_timer(saved: Mapping[str, Any]) -> RoundTimer:
    interval_s = saved["interval_s"]
    return RoundTimer(
        None if interval_s is None else float(interval_s), saved["last"], tuple(saved["run_ids"])
    )


def save_queue(queue: Queue) -> dict[str, Any]:
    """Return a queue as JSON values."""
    positions = sorted(queue.positions.items())
    return {"positions": {key: field_values(one) for key, one in positions}, "due": queue.due}


def load_queue(saved: Mapping[str, Any]) -> Queue:
    """Return the queue that was saved. Raises KeyError, TypeError or ValueError."""
    positions = {
        str(run_id): QueuePosition(bool(p["first"]), int(p["since"]), bool(p["urgent"]))
        for run_id, p in saved["positions"].items()
    }
    return Queue(positions, None if saved["due"] is None else int(saved["due"]))


def _save_contention(contention: Contention) -> dict[str, Any]:
    """Return what was found on a host as JSON values."""
    return dataclasses.asdict(contention)


def _load_contention(saved: Mapping[str, Any]) -> Contention:
    """Return what was saved. Raises KeyError, TypeError or ValueError."""
    names = (field.name for field in dataclasses.fields(Contention))
    return Contention(**{name: saved[name] for name in names})


def _load_alone(saved: Mapping[str, Any]) -> DockerAlone:
    """Return what was saved. Raises KeyError, TypeError or ValueError."""
    names = [field.name for field in dataclasses.fields(Imagined)]
    jobs = {
        str(key): Imagined(**{name: one[name] for name in names})
        for key, one in saved["jobs"].items()
    }
    at, since = int(saved["at"]), int(saved["since"])
    return DockerAlone(at, since, jobs, float(saved["saved_s"]), float(saved["there_s"]))


def _load_forecasts(saved: Mapping[str, Any] | None) -> Forecasts:
    """Return what was saved, none where nothing was. Raises KeyError, TypeError or ValueError."""
    if saved is None:
        return Forecasts()
    ends = {str(run): int(end) for run, end in saved["ends"].items()}
    errors = tuple(map(float, saved["errors"]))
    return Forecasts(str(saved["arrangement"]), int(saved["made"]), ends, errors)


def _save_sharing(sharing: Mapping[str, MeasuredSharing]) -> dict[str, Any]:
    """Return what was measured of jobs that share GPUs, by queue, as JSON values."""
    return {
        name: field_values(one) | {"runs": list(one.runs)} for name, one in sorted(sharing.items())
    }


def _load_sharing(saved: Mapping[str, Any]) -> dict[str, MeasuredSharing]:
    """Return what was saved. Raises KeyError, TypeError or ValueError."""
    return {
        str(name): MeasuredSharing(**{**one, "runs": tuple(map(str, one["runs"]))})
        for name, one in saved.items()
    }


_OPTIONAL = frozenset({"user", "cannot", "thread_pools", "cpu_throttled_seconds"})
"""Columns of rows that a state has only where a row has a value."""


def _save_remainder(remainder: Remainder) -> dict[str, Any]:
    columns = zip(*remainder.points, strict=True) if remainder.points else [()] * len(Point._fields)
    points = {name: list(column) for name, column in zip(Point._fields, columns, strict=True)}
    points["value"] = [to_json_number(value) for value in points["value"]]
    points["epoch"] = [null_if_infinite(epoch) for epoch in points["epoch"]]
    rows = [
        (name, column)
        for name, column in remainder.rows.items()
        if name not in _OPTIONAL or any(column)
    ]
    return {
        "time": remainder.time,
        "size": null_if_infinite(remainder.size),
        "busy": null_if_infinite(remainder.busy),
        "rows": {name: [null_if_infinite(value) for value in column] for name, column in rows},
        "points": points,
        "gpus": [
            {"time": time, "container": key, "gpu": gpu, **save_use(use)}
            for time, containers in sorted(remainder.gpus.items())
            for key, uses in sorted(containers.items())
            for gpu, use in sorted(uses.items())
        ],
    }


def _load_remainder(saved: Mapping[str, Any]) -> Remainder:
    given = saved["rows"]
    unknown = [None] * len(given["container_id"])
    rows = {
        name: list(given.get(name, unknown) if name in _OPTIONAL else given[name])
        for name in ROW_COLUMNS
    }
    for name in REALS:
        rows[name] = [real(value) for value in rows[name]]
    if len({len(column) for column in rows.values()}) > 1:
        raise ValueError("columns of unequal length")
    points = [
        Point(str(key), str(metric), int(time), from_json_number(value), step, real(epoch), *counts)
        for key, metric, time, value, step, epoch, *counts in zip(
            *(saved["points"][name] for name in Point._fields), strict=True
        )
    ]
    size, busy = real(saved["size"]), real(saved["busy"])
    gpus: GpuUses = {}
    for one in saved["gpus"]:
        uses = gpus.setdefault(int(one["time"]), {}).setdefault(str(one["container"]), {})
        uses[str(one["gpu"])] = load_use(one)
    return Remainder(saved["time"], size, busy, rows, points, gpus, saved.get("cannot"))
