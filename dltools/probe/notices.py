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
- paused: a container that takes no turns has been paused for `PAUSED_S`.
- waiting: a job has been held back for `WAITS_S`: in its turns, or by its weight.
- unhealthy: its health check has failed, by the engine's word.

`stillness` says when a container is still, and when it is held back. Only rows count, no clock. The
rules are ours.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any

from dltools.labels import METRIC, Role, parse_labels
from dltools.notation.limits import WEIGHT
from dltools.observations import judging_metric
from dltools.observations.device_rows import DEVICE_COLUMNS
from dltools.observations.newest_rows import Observed
from dltools.observations.targets import Targets, parse
from dltools.probe.stillness import is_held_back, is_still, seconds_between
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

PAUSED_S = 60.0
"""For how long a container that takes no turns has been paused (s)."""

WAITS_S = 60.0
"""For how long a job has been held back (s)."""

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


class Event(StrEnum):
    """The kinds of notices."""

    FINISHED = "finished"
    FAILED = "failed"
    DIVERGED = "diverged"
    STALLED = "stalled"
    OUT_OF_MEMORY = "out_of_memory"
    TARGET_MET = "target_met"
    GPU_IDLE = "gpu_idle"
    PAUSED = "paused"
    WAITING = "waiting"
    UNHEALTHY = "unhealthy"


@dataclass(frozen=True, slots=True)
class Notice:
    """One notice."""

    event: Event
    """What has happened."""

    time: datetime
    """When."""

    container: Row
    """The container's newest row."""

    message: str
    """The same for people, in one line."""

    details: Mapping[str, Any] = field(default_factory=dict)
    """Facts by name, such as `exit_code`, `metric` and `value`."""


@dataclass(slots=True, kw_only=True)
class _Watched(Observed):
    """A run of a container, with the time of its newest report and its longest silence, since when
    it has been still, paused and held back (None: it is not), whether the kernel has killed a
    process of it, and the number of samples in which it was absent."""

    labels: Mapping[str, str]
    targets: Targets
    reports: int = 0
    reported: datetime | None = None
    longest_s: float = 0.0
    still_since: datetime | None = None
    paused_since: datetime | None = None
    waits_since: datetime | None = None
    is_killed: bool = False
    absent: int = 0

    def seconds(self, since: datetime | None) -> float:
        """Return for how long something has been so (s), 0 if it is not."""
        return 0.0 if since is None else seconds_between(since, self.row["time"])

    @property
    def is_job(self) -> bool:
        return self.row.get("role") in (Role.TRAINING, Role.SERVER)

    def add_point(self, row: Row) -> None:
        Observed.add_point(self, row)
        time = row["time"]
        if self.reported is None or time > self.reported:
            if self.reported is not None:
                self.longest_s = max(self.longest_s, seconds_between(self.reported, time))
            self.reports, self.reported = self.reports + 1, time

    def lost_metric(self) -> str | None:
        """Return the metric by which it has diverged, None if it has not."""
        finite = {name: values for name, values in self.values.items() if values.finite}
        lost = {name for name, values in self.values.items() if values.lost >= _LOST}
        losses = [name for name in finite if judging_metric.is_training_loss(name)]
        losses = losses or [name for name in finite if judging_metric.is_loss(name)]
        if not lost.issuperset(losses or finite):
            return None
        if not finite:
            first = min(self.values, key=judging_metric.evaluation_rank, default=None)
            return first if first in lost else None
        seen = {name: values.seen for name, values in finite.items()}
        asked = [name for name in (self.targets.metric, self.labels.get(METRIC)) if name in finite]
        judging = (asked or judging_metric.evaluation_order(seen))[0]
        return judging if judging in lost else None


