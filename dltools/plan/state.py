"""A planner's state as JSON values: what the next plan needs, in order to go on where this ended.

Fields are saved by name. What was measured of paces and
contention is there only where the mode follows from it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from dltools.errors import DataError
from dltools.labels import Role
from dltools.notation.json_values import from_json_number, to_json_number
from dltools.observations.host_samples import ROW_COLUMNS, GpuUse, GpuUses, Layout, Point, Remainder
from dltools.observations.metric_names import OFTEN
from dltools.observations.roles import from_row
from dltools.observations.samples_by_host import REALS
from dltools.plan.busy_cpus import BusyCpus
from dltools.plan.field_values import field_values
from dltools.plan.foreign_settings import Watched
from dltools.plan.host_history import HostHistory
from dltools.plan.measured_state import (
    load_contention,
    load_gpu_pace,
    load_pace,
    load_sharing,
    save_contention,
    save_gpu_pace,
    save_pace,
    save_sharing,
)
from dltools.plan.policy.base import ActionKind, Allocation, JobAction, Requirements, State
from dltools.plan.policy.container_history import ContainerHistory, Member
from dltools.plan.policy.curve import from_json as curve_from_json
from dltools.plan.policy.epoch_cost import EpochCost
from dltools.plan.policy.gpu_seconds import GpuSeconds
from dltools.plan.policy.metric_series import LearningHistory, Series
from dltools.plan.policy.owner import UNKNOWN, Owner
from dltools.plan.policy.target_met import TargetMet
from dltools.plan.realisation.contention import Contention
from dltools.plan.realisation.queue import Queue, QueuePosition
from dltools.plan.recorded_host import RecordedHost
from dltools.plan.round_timer import RoundTimer

VERSION = 3

_CONTAINER_FIELDS = (
    "name",
    "host",
    "arrived",
    "started",
    "state",
    "cpus",
    "weight",
    "turn_s",
    "threads",
    "cpuset",
    "met_first",
    "met_final",
    "epoch",
    "step",
    "managed",
    "is_busy",
)
_OPENMP = ("openmp_runtime", "openmp_settings")
"""Fields of containers, and columns, that earlier states of version 3 lack."""
_LATER_COLUMNS = (
    *_OPENMP,
    "demand_cores",
    "cgroup_parent",
    "owner_cpu_limit_cores",
    "turn_queue",
    "owner_cpu_weight",
    "owner_cpuset",
    "role",
    "role_reason",
)
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
        "busy": {
            "times": [time for time, _ in history.busy.samples],
            "cpu_seconds": [seconds for _, seconds in history.busy.samples],
            "is_contested": history.busy.is_contested,
        },
        "reporters": host.reporters,
    }
    if history.contention != Contention():
        saved["contention"] = save_contention(history.contention)
    if history.gpu_sharing:
        saved["gpu_sharing"] = save_sharing(history.gpu_sharing)
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
        containers={key: _load_container(key, c) for key, c in saved["containers"].items()},
        timer=_load_timer(saved["timer"]),
        allocations={key: Allocation(**one) for key, one in saved["allocations"].items()},
        actions=tuple(_load_action(one) for one in saved["actions"]),
        gain=saved["gain"],
        queue=load_queue(saved["queue"]),
        contention=load_contention(saved["contention"]) if "contention" in saved else Contention(),
        gpu_sharing=load_sharing(saved.get("gpu_sharing", {})),
        busy=_load_busy(saved["busy"]),
        watched={
            key: {
                name: Watched(**{**one, "asked": tuple(one["asked"])})
                for name, one in watched.items()
            }
            for key, watched in saved.get("watched", {}).items()
        },
        has_servers=requirements.servers,
    )
    history.foreign = history.changed_by_others()
    layout = Layout(*(list(saved["layout"][name]) for name in ("ids", "started", "labels")))
    unknown = [None] * len(layout.ids)  # in earlier states of version 3
    more = {name: list(saved["layout"].get(name, unknown)) for name in ("roles", "names")}
    layout = replace(layout, **more)
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


def _save_container(history: ContainerHistory) -> dict[str, Any]:
    pace = {} if history.pace is None else {"pace": save_pace(history.pace)}
    if history.gpu_pace is not None:
        pace["gpu_pace"] = save_gpu_pace(history.gpu_pace)
    demand: dict[str, Any] = {"cores": list(history.cores)} if history.cores else {}
    if history.demands or history.quiet_since is not None:
        demand |= {
            "demands": list(history.demands),
            "uses": [_null_if_infinite(use) for use in history.uses],
            "quiet_since": history.quiet_since,
        }
    owner = {} if history.owner == UNKNOWN else {"owner": _save_owner(history.owner)}
    return {
        **{name: getattr(history, name) for name in (*_CONTAINER_FIELDS, *_OPENMP)},
        **pace,
        **demand,
        **_save_role(history),
        "cgroup_parent": history.cgroup_parent,
        "gpu_seconds": _save_gpu_seconds(history.gpu_seconds),
        "gpu_used_at": history.gpu_used_at,
        "job": history.job,
        "members": [field_values(member) for member in history.members],
        "job_containers": history.job_containers,
        **owner,
        "reports": history.reports,
        "epoch_cost": history.epoch_cost and field_values(history.epoch_cost),
        "labels": dict(history.labels),
        "samples": {
            "times": [time for time, _ in history.samples],
            "cpu_seconds": [seconds for _, seconds in history.samples],
        },
        "metrics": {name: _save_series(s) for name, s in sorted(history.metrics.items())},
    }


def _save_role(history: ContainerHistory) -> dict[str, Any]:
    """Return what a container is, and what is known of that beside its labels and metrics."""
    saved: dict[str, Any] = {"role": history.role, "role_reason": history.judged.reason}
    if history.observed is not None:
        saved["observed_role"] = [history.observed.role, history.observed.reason]
    if history.earlier is not None:
        saved["earlier_role"] = history.earlier
    return saved


def _load_container(id_: str, saved: Mapping[str, Any]) -> ContainerHistory:
    fields = {name: saved[name] for name in _CONTAINER_FIELDS}
    fields |= {name: saved.get(name) for name in _OPENMP}
    history = ContainerHistory(id_, **fields)
    history.epoch_cost = _load_epoch_cost(saved.get("epoch_cost"))
    history.cores = tuple(map(float, saved.get("cores", ())))
    history.demands = tuple(map(float, saved.get("demands", ())))
    history.uses = tuple(map(_real, saved.get("uses", ())))
    history.quiet_since = saved.get("quiet_since")
    history.cgroup_parent = saved.get("cgroup_parent")
    history.gpu_seconds = _load_gpu_seconds(saved["gpu_seconds"])
    history.gpu_used_at = saved["gpu_used_at"]
    history.job, history.members = saved["job"], tuple(Member(**one) for one in saved["members"])
    history.job_containers = saved["job_containers"]
    history.owner = _load_owner(saved["owner"]) if "owner" in saved else UNKNOWN
    history.label({str(key): str(value) for key, value in saved["labels"].items()})
    samples = zip(saved["samples"]["times"], saved["samples"]["cpu_seconds"], strict=True)
    history.samples = [(int(time), float(seconds)) for time, seconds in samples]
    history.metrics = {name: _load_series(series) for name, series in saved["metrics"].items()}
    history.pace = load_pace(saved["pace"]) if "pace" in saved else None
    history.gpu_pace = load_gpu_pace(saved["gpu_pace"]) if "gpu_pace" in saved else None
    times = {time for series in history.metrics.values() for time in series.times}
    history.reports = int(saved.get("reports", min(2, len(times))))
    history.observed = from_row(*saved.get("observed_role", (None, None)))
    history.earlier = Role(saved["earlier_role"]) if "earlier_role" in saved else None
    history.judge()
    return history


def _save_gpu_seconds(used: GpuSeconds) -> dict[str, Any]:
    return {
        "since": used.since,
        "times": [time for time, _ in used.samples],
        "seconds": [seconds for _, seconds in used.samples],
        "gpus": {gpu: _save_use(use) for gpu, use in used.gpus.items()},
    }


def _load_gpu_seconds(saved: Mapping[str, Any]) -> GpuSeconds:
    samples = zip(map(int, saved["times"]), map(float, saved["seconds"]), strict=True)
    gpus = {str(gpu): _load_use(use) for gpu, use in saved["gpus"].items()}
    if (saved["since"] is None) == bool(saved["times"]):
        raise ValueError("GPU seconds begin where they have no samples")
    return GpuSeconds(saved["since"], list(samples), gpus)


def _save_use(use: GpuUse) -> dict[str, Any]:
    return use._asdict() | {"ratio": _null_if_infinite(use.ratio)}


def _load_use(saved: Mapping[str, Any]) -> GpuUse:
    return GpuUse(_real(saved["ratio"]), saved["memory"], saved["limit"])


def _save_owner(owner: Owner) -> dict[str, Any]:
    planned = {name: list(values) for name, values in sorted(owner.planned.items())}
    return field_values(owner) | {"planned": planned}


def _load_owner(saved: Mapping[str, Any]) -> Owner:
    planned = {str(name): tuple(values) for name, values in saved["planned"].items()}
    return Owner(
        saved["cpus"], float(saved["ratio"]), saved["cpuset"], planned, bool(saved["is_known"])
    )


def _load_epoch_cost(saved: Mapping[str, Any] | None) -> EpochCost | None:
    if saved is None:
        return None
    return EpochCost(
        float(saved["position"]),
        float(saved["work"]),
        float(saved["advance"]),
        tuple(map(float, saved["needs"])),
    )


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
        "busy": _null_if_infinite(remainder.busy),
        "rows": {name: [_null_if_infinite(value) for value in column] for name, column in rows},
        "points": points,
        "gpus": [
            {"time": time, "container": key, "gpu": gpu, **_save_use(use)}
            for time, containers in sorted(remainder.gpus.items())
            for key, uses in sorted(containers.items())
            for gpu, use in sorted(uses.items())
        ],
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
    size, busy = _real(saved["size"]), _real(saved["busy"])
    gpus: GpuUses = {}
    for one in saved["gpus"]:
        uses = gpus.setdefault(int(one["time"]), {}).setdefault(str(one["container"]), {})
        uses[str(one["gpu"])] = _load_use(one)
    return Remainder(saved["time"], size, busy, rows, points, gpus)


def _null_if_infinite(value: Any) -> Any:
    """Return a value, None for NaN and the infinities."""
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _real(value: float | None) -> float:
    """Return a number, NaN for None."""
    return math.nan if value is None else float(value)
