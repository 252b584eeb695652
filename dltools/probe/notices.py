"""Finds the notices of `dl-probe --notify` in samples. Each notice about a container comes once.

- finished, failed: a job has exited with 0, or with another code.
- out_of_memory: the kernel has killed a process of it. A later exit by SIGKILL gives no new notice.
- diverged: the metric that judges it is lost, which means not finite in the newest three reports,
  and so are all its training losses, or, without these, all its losses, as in policies
  (`dltools.plan.signals.evaluation_metric`). If none was ever finite, such a metric counts too.
- target_met: it has met `dltools.target`, or `dltools.target.final`.
- stalled: a training has not reported for `SILENT_S` and for three times its longest silence
  before, and has been still for `STILL_S`.
- gpu_idle: a container that is no server holds GPU memory, has used no GPU, and has been still for
  `GPU_IDLE_S`.

A container is still if it has run all the time, has used almost no CPU, disk, network or GPU, and
has not waited for a CPU or for input and output. So a validation, which computes, and a checkpoint,
which writes, give no notice. An unknown use of a CPU or GPU counts as use. Only rows count, no
clock. The rules are ours.
"""

from __future__ import annotations

import math
from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any, Protocol

from dltools.labels import METRIC, Role, parse_labels
from dltools.observations import metric_names
from dltools.text import printable

Row = Mapping[str, Any]

SILENT_S = 600.0
"""Least time without a report after which a training may be stalled (s)."""

_SILENCES = 3.0
"""That time must also be this many times the training's longest silence before."""

STILL_S = 300.0
"""For how long a stalled training has been still (s)."""

GPU_IDLE_S = 900.0
"""For how long a GPU must be held and idle (s)."""

_CORES, _RATIO, _BYTES_PER_S = 0.05, 0.01, 10_000.0
"""A container that uses less is still: cores, part of a GPU or of the time, bytes per second."""

_BUSY_HOST = 0.9
"""A container may wait for a CPU if this part of the host's CPUs is busy, or more."""

_LOST = 3
"""A metric is lost after this many reports in a row that are not finite."""

_REPORTS = 3
"""A training can be stalled only after this many reports: before, it has no usual silence."""

_REMEMBERED = 10_000
"""Most containers whose earlier notices are remembered."""

_ABSENT = 5
"""A container is forgotten after this many samples without it."""

_KILLED = 137
_SIGNALS = {130: "SIGINT", 137: "SIGKILL", 139: "SIGSEGV", 143: "SIGTERM, as docker stop sends"}
_STOPPED = (130, 137, 143)
"""Exit codes of servers that were told to end."""

_MOVED = ("io_read_bytes", "io_write_bytes", "network_receive_bytes", "network_transmit_bytes")


class Event(StrEnum):
    """The kinds of notices."""

    FINISHED = "finished"
    FAILED = "failed"
    DIVERGED = "diverged"
    STALLED = "stalled"
    OUT_OF_MEMORY = "out_of_memory"
    TARGET_MET = "target_met"
    GPU_IDLE = "gpu_idle"


@dataclass(frozen=True, slots=True)
class Notice:
    """One notice. `container` is the container's newest row; `details` are facts by name, such as
    `exit_code`, `metric` and `value`."""

    event: Event
    time: datetime
    container: Row
    message: str
    details: Mapping[str, Any] = field(default_factory=dict)


class Targets(Protocol):
    """A job's targets, as in `dltools.plan.signals.targets.Targets`."""

    @property
    def metric(self) -> str | None:
        """The metric of the targets."""

    @property
    def first(self) -> float | None:
        """The first target."""

    @property
    def final(self) -> float | None:
        """The final target."""

    def meets(self, value: float, target: float) -> bool:
        """Tell whether a value meets a target."""


TargetsOf = Callable[[Mapping[str, str]], Targets]
"""Reads a job's targets from its labels."""


