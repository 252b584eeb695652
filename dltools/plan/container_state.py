"""What is remembered of a container, as JSON values: for `state`, which saves the rest of a host.

Fields are saved by name; what was never seen of a container is left out.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from functools import cache
from typing import Any

from dltools.labels import Role
from dltools.notation.json_values import from_json_number, to_json_number
from dltools.observations.host_samples import GpuUse
from dltools.observations.metric_names import OFTEN
from dltools.observations.roles import from_row
from dltools.plan.signals.container_history import ContainerHistory, Member
from dltools.plan.signals.cpu_demand import CpuDemand, Throttled
from dltools.plan.signals.curves import curve_from_json
from dltools.plan.signals.effort import EpochCost, GpuLever, GpuSeconds
from dltools.plan.signals.metric_series import LearningHistory, Series
from dltools.plan.signals.owner import UNKNOWN_OWNER, Owner
from dltools.plan.signals.paces import GpuPace, Mark, Pace, Place

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
    "epoch_count",
    "step_count",
    "managed",
    "is_busy",
    "openmp_runtime",
    "openmp_settings",
)


def save_container(history: ContainerHistory) -> dict[str, Any]:
    """Return a history as JSON values, which `load_container` takes."""
    pace = {} if history.pace is None else {"pace": _save_pace(history.pace)}
    if history.gpu_pace is not None:
        pace["gpu_pace"] = _save_gpu_pace(history.gpu_pace)
    if history.gpu_lever is not None:
        pace["gpu_lever"] = field_values(history.gpu_lever)
    cpu = history.cpu
    demand: dict[str, Any] = {"cores": list(cpu.cores)} if cpu.cores else {}
    if cpu.demands or cpu.quiet_since is not None:
        demand |= {
            "demands": list(cpu.demands),
            "uses": [null_if_infinite(use) for use in cpu.uses],
            "quiet_since": cpu.quiet_since,
        }
    owner = {} if history.owner == UNKNOWN_OWNER else {"owner": _save_owner(history.owner)}
    return {
        **{name: getattr(history, name) for name in _CONTAINER_FIELDS},
        **pace,
        **demand,
        **_save_role(history),
        "cgroup_parent": history.cgroup_parent,
        "gpu_seconds": _save_gpu_seconds(history.gpu_seconds),
        "gpu_used_at": history.gpu_used_at,
        "job": history.job,
        "members": [field_values(member) for member in history.members],
        "job_containers": history.job_containers,
        **({"thread_pools": history.thread_pools} if history.thread_pools else {}),
        **({"throttled": history.throttled._asdict()} if history.throttled.at is not None else {}),
        **({"user": history.observed_user} if history.observed_user else {}),
        **({"cannot": sorted(history.cannot)} if history.cannot else {}),
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


def load_container(id_: str, saved: Mapping[str, Any]) -> ContainerHistory:
    """Return the history that was saved. Raises KeyError, TypeError or ValueError."""
    fields = {name: saved[name] for name in _CONTAINER_FIELDS}
    history = ContainerHistory(id_, **fields)
    history.epoch_cost = _load_epoch_cost(saved["epoch_cost"])
    history.cpu = CpuDemand(
        tuple(map(float, saved.get("cores", ()))),
        tuple(map(float, saved.get("demands", ()))),
        tuple(map(real, saved.get("uses", ()))),
        saved.get("quiet_since"),
    )
    history.cgroup_parent = saved["cgroup_parent"]
    history.gpu_seconds = _load_gpu_seconds(saved["gpu_seconds"])
    history.gpu_used_at = saved["gpu_used_at"]
    history.job, history.members = saved["job"], tuple(Member(**one) for one in saved["members"])
    history.job_containers = saved["job_containers"]
    history.observed_user = saved.get("user")
    history.thread_pools = saved.get("thread_pools")
    history.throttled = Throttled(**saved.get("throttled", {}))
    history.cannot = frozenset(map(str, saved.get("cannot", ())))
    history.owner = _load_owner(saved["owner"]) if "owner" in saved else UNKNOWN_OWNER
    history.label({str(key): str(value) for key, value in saved["labels"].items()})
    samples = zip(saved["samples"]["times"], saved["samples"]["cpu_seconds"], strict=True)
    history.samples = [(int(time), float(seconds)) for time, seconds in samples]
    history.metrics = {name: _load_series(series) for name, series in saved["metrics"].items()}
    history.pace = _load_pace(saved["pace"]) if "pace" in saved else None
    history.gpu_pace = _load_gpu_pace(saved["gpu_pace"]) if "gpu_pace" in saved else None
    history.gpu_lever = GpuLever(**saved["gpu_lever"]) if "gpu_lever" in saved else None
    history.reports = int(saved["reports"])
    history.observed_role = from_row(*saved.get("observed_role", (None, None)))
    history.earlier_role = Role(saved["earlier_role"]) if "earlier_role" in saved else None
    history.judge()
    return history


def _save_role(history: ContainerHistory) -> dict[str, Any]:
    """Return what a container is, and what is known of that beside its labels and metrics."""
    saved: dict[str, Any] = {"role": history.role, "role_reason": history.judgement.reason}
    if history.observed_role is not None:
        saved["observed_role"] = [history.observed_role.role, history.observed_role.reason]
    if history.earlier_role is not None:
        saved["earlier_role"] = history.earlier_role
    return saved


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
    series = Series(
        times=[int(time) for time in saved["times"]],
        values=[from_json_number(value) for value in saved["values"]],
        steps=list(saved["steps"]),
        count=int(saved["count"]),
        not_finite=int(saved["not_finite"]),
        first=None if saved["first"] is None else float(saved["first"]),
        low=from_json_number(saved["low"]),
        high=from_json_number(saved["high"]),
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


def _save_gpu_seconds(used: GpuSeconds) -> dict[str, Any]:
    return {
        "since": used.since,
        "times": [time for time, _ in used.samples],
        "seconds": [seconds for _, seconds in used.samples],
        "gpus": {gpu: save_use(use) for gpu, use in used.gpus.items()},
    }


def _load_gpu_seconds(saved: Mapping[str, Any]) -> GpuSeconds:
    samples = zip(map(int, saved["times"]), map(float, saved["seconds"]), strict=True)
    gpus = {str(gpu): load_use(use) for gpu, use in saved["gpus"].items()}
    if (saved["since"] is None) == bool(saved["times"]):
        raise ValueError("GPU seconds begin where they have no samples")
    return GpuSeconds(saved["since"], list(samples), gpus)


def save_use(use: GpuUse) -> dict[str, Any]:
    """Return the use of a GPU as JSON values."""
    return use._asdict() | {"ratio": null_if_infinite(use.ratio)}


def load_use(saved: Mapping[str, Any]) -> GpuUse:
    """Return the use that was saved. Raises KeyError, TypeError or ValueError."""
    return GpuUse(real(saved["ratio"]), saved["memory"], saved["limit"])


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


def _save_pace(pace: Pace) -> dict[str, Any]:
    """Return a pace as JSON values."""
    marks = ("newest", "begin", "used")
    found = field_values(pace)
    return found | {name: found[name] and field_values(found[name]) for name in marks}


def _load_pace(saved: Mapping[str, Any]) -> Pace:
    """Return the pace that was saved. Raises KeyError, TypeError or ValueError."""
    place = None if saved["place"] is None else Place(saved["place"])
    marks = {name: Mark(**saved[name]) for name in ("newest", "begin", "used") if saved[name]}
    return Pace(**{**saved, **marks, "place": place})


def _save_gpu_pace(pace: GpuPace) -> dict[str, Any]:
    """Return a pace on GPUs as JSON values."""
    company = None if pace.company is None else list(pace.company)
    return field_values(pace) | {"company": company, "rates": list(pace.rates)}


def _load_gpu_pace(saved: Mapping[str, Any]) -> GpuPace:
    """Return the pace that was saved. Raises KeyError, TypeError or ValueError."""
    company = None if saved["company"] is None else tuple(map(str, saved["company"]))
    rates = tuple(map(float, saved["rates"]))
    return GpuPace(**{**saved, "company": company, "rates": rates, "alone": float(saved["alone"])})


def field_values(value: Any) -> dict[str, Any]:
    """Return a dataclass's fields by name, the values as they are."""
    return {name: getattr(value, name) for name in _names(value.__class__)}


@cache
def _names(kind: type) -> tuple[str, ...]:
    return tuple(field.name for field in dataclasses.fields(kind))


def null_if_infinite(value: Any) -> Any:
    """Return a value, None for NaN and the infinities."""
    return None if isinstance(value, float) and not math.isfinite(value) else value


def real(value: float | None) -> float:
    """Return a number, NaN for None."""
    return math.nan if value is None else float(value)