class Notices:
    """Finds notices in successive samples."""

    def __init__(self) -> None:
        """Start without any sample."""
        self._watched: dict[tuple[str, str], _Watched] = {}
        self._told: OrderedDict[tuple[str, str], set[str]] = OrderedDict()
        self._nodes: dict[str, Row] = {}

    def take(self, rows: Sequence[Row]) -> list[Notice]:
        """Add a sample, and return its notices."""
        before = dict(self._nodes)
        devices: dict[tuple[str, str], list[Row]] = {}
        points: list[Row] = []
        present = []
        for row in rows:
            if row["kind"] == "node" and row.get("cpu_seconds") is not None:
                self._nodes[row["host"]] = row
            elif row["kind"] in DEVICE_COLUMNS and row.get("container_id"):
                devices.setdefault(_key(row), []).append(row)
            elif row["kind"] == "progress":
                points.append(row)
        for row in rows:
            if row["kind"] == "container":
                key = _key(row)
                self._see(key, row, devices.get(key, ()), before.get(row["host"]))
                present.append(key)
        notices: list[Notice] = []
        for row in points:
            notices += self._point(row)
        for row in rows:
            if row["kind"] == "event":
                notices += self._event(row)
        for key in present:
            notices += self._states(key)
        self._forget(present, {row["host"] for row in rows if row["kind"] == "node"})
        return notices

    def _see(
        self, key: tuple[str, str], row: Row, devices: Sequence[Row], node_before: Row | None
    ) -> None:
        watched = self._watched.get(key)
        if watched is None or watched.row.get("started_at") != row.get("started_at"):
            labels = parse_labels(row.get("labels"))
            new = _Watched(row=row, labels=labels, devices=devices, targets=parse(labels))
            self._watched[key] = new
            return
        node = self._nodes.get(row["host"])
        has_lost = bool(watched.devices) and not devices
        is_stood = not has_lost and is_still(watched.row, row, devices, node_before, node)
        is_paused = row.get("state") == "paused" and row.get("turn_seconds") is None
        is_held = watched.is_job and is_held_back(watched.row, row)
        then = watched.row["time"]
        watched.still_since = (watched.still_since or then) if is_stood else None
        watched.paused_since = (watched.paused_since or row["time"]) if is_paused else None
        watched.waits_since = (watched.waits_since or then) if is_held else None
        watched.take(row)
        watched.devices, watched.absent = devices, 0

    def _forget(self, present: Sequence[tuple[str, str]], hosts: Iterable[str]) -> None:
        """Forget containers that are gone from the sampled hosts, some samples later, because the
        event of their exit may come late."""
        for key in [key for key in self._watched if key[0] in hosts]:
            watched = self._watched[key]
            watched.absent = 0 if key in present else watched.absent + 1
            if watched.absent > _ABSENT:
                del self._watched[key]

    def _point(self, row: Row) -> Iterable[Notice]:
        watched = self._watched.get(_key(row))
        if watched is None:
            return
        watched.add_point(row)
        targets, metric, value = watched.targets, row["metric"], row["value"]
        if metric != targets.metric:
            return
        for tier, target in (("first", targets.first), ("final", targets.final)):
            if target is not None and targets.meets(value, target):
                which = "final target" if tier == "final" else "target"
                message = f"{metric} is {value:g}: its {which} {target:g} is met"
                details = {"metric": metric, "value": value, "target": target, "tier": tier}
                time = row["time"]
                yield from self._tell(Event.TARGET_MET, watched, message, details, time, tier)

    def _event(self, row: Row) -> Iterable[Notice]:
        key = _key(row)
        watched = self._watched.get(key)
        if watched is None:
            return
        time = row["time"]
        if row["event"] == "oom":
            watched.is_killed = True
            message = "out of memory: the kernel has killed one of its processes"
            yield from self._tell(Event.OUT_OF_MEMORY, watched, message, {}, time)
        elif row["event"] == "unhealthy":
            while_ = " while it is paused" if watched.row.get("state") == "paused" else ""
            message = f"unhealthy: its health check has failed{while_}"
            yield from self._tell(Event.UNHEALTHY, watched, message, {}, time)
        elif row["event"] == "exit":
            code, is_killed = row.get("exit_code"), watched.is_killed
            watched.is_killed, watched.still_since = False, None
            if not watched.is_job or (is_killed and code == _KILLED):
                return
            ran = _ran(watched.row.get("started_at"), time)
            signal = f" ({_SIGNALS[code]})" if code in _SIGNALS else ""
            is_stopped = code in _STOPPED and watched.row.get("role") == Role.SERVER
            what = Event.FINISHED if code == 0 or is_stopped else Event.FAILED
            message = f"{'stopped' if is_stopped else what}{ran}"
            message += f": exit code {code}{signal}" if code else ""
            if code is not None:
                yield from self._tell(what, watched, message, {"exit_code": code}, time)

    def _states(self, key: tuple[str, str]) -> Iterable[Notice]:
        watched = self._watched[key]
        for event, judge in _STATES.items():
            if (said := judge(watched)) is not None:
                yield from self._tell(event, watched, *said, watched.row["time"])

    def _tell(
        self,
        event: Event,
        watched: _Watched,
        message: str,
        details: Mapping[str, Any],
        time: datetime,
        which: str = "",
    ) -> Iterable[Notice]:
        key = _key(watched.row)
        told = self._told.setdefault(key, set())
        self._told.move_to_end(key)
        while len(self._told) > _REMEMBERED:
            self._told.popitem(last=False)
        if event + which in told:
            return
        told.add(event + which)
        name = watched.row.get("container_name") or key[1][:12]
        yield Notice(event, time, watched.row, printable(f"{name}: {message}"), details)