@dataclass(slots=True)
class _Metric:
    """A summary of one metric's points: the newest value, the number of finite values, the number
    of newest values that are not finite (`lost`), and the largest absolute value."""

    value: float = math.nan
    finite: int = 0
    lost: int = 0
    peak: float = 0.0

    def add(self, value: float) -> None:
        self.value = value
        if math.isfinite(value):
            self.finite, self.lost = self.finite + 1, 0
            self.peak = max(self.peak, abs(value))
        else:
            self.lost += 1

    @property
    def is_lost(self) -> bool:
        return self.lost >= _LOST


@dataclass(slots=True)
class _Watched:
    """A run of a container: its newest row and GPU rows, its metrics, the time of its newest report
    and its longest silence, since when it has been still (None: it is not), whether the kernel has
    killed a process of it, and the number of samples in which it was absent."""

    row: Row
    targets: Targets
    labels: Mapping[str, str]
    metrics: dict[str, _Metric] = field(default_factory=dict)
    reports: int = 0
    reported: datetime | None = None
    longest_s: float = 0.0
    still_since: datetime | None = None
    is_killed: bool = False
    gpus: Sequence[Row] = ()
    absent: int = 0

    @property
    def is_job(self) -> bool:
        return self.row.get("role") in (Role.TRAINING, Role.SERVER)

    def add_point(self, row: Row) -> None:
        self.metrics.setdefault(row["metric"], _Metric()).add(row["value"])
        time = row["time"]
        if self.reported is None or time > self.reported:
            if self.reported is not None:
                self.longest_s = max(self.longest_s, _seconds(self.reported, time))
            self.reports, self.reported = self.reports + 1, time

    def lost_metric(self) -> str | None:
        """Return the metric by which it has diverged, None if it has not."""
        known = {name: one for name, one in self.metrics.items() if one.finite}
        losses = [name for name in known if metric_names.is_training_loss(name)]
        losses = losses or [name for name in known if metric_names.is_loss(name)]
        if not all(known[name].is_lost for name in losses or known):
            return None
        if not known:
            first = min(self.metrics, key=metric_names.evaluation_rank, default=None)
            return first if first is not None and self.metrics[first].is_lost else None
        seen = {name: metric_names.Seen(one.peak, one.finite) for name, one in known.items()}
        wanted = [name for name in (self.targets.metric, self.labels.get(METRIC)) if name in known]
        judging = (wanted or metric_names.evaluation_order(seen))[0]
        return judging if known[judging].is_lost else None


