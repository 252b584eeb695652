"""A planner's state as JSON values: what the next plan needs, in order to go on where this ended.

Fields are saved by name. What was measured of paces and
contention is there only where the mode follows from it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from dltools.errors import DataError
from dltools.notation.json_numbers import from_json_number, to_json_number
from dltools.observations.metric_names import OFTEN
from dltools.observations.points import Point
from dltools.observations.samples import REALS, ROW_COLUMNS, Layout, Remainder
from dltools.plan.field_values import field_values
from dltools.plan.host_history import HostHistory
from dltools.plan.measured_state import (
    load_contention,
    load_pace,
    save_contention,
    save_pace,
)
from dltools.plan.policy.base import ActionKind, Allocation, JobAction, Requirements, State
from dltools.plan.policy.container_history import ContainerHistory
from dltools.plan.policy.curve import from_json as curve_from_json
from dltools.plan.policy.epoch_cost import EpochCost
from dltools.plan.policy.metric_series import LearningHistory, Series
from dltools.plan.policy.target_met import TargetMet
from dltools.plan.realisation.contention import Contention
from dltools.plan.realisation.queue import Queue, QueuePosition
from dltools.plan.recorded_host import RecordedHost
from dltools.plan.round_timer import RoundTimer

VERSION = 3

_CONTAINER_FIELDS = ("name", "host", "arrived", "started", "state", "cpus", "weight", "turn_s",
                     "threads", "cpuset", "met_first", "met_final", "epoch", "step",
                     "managed", "is_busy")  # fmt: skip
_OPENMP = ("openmp_runtime", "openmp_settings")
"""Fields of containers, and columns, that earlier states of version 3 lack."""
_LATER_COLUMNS = (*_OPENMP, "demand_cores", "cgroup_parent")
"""All columns that earlier states of version 3 lack."""


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
    saved = {
        "cpus": history.cpus,
        "cpuset": history.cpuset,
        "sampled_at": history.sampled_at,
        "containers": {key: _save_container(c) for key, c in sorted(history.containers.items())},
        "timer": field_values(history.timer),
        "allocations": {key: field_values(one) for key, one in sorted(history.allocations.items())},
        "actions": [_save_action(action) for action in history.actions],
        "gain": history.gain,
        "queue": save_queue(history.queue),
        "layout": field_values(host.layout),
        "remainder": _save_remainder(host.remainder),
    }
    if history.contention != Contention():
        saved["contention"] = save_contention(history.contention)
    return saved


def _load_host(name: str, saved: Mapping[str, Any], requirements: Requirements) -> RecordedHost:
    history = HostHistory(
        name,
        cpus=float(saved["cpus"]),
        cpuset=saved["cpuset"],
        sampled_at=saved["sampled_at"],
        containers={key: _load_container(key, c) for key, c in saved["containers"].items()},
        timer=_load_timer(saved["timer"]),
        allocations={key: Allocation(**one) for key, one in saved["allocations"].items()},
        actions=tuple(_load_action(one) for one in saved["actions"]),
        gain=saved["gain"],
        queue=load_queue(saved["queue"]),
        contention=load_contention(saved["contention"]) if "contention" in saved else Contention(),
    )
    layout = Layout(*(list(saved["layout"][name]) for name in ("ids", "started", "labels")))
    if set(layout.ids) != set(history.containers):
        raise ValueError("the layout names other containers than there are")
    remainder = _load_remainder(saved["remainder"])
    return RecordedHost(history, requirements, remainder=remainder, layout=layout)


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


def _save_container(history: ContainerHistory) -> dict[str, Any]:
    pace = {} if history.pace is None else {"pace": save_pace(history.pace)}
    demand = {}
    if history.demands or history.quiet_since is not None:
        demand = {"demands": list(history.demands), "quiet_since": history.quiet_since}
    return {
        **{name: getattr(history, name) for name in (*_CONTAINER_FIELDS, *_OPENMP)},
        **pace,
        **demand,
        "cgroup_parent": history.cgroup_parent,
        "reports": history.reports,
        "epoch_cost": history.epoch_cost and field_values(history.epoch_cost),
        "labels": dict(history.labels),
        "samples": {
            "times": [time for time, _ in history.samples],
            "cpu_seconds": [seconds for _, seconds in history.samples],
        },
        "metrics": {name: _save_series(s) for name, s in sorted(history.metrics.items())},
    }


def _load_container(id_: str, saved: Mapping[str, Any]) -> ContainerHistory:
    fields = {name: saved[name] for name in _CONTAINER_FIELDS}
    fields |= {name: saved.get(name) for name in _OPENMP}
    history = ContainerHistory(id_, **fields)
    history.epoch_cost = _load_epoch_cost(saved.get("epoch_cost"))
    history.demands = tuple(map(float, saved.get("demands", ())))
    history.quiet_since = saved.get("quiet_since")
    history.cgroup_parent = saved.get("cgroup_parent")
    history.label({str(key): str(value) for key, value in saved["labels"].items()})
    samples = zip(saved["samples"]["times"], saved["samples"]["cpu_seconds"], strict=True)
    history.samples = [(int(time), float(seconds)) for time, seconds in samples]
    history.metrics = {name: _load_series(series) for name, series in saved["metrics"].items()}
    history.pace = load_pace(saved["pace"]) if "pace" in saved else None
    times = {time for series in history.metrics.values() for time in series.times}
    history.reports = int(saved.get("reports", min(2, len(times))))
    return history


def _load_epoch_cost(saved: Mapping[str, Any] | None) -> EpochCost | None:
    if saved is None:
        return None
    return EpochCost(float(saved["position"]), float(saved["work"]), float(saved["advance"]),
                tuple(map(float, saved["needs"])))  # fmt: skip


def _save_series(series: Series) -> dict[str, Any]:
    saved: dict[str, Any] = {
        "times": series.times,
        "values": [to_json_number(value) for value in series.values],
        "steps": series.steps,
        "count": min(series.count, OFTEN),
        "not_finite": series.not_finite,
        "first": series.first,
        "low": to_json_number(series.low),
        "high": to_json_number(series.high),
    }
    if series.learning is not None:
        saved["learning"] = field_values(series.learning)
        saved["fitted"] = series.fitted
        saved["curve"] = series.curve and series.curve.to_json()
    return saved


def _load_series(saved: Mapping[str, Any]) -> Series:
    # Earlier states of version 3 have the largest absolute value alone.
    noted = {"low": saved.get("peak"), "high": saved.get("peak"), "first": None, **saved}
    series = Series(
        times=[int(time) for time in saved["times"]],
        values=[from_json_number(value) for value in saved["values"]],
        steps=list(saved["steps"]),
        count=int(saved.get("count", OFTEN)),
        not_finite=int(saved.get("not_finite", 0)),
        first=None if noted["first"] is None else float(noted["first"]),
        low=from_json_number(noted["low"]),
        high=from_json_number(noted["high"]),
    )
    if not len(series.times) == len(series.values) == len(series.steps):
        raise ValueError("a metric's columns are of unequal length")
    learning = saved.get("learning")
    if learning:
        series.learning = LearningHistory(
            works=[float(work) for work in learning["works"]],
            values=[float(value) for value in learning["values"]],
            stride=int(learning["stride"]),
            seen=int(learning["seen"]),
            last_step=learning["last_step"],
        )
        series.fitted = int(saved["fitted"])
        series.curve = curve_from_json(saved["curve"]) if saved["curve"] else None
    return series


def _save_remainder(remainder: Remainder) -> dict[str, Any]:
    columns = zip(*remainder.points, strict=True) if remainder.points else [()] * len(Point._fields)
    points = {name: list(column) for name, column in zip(Point._fields, columns, strict=True)}
    points["value"] = [to_json_number(value) for value in points["value"]]
    points["epoch"] = [_null_if_infinite(epoch) for epoch in points["epoch"]]
    rows = remainder.rows.items()
    return {
        "time": remainder.time,
        "size": _null_if_infinite(remainder.size),
        "rows": {name: [_null_if_infinite(value) for value in column] for name, column in rows},
        "points": points,
    }


def _load_remainder(saved: Mapping[str, Any]) -> Remainder:
    unknown = [None] * len(saved["rows"]["container_id"])
    columns = {**dict.fromkeys(_LATER_COLUMNS, unknown), **saved["rows"]}
    rows = {name: list(columns[name]) for name in ROW_COLUMNS}
    for name in REALS:
        rows[name] = [_real(value) for value in rows[name]]
    if len({len(column) for column in rows.values()}) > 1:
        raise ValueError("columns of unequal length")
    points = [
        Point(str(key), str(metric), int(time), from_json_number(value), step, _real(epoch))
        for key, metric, time, value, step, epoch in zip(
            *(saved["points"][name] for name in Point._fields), strict=True
        )
    ]
    return Remainder(saved["time"], _real(saved["size"]), rows, points)


def _null_if_infinite(value: Any) -> Any:
    """Return a value, None for NaN and the infinities."""
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _real(value: float | None) -> float:
    """Return a number, NaN for None."""
    return math.nan if value is None else float(value)
