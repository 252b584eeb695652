"""States of version 2, which saved most fields by position, as states of version 3."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

_ALLOCATION = ("share", "job_class", "reason", "signal", "prediction", "unlimited", "rank")
_LEARNING = ("works", "values", "stride", "seen", "last_step")
_POINT = ("container_id", "metric", "time", "value", "step", "epoch")


def upgraded(state: Mapping[str, Any]) -> dict[str, Any]:
    """Return a state of version 2 as one of version 3. Raises KeyError, TypeError or ValueError."""
    return {
        "v": 3,
        "policy": state["policy"],
        "newest": state["newest"],
        "memory": state["memory"],
        "hosts": {name: _host(host) for name, host in state["hosts"].items()},
    }


def classes(state: Mapping[str, Any]) -> Iterator[tuple[str, str, str]]:
    """Yield host, job and class of a state of version 2: early plans had classes there alone."""
    hosts = state.get("hosts")
    for name, host in hosts.items() if isinstance(hosts, Mapping) else ():
        containers = host.get("tracks") or {}
        for key, allocation in (host.get("grants") or {}).items():
            if key in containers and isinstance(allocation, list) and len(allocation) > 1:
                yield str(name), str(containers[key].get("name")), str(allocation[1])


def _host(host: Mapping[str, Any]) -> dict[str, Any]:
    ids, started, labels = host["layout"]
    return {
        "cpus": host["cpus"],
        "cpuset": host["cpuset"],
        "sampled_at": host["settled"],
        "containers": {key: _container(one) for key, one in host["tracks"].items()},
        "timer": dict(zip(("interval_s", "last", "run_ids"), host["rounds"], strict=True)),
        "allocations": {
            key: dict(zip(_ALLOCATION, one, strict=False)) for key, one in host["grants"].items()
        },
        "actions": [
            dict(zip(("kind", "job_id", "reason", "to"), one, strict=True))
            for one in host["orders"]
        ],
        "gain": host["gain"],
        "queue": _queue(host.get("line") or {"places": {}, "due": None}),
        "layout": {"ids": ids, "started": started, "labels": labels},
        "remainder": _remainder(host["rest"]),
    }


def _container(one: Mapping[str, Any]) -> dict[str, Any]:
    samples = one["samples"]
    return {
        **{name: value for name, value in one.items() if name != "held"},
        "turn_s": one.get("turn_s"),
        "managed": bool(one.get("held")),
        "is_busy": False,
        "samples": {
            "times": [time for time, _ in samples],
            "cpu_seconds": [seconds for _, seconds in samples],
        },
        "metrics": {name: _series(series) for name, series in one["metrics"].items()},
    }


def _series(series: Mapping[str, Any]) -> dict[str, Any]:
    points = series["points"]
    found = {
        "times": [point[0] for point in points],
        "values": [point[1] for point in points],
        "steps": [point[2] for point in points],
        "peak": series["peak"],
    }
    if series.get("learning"):
        found["learning"] = dict(zip(_LEARNING, series["learning"], strict=True))
        found |= {"fitted": series["fitted"], "curve": series["curve"]}
    return found


def _queue(line: Mapping[str, Any]) -> dict[str, Any]:
    names = ("first", "since", "urgent")
    positions = {key: dict(zip(names, one, strict=True)) for key, one in line["places"].items()}
    return {"positions": positions, "due": line["due"]}


def _remainder(rest: Mapping[str, Any]) -> dict[str, Any]:
    unknown = [None] * len(rest["rows"]["container_id"])
    return {
        "time": rest["time"],
        "size": rest["size"],
        "rows": {"turn_seconds": unknown, **rest["rows"]},
        "points": {name: [point[at] for point in rest["points"]]
                   for at, name in enumerate(_POINT)},
    }  # fmt: skip