class Notices:
    """Finds notices in successive samples."""

    def __init__(self, targets_of: TargetsOf) -> None:
        """Start without any sample."""
        self._targets_of = targets_of
        self._watched: dict[tuple[str, str], _Watched] = {}
        self._told: OrderedDict[tuple[str, str], set[str]] = OrderedDict()
        self._nodes: dict[str, Row] = {}

    def take(self, rows: Sequence[Row]) -> list[Notice]:
        """Add a sample, and return its notices."""
        before = dict(self._nodes)
        gpus: dict[tuple[str, str], list[Row]] = {}
        points: list[Row] = []
        present = []
        for row in rows:
            if row["kind"] == "node" and row.get("cpu_seconds") is not None:
                self._nodes[row["host"]] = row
            elif row["kind"] == "gpu" and row.get("container_id"):
                gpus.setdefault(_key(row), []).append(row)
            elif row["kind"] == "progress":
                points.append(row)
        for row in rows:
            if row["kind"] == "container":
                key = _key(row)
                self._see(key, row, gpus.get(key, ()), before.get(row["host"]))
                present.append(key)
        found: list[Notice] = []
        for row in points:
            found += self._point(row)
        for row in rows:
            if row["kind"] == "event":
                found += self._event(row)
        for key in present:
            found += self._states(key)
        self._forget(present, {row["host"] for row in rows if row["kind"] == "node"})
        return found

    def _see(
        self, key: tuple[str, str], row: Row, gpus: Sequence[Row], node_before: Row | None
    ) -> None:
        known = self._watched.get(key)
        if known is None or known.row.get("started_at") != row.get("started_at"):
            labels = parse_labels(row.get("labels"))
            self._watched[key] = _Watched(row, self._targets_of(labels), labels, gpus=gpus)
            return
        node = self._nodes.get(row["host"])
        is_lost_gpu = bool(known.gpus) and not gpus
        if is_lost_gpu or not is_still(known.row, row, gpus, node_before, node):
            known.still_since = None
        elif known.still_since is None:
            known.still_since = known.row["time"]
        known.row, known.gpus, known.absent = row, gpus, 0

    def _forget(self, present: Sequence[tuple[str, str]], hosts: Iterable[str]) -> None:
        """Forget containers that are gone from the sampled hosts, some samples later, because the
        event of their exit may come late."""
        for key in [key for key in self._watched if key[0] in hosts]:
            known = self._watched[key]
            known.absent = 0 if key in present else known.absent + 1
            if known.absent > _ABSENT:
                del self._watched[key]

    def _point(self, row: Row) -> Iterable[Notice]:
        known = self._watched.get(_key(row))
        if known is None:
            return
        known.add_point(row)
        targets, value = known.targets, row["value"]
        if row["metric"] == targets.metric:
            for tier, target in (("first", targets.first), ("final", targets.final)):
                if target is not None and targets.meets(value, target):
                    which = "final target" if tier == "final" else "target"
                    message = f"{row['metric']} is {value:g}: its {which} {target:g} is met"
                    details = {
                        "metric": row["metric"],
                        "value": value,
                        "target": target,
                        "tier": tier,
                    }
                    yield from self._tell(
                        Event.TARGET_MET, known, message, details, row["time"], tier
                    )

    def _event(self, row: Row) -> Iterable[Notice]:
        key = _key(row)
        known = self._watched.get(key)
        if known is None:
            return
        time = row["time"]
        if row["event"] == "oom":
            known.is_killed = True
            message = "the kernel has killed a process of it: out of memory"
            yield from self._tell(Event.OUT_OF_MEMORY, known, message, {}, time)
        elif row["event"] == "exit":
            code, is_killed = row.get("exit_code"), known.is_killed
            known.is_killed, known.still_since = False, None
            if not known.is_job or (is_killed and code == _KILLED):
                return
            ran = _ran(known.row.get("started_at"), time)
            signal = f" ({_SIGNALS[code]})" if code in _SIGNALS else ""
            if code == 0:
                yield from self._tell(
                    Event.FINISHED, known, f"finished{ran}", {"exit_code": 0}, time
                )
            elif code in _STOPPED and known.row.get("role") == Role.SERVER:
                message = f"stopped{ran}: exit code {code}{signal}"
                yield from self._tell(Event.FINISHED, known, message, {"exit_code": code}, time)
            elif code is not None:
                message = f"failed{ran}: exit code {code}{signal}"
                yield from self._tell(Event.FAILED, known, message, {"exit_code": code}, time)

    def _states(self, key: tuple[str, str]) -> Iterable[Notice]:
        known = self._watched[key]
        now, role = known.row["time"], known.row.get("role")
        if role == Role.TRAINING and (metric := known.lost_metric()) is not None:
            value = known.metrics[metric].value
            message = f"diverged: {metric} is {value:g} in its newest {_LOST} reports"
            yield from self._tell(
                Event.DIVERGED, known, message, {"metric": metric, "value": value}, now
            )
        still_s = 0.0 if known.still_since is None else _seconds(known.still_since, now)
        silent_s = 0.0 if known.reported is None else _seconds(known.reported, now)
        is_silent = silent_s >= max(SILENT_S, _SILENCES * known.longest_s)
        if role == Role.TRAINING and known.reports >= _REPORTS and is_silent and still_s >= STILL_S:
            message = f"stalled: no report for {_span(silent_s)}, and nothing of it moves"
            details = {"silent_seconds": silent_s, "still_seconds": still_s}
            yield from self._tell(Event.STALLED, known, message, details, now)
        held = [gpu for gpu in known.gpus if (gpu.get("gpu_memory_used_bytes") or 0) > 0]
        if held and role != Role.SERVER and still_s >= GPU_IDLE_S:
            size = sum(gpu["gpu_memory_used_bytes"] for gpu in held)
            message = f"holds {size / 2**30:.3g} GiB of GPU memory, idle for {_span(still_s)}"
            facts: dict[str, Any] = {
                "gpu_uuid": [gpu["gpu_uuid"] for gpu in held],
                "gpu_memory_used_bytes": size,
                "still_seconds": still_s,
            }
            yield from self._tell(Event.GPU_IDLE, known, message, facts, now)

    def _tell(
        self,
        event: Event,
        known: _Watched,
        message: str,
        details: Mapping[str, Any],
        time: datetime,
        which: str = "",
    ) -> Iterable[Notice]:
        key = _key(known.row)
        told = self._told.setdefault(key, set())
        self._told.move_to_end(key)
        while len(self._told) > _REMEMBERED:
            self._told.popitem(last=False)
        if event + which in told:
            return
        told.add(event + which)
        name = known.row.get("container_name") or key[1][:12]
        yield Notice(event, time, known.row, printable(f"{name}: {message}"), details)