def _diverged(watched: _Watched) -> _Found | None:
    metric = watched.lost_metric() if watched.row.get("role") == Role.TRAINING else None
    if metric is None:
        return None
    value = watched.values[metric].last
    message = f"diverged: {metric} is {value:g} in its newest {_LOST} reports"
    return message, {"metric": metric, "value": value}


def _stalled(watched: _Watched) -> _Found | None:
    still_s, silent_s = watched.seconds(watched.still_since), watched.seconds(watched.reported)
    is_silent = silent_s >= max(SILENT_S, _SILENCES * watched.longest_s)
    is_known = watched.row.get("role") == Role.TRAINING and watched.reports >= _REPORTS
    if not is_known or not is_silent or still_s < STILL_S:
        return None
    message = f"stalled: no report for {_span(silent_s)}, and no activity"
    return message, {"silent_seconds": silent_s, "still_seconds": still_s}


def _gpu_idle(watched: _Watched) -> _Found | None:
    still_s = watched.seconds(watched.still_since)
    held = [gpu for gpu in watched.devices if (gpu.get("gpu_memory_used_bytes") or 0) > 0]
    if not held or watched.row.get("role") == Role.SERVER or still_s < GPU_IDLE_S:
        return None
    size = sum(gpu["gpu_memory_used_bytes"] for gpu in held)
    message = f"holds {size / 2**30:.3g} GiB of GPU memory, idle for {_span(still_s)}"
    return message, {
        "gpu_uuid": [gpu["gpu_uuid"] for gpu in held],
        "gpu_memory_used_bytes": size,
        "still_seconds": still_s,
    }


def _paused(watched: _Watched) -> _Found | None:
    paused_s = watched.seconds(watched.paused_since)
    if paused_s < PAUSED_S:
        return None
    message = f"paused for {_span(paused_s)}, and takes no turns: whoever paused it must unpause it"
    return message, {"paused_seconds": paused_s}


def _waiting(watched: _Watched) -> _Found | None:
    waits_s = watched.seconds(watched.waits_since)
    if waits_s < WAITS_S:
        return None
    weight, is_paused = watched.row.get(WEIGHT), watched.row.get("state") == "paused"
    how = ", paused until its turn" if is_paused else f" at weight {weight:g}"
    message = f"has waited for {_span(waits_s)}{how}: others go first"
    return message, {"waiting_seconds": waits_s}


_Found = tuple[str, dict[str, Any]]
"""What is said of a container, and the facts."""

_STATES: Mapping[Event, Callable[[_Watched], _Found | None]] = {
    Event.DIVERGED: _diverged,
    Event.STALLED: _stalled,
    Event.GPU_IDLE: _gpu_idle,
    Event.PAUSED: _paused,
    Event.WAITING: _waiting,
}
"""What is told of a container's state, and how it is judged."""


def _key(row: Row) -> tuple[str, str]:
    return row["host"], row["container_id"]


def _ran(started: datetime | None, ended: datetime) -> str:
    return f" after {_span(seconds_between(started, ended))}" if started and ended > started else ""


def _span(seconds: float) -> str:
    if seconds < 120:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 7200 else f"{seconds / 3600:.1f} h"
