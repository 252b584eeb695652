"""What dl-probe --doctor finds in a sample: of the host, of each container, and of how they share.

Each finding is ok, a warning or a failure, with the command to type next. What dl-plan would say of
the sample it says itself: its advice, its actions, its reason for none.
"""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from dltools.cli.remarks import as_root
from dltools.cli.values_in_words import role
from dltools.labels import ROLE, Role
from dltools.plan.planner import Planner
from dltools.plan.policy.flowcon import FLOWCON
from dltools.plan.policy.parameters import build
from dltools.plan.realisation.options import RealisationOptions

if TYPE_CHECKING:
    from dltools.engine.interface import Engine
    from dltools.observations.roles import Rules

Row = Mapping[str, Any]

_ADVICE = ("warning: ", "advice: ")
"""How the lines of a plan begin that are for the owners of jobs."""

_NEEDS_ROOT = ("may not", "ermission", "not visible")
"""Words of gaps that more rights would close."""

_IN_A_VM = (
    "a virtual machine is behind this socket, such as Docker Desktop's: its processes, cgroups, "
    "pressure, demand and runtimes are not visible here; run the tools inside it"
)

_AT_START = "share of a GPU: {}, set at its start; dl-apply cannot change that while it runs"


class Health(StrEnum):
    """How good or bad a finding is."""

    OK = "ok"
    WARNING = "warning"
    FAILURE = "failure"


@dataclass(frozen=True, slots=True)
class Finding:
    """What was found of one thing, and what to type next, "" for nothing."""

    health: Health
    subject: str
    text: str
    next: str = ""


def of_sample(
    engine: Engine, rows: Sequence[Row], rules: Rules, before: Sequence[Row]
) -> Iterator[Finding]:
    """Yield the findings in a sample of an engine's host. `before`: its counters a while ago."""
    from dltools.observations.table import to_table
    from dltools.probe.counters import ELSEWHERE

    planner = Planner(FLOWCON, build(FLOWCON.parameters, {}), RealisationOptions(), rules=rules)
    planner.add(to_table([*({**row, "demand_cores": None} for row in before), *map(dict, rows)]))
    for row in rows:
        if row["kind"] == "node" and row.get("gap") == ELSEWHERE and engine.is_local:
            yield Finding(Health.WARNING, "host", _IN_A_VM, "docker info -f '{{.OperatingSystem}}'")
        elif row["kind"] == "node":
            yield _of_host(row, expects_gpus=engine.has_gpu)
    yield from _of_containers(rows)
    yield from _of_plan(planner)


def _of_containers(rows: Sequence[Row]) -> Iterator[Finding]:
    reported = (row for row in rows if row["kind"] == "progress")
    points = Counter((row["container_id"], row["metric"]) for row in reported)
    gpus = Counter(row.get("container_id") for row in rows if row["kind"] == "gpu")
    for row in rows:
        if row["kind"] == "container":
            key = row["container_id"]
            metrics = {metric: count for (id_, metric), count in points.items() if id_ == key}
            yield _of_container(row, metrics, gpus[key])
            if given := row.get("gpu_share_at_start"):
                yield Finding(Health.OK, str(row["container_name"]), _AT_START.format(given))


def _of_host(row: Row, *, expects_gpus: bool) -> Finding:
    count, gap = row.get("gpu_count"), row.get("gap")
    if gap and (expects_gpus or not str(gap).startswith("NVML")):
        return Finding(Health.WARNING, "host", str(gap), "nvidia-smi" if "NVML" in gap else "")
    gpus = f"{count} GPUs" if count else "no GPU"
    return Finding(Health.OK, "host", f"{row.get('cpu_count') or 0:g} CPUs for containers, {gpus}")


def _of_container(row: Row, metrics: Mapping[str, int], gpus: int) -> Finding:
    read = ["counters"] if row.get("cpu_seconds") is not None else []
    read += [f"{count} points of {metric}" for metric, count in sorted(metrics.items())[:3]]
    read += [f"{gpus} GPU"] if gpus else []
    what = "unknown role" if role(row) == "-" else role(row)
    text = f"{what}; read: {', '.join(read) or 'nothing'}"
    name, gap = str(row["container_name"]), row.get("gap")
    if gap:
        advice = as_root("dl-probe", "--doctor") if any(word in gap for word in _NEEDS_ROOT) else ""
        return Finding(Health.WARNING, name, f"{text}; not read: {gap}", advice)
    if row.get("role") == Role.TRAINING and not metrics:
        text += "; no progress found, so that no policy can judge it"
        advice = f"dl-probe --list-metrics --name {shlex.quote(f'^{name}$')}"
        return Finding(Health.WARNING, name, text, advice)
    return Finding(Health.OK, name, text)


def _of_plan(planner: Planner) -> Iterator[Finding]:
    explanation = planner.explain()
    decisions = explanation.decisions
    for line in explanation.lines:
        if line.startswith(_ADVICE):
            yield Finding(Health.WARNING, "threads", line.partition(": ")[2])
    if explanation.nothing:
        trainings = any(decision.role.startswith(Role.TRAINING) for decision in decisions)
        advice = f"docker run --label {ROLE}=training ..." if decisions and not trainings else ""
        yield Finding(Health.OK, "plan", f"nothing to do: {explanation.nothing}", advice)
    else:
        count = sum(decision.setting is not None for decision in decisions)
        text = f"dl-plan would change {count} container{'' if count == 1 else 's'}"
        yield Finding(Health.OK, "plan", text, "dl-probe | dl-plan --format table")
