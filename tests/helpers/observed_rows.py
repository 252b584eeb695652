"""Small recordings for tests: samples of a host with jobs whose loss and CPU are given."""

import io
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

from dltools.observations.newest_rows import ObservedHosts
from dltools.observations.table import Row, to_table
from dltools.plan.decisions import JobDecision
from dltools.plan.planner import Planner
from dltools.plan.policy.flowcon import FLOWCON
from dltools.plan.policy.interface import Policy
from dltools.plan.policy.parameters import build
from dltools.plan.realisation.mode import Mode, RealisationOptions
from dltools.plan.records import Plan, dump_plan, load_plans

BEGUN = datetime(2026, 1, 1, tzinfo=UTC)


def at(seconds: float) -> datetime:
    return BEGUN + timedelta(seconds=seconds)


def job_id(name: str) -> str:
    return name.encode().hex().ljust(64, "0")[:64]


def node(seconds: float, cpus: float = 2.0, host: str = "node") -> Row:
    return {"time": at(seconds), "host": host, "kind": "node", "cpu_count": cpus}


def container(seconds: float, name: str, cpu_seconds: float, **more: Any) -> Row:
    return {
        "time": at(seconds),
        "host": "node",
        "kind": "container",
        "container_id": job_id(name),
        "container_name": name,
        "state": "running",
        "started_at": BEGUN,
        "cpu_seconds": cpu_seconds,
        "cpu_limit_cores": 2.0,
        "cpu_weight": 1024.0,
    } | more


def point(seconds: float, name: str, value: float, metric: str = "loss", **more: Any) -> Row:
    return {
        "time": at(seconds),
        "host": "node",
        "kind": "progress",
        "container_id": job_id(name),
        "container_name": name,
        "metric": metric,
        "value": value,
    } | more


def gpu(
    seconds: float, name: str, number: int | str, ratio: float | None = 0.9, **more: Any
) -> Row:
    """What a container uses of the GPU of this number."""
    return {
        "time": at(seconds),
        "host": "node",
        "kind": "gpu",
        "container_id": job_id(name),
        "container_name": name,
        "gpu_uuid": f"GPU-{number}",
        "gpu_utilization_ratio": ratio,
    } | more


def observed_hosts(rows: Iterable[Row]) -> ObservedHosts:
    """Return hosts of which one sample has been taken in."""
    hosts = ObservedHosts()
    hosts.take(rows)
    return hosts


def planner_of(
    rows: list[Row], policy: Policy = FLOWCON, mode: Mode = Mode.QUOTA, **given: Any
) -> Planner:
    made = Planner(policy, build(policy.parameters, given), RealisationOptions(mode))
    made.add(to_table(rows))
    return made


def decisions_of(made: Planner) -> Mapping[str, JobDecision]:
    return {decision.name: decision for decision in made.explain().decisions}


def reread(plan: Plan) -> Plan:
    """The plan as the next run finds it in a file."""
    return next(iter(load_plans(io.BytesIO(dump_plan(plan).encode()), "plan")))
