"""Small recordings for tests: samples of a host with jobs whose loss and CPU are given."""

import io
from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

from dltools.actions.plan_lines import dump_plan, load_plans
from dltools.actions.plans import Action, Plan
from dltools.observations.newest_rows import ObservedHosts
from dltools.observations.roles import NO_RULES, Rules
from dltools.observations.table import Row, to_table
from dltools.plan.outcome.decisions import JobDecision
from dltools.plan.planner import Planner
from dltools.plan.policy import registry
from dltools.plan.policy.flowcon import FLOWCON
from dltools.plan.policy.interface import Policy
from dltools.plan.policy.parameters import build
from dltools.plan.realisation.options import Mode, QueueParameters, RealisationOptions

BEGUN = datetime(2026, 1, 1, tzinfo=UTC)
SHARING = ("flowcon", "srtf", "fair", "las", "slaq", "tradl")
"""The policies that share CPUs among trainings."""


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


# Planners that have each policy's defaults


def planner(
    policy: str = "fair",
    mode: Mode | None = None,
    state: Any = None,
    rules: Rules = NO_RULES,
    **queue: Any,
) -> Planner:
    """`queue` are parameters of its queue."""
    found = registry.get(policy, [])
    options = RealisationOptions(mode, queue=QueueParameters(**queue))
    return Planner(found, found.parameters(), options, state, rules=rules)


def having_read(made: Planner, rows: Iterable[Row]) -> Planner:
    made.add(to_table(sorted(rows, key=lambda row: row["time"])))
    return made


def feed(made: Planner, *rows: Row) -> Plan:
    """Add a sample of a stream, and return the plan after it."""
    having_read(made, rows).complete()
    return reread(made.plan({}))


def plan_in_two(make: Callable[..., Planner], rows: list[Row], cut: int) -> Plan:
    """Return the plan where one planner reads some rows, and the next, with its state, the rest."""
    state = reread(having_read(make(), rows[:cut]).plan({})).state
    return having_read(make(state=state or None), rows[cut:]).plan({})


def by_name(plan: Plan) -> dict[str, Action]:
    return {action.container_name: action for action in plan.actions}


def sets(plan: Plan) -> dict[str, dict[str, Any]]:
    return {name: {**action.set} for name, action in by_name(plan).items()}


def weights(plan: Plan) -> dict[str, float]:
    return {name: one["weight"] for name, one in sets(plan).items() if "weight" in one}