def is_still(
    before: Row, now: Row, gpus: Iterable[Row], node_before: Row | None, node: Row | None
) -> bool:
    """Tell whether a container was still between two of its rows. `gpus` are its GPU rows, the
    nodes are rows of its host. An unknown use of a CPU or GPU counts as use."""
    span_s = _seconds(before["time"], now["time"])
    states = (before.get("state"), now.get("state"))
    if span_s <= 0 or states != ("running", "running") or now.get("turn_seconds") is not None:
        return False
    used = _rate(before, now, "cpu_seconds", span_s)
    if used is None or used >= _CORES:
        return False
    if any((_rate(before, now, name, span_s) or 0.0) >= _BYTES_PER_S for name in _MOVED):
        return False
    waits = _rate(before, now, "io_pressure_seconds", span_s)
    if waits is not None and waits >= _RATIO:
        return False
    ratios = [gpu.get("gpu_utilization_ratio") for gpu in gpus]
    if any(ratio is None or not ratio < _RATIO for ratio in ratios):
        return False
    return not _may_wait_for_cpu(before, now, node_before, node, span_s)


def _may_wait_for_cpu(
    before: Row, now: Row, node_before: Row | None, node: Row | None, span_s: float
) -> bool:
    demand, waits = now.get("demand_cores"), _rate(before, now, "cpu_pressure_seconds", span_s)
    if demand is not None:
        return bool(demand >= _CORES)
    if waits is not None:
        return waits >= _CORES
    if node is None or node_before is None or not node.get("cpu_count"):
        return True
    host_s = _seconds(node_before["time"], node["time"])
    used = _rate(node_before, node, "cpu_seconds", host_s) if host_s > 0 else None
    return used is None or bool(used >= _BUSY_HOST * node["cpu_count"])


def _rate(before: Row, now: Row, name: str, span_s: float) -> float | None:
    """Return the rise of a counter per second, None if it is unknown or was reset."""
    first, last = before.get(name), now.get(name)
    if first is None or last is None or last < first:
        return None
    return float(last - first) / span_s


def _key(row: Row) -> tuple[str, str]:
    return row["host"], row["container_id"]


def _seconds(before: datetime, now: datetime) -> float:
    return (now - before).total_seconds()


def _ran(started: datetime | None, ended: datetime) -> str:
    return f" after {_span(_seconds(started, ended))}" if started and ended > started else ""


def _span(seconds: float) -> str:
    if seconds < 120:
        return f"{seconds:.0f} s"
    if seconds < 7200:
        return f"{seconds / 60:.0f} min"
    return f"{seconds / 3600:.1f} h"
