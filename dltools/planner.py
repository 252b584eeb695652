"""Folding observations into plans: the pure heart of `dl-plan`.

A host's rows of kind `node` and `container` with one time are a sample. A sample is settled, and
the policy decides on it for good, when a later one of the host begins, or when its stream batch
ends. Until then it is pending: the newest plan is a decision on it that leaves no trace. So a
recording may be cut between any two rows, the state handed on, and the last plan is the same.
"""

from __future__ import annotations

import copy
import dataclasses
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from dltools.errors import DataError
from dltools.plans import Action, Op, Plan, Settings, differs
from dltools.policy import history
from dltools.policy.base import Cluster, Decision, Node, Policy, State
from dltools.policy.history import MICRO, Track
from dltools.realize import Mode, realize
from dltools.schema import Kind
from dltools.streams import format_time

if TYPE_CHECKING:
    import pyarrow as pa

STATE_VERSION = 1
_RUNNING = ("running", "paused", "restarting")
_CONTAINER = ("container_name", "state", "started_at", "labels", "cpu_seconds", "cpu_limit_cores",
              "cpu_weight", "thread_count")  # fmt: skip
_READ = (
    "time",
    "host",
    "kind",
    "container_id",
    *_CONTAINER,
    "cpu_count",
    "metric",
    "value",
    "step",
)


@dataclass(frozen=True, slots=True)
class Verdict:
    """What was decided for one container, for people: `setting` is None where nothing changes."""

    host: str
    name: str
    job_class: str
    present: Settings
    setting: Settings | None
    reason: str


@dataclass(slots=True)
class _Host:
    """What is known of one host."""

    cpus: float = 0.0
    settled: int | None = None  # time of the last settled sample
    tracks: dict[str, Track] = field(default_factory=dict)
    sample: int | None = None  # time of the pending sample
    rows: dict[str, dict[str, Any]] = field(default_factory=dict)  # its container rows
    cpus_seen: float | None = None  # its node row's
    points: list[list[Any]] = field(default_factory=list)  # [id, metric, time, value, step]
    decision: Decision | None = None


class Fold:
    """Folds tables of observations, in order, into plans of one policy."""

    def __init__(
        self,
        policy: Policy,
        parameters: Any,
        mode: Mode,
        state: Mapping[str, Any] | None = None,
    ) -> None:
        """Begin, or go on from the `state` of an earlier plan.

        Raises `DataError` for a state of another version or policy.
        """
        self._policy = policy
        self._parameters = parameters
        self._mode = mode
        self._hosts: dict[str, _Host] = {}
        self._state: State = {}
        self._newest: int | None = None
        if state:
            self._restore(state)

    def add(self, table: pa.Table) -> None:
        """Fold in rows, sorted by time; earlier samples settle as later ones begin."""
        for row in _rows(table):
            self._take(row)

    def add_by_tick(self, table: pa.Table) -> Iterator[None]:
        """Fold in rows like `add`, and pause after each sample that a later one settles."""
        for row in _rows(table):
            if self._settles(row):
                self._settle(row["host"])
                yield
            self._take(row)

    def settle(self) -> None:
        """Settle every pending sample: a stream's batch has ended, so the samples are whole."""
        pending = [(host.sample, name) for name, host in self._hosts.items() if host.sample]
        for _, name in sorted(pending):
            self._settle(name)

    def plan(self, input_: Mapping[str, Any], *, pending: bool = True) -> Plan:
        """Return the plan for the newest samples, the pending ones too unless told otherwise.

        `input_` says what was read; the plan repeats it.
        """
        outcome = self._outcome() if pending else self
        actions: list[Action] = []
        for verdict, track in outcome._verdicts():
            if verdict.setting is None:
                continue
            expect = {k: v for k, v in verdict.present.items() if k in verdict.setting}
            actions.append(
                Action(len(actions) + 1, Op.UPDATE, verdict.host, track.id, track.name,
                       verdict.setting, expect, verdict.reason)
            )  # fmt: skip
        waits = [
            host.decision.next_s
            for host in outcome._hosts.values()
            if host.decision is not None and host.decision.next_s is not None
        ]
        return Plan(
            policy=self._policy.name,
            at="" if self._newest is None else format_time(_moment(self._newest)),
            params={**dataclasses.asdict(self._parameters), "realize": self._mode.value},
            input=input_,
            next_s=round(min(waits), 6) if waits else None,
            actions=tuple(actions),
            state=self._save(),
        )

    def explain(self) -> list[Verdict]:
        """Return what was decided for each container and why, for people."""
        return [verdict for verdict, _ in self._outcome()._verdicts()]

    # Rows

    def _settles(self, row: Mapping[str, Any]) -> bool:
        """Tell whether a row begins a new sample of its host while another is pending."""
        host = self._hosts.get(row["host"])
        return (
            row["kind"] != Kind.PROGRESS
            and host is not None
            and host.sample is not None
            and row["time"] > host.sample
        )

    def _take(self, row: dict[str, Any]) -> None:
        if self._newest is None or row["time"] > self._newest:
            self._newest = row["time"]
        host = self._hosts.setdefault(row["host"], _Host())
        if row["kind"] == Kind.PROGRESS:
            if row["container_id"] and row["metric"] and row["value"] is not None:
                host.points.append(
                    [row["container_id"], row["metric"], row["time"], row["value"], row["step"]]
                )
            return
        if host.settled is not None and row["time"] <= host.settled:
            return  # an overlapping recording: seen before
        if self._settles(row):
            self._settle(row["host"])
        host.sample = row["time"]
        if row["kind"] == Kind.NODE:
            if row["cpu_count"] and row["cpu_count"] > 0:
                host.cpus_seen = row["cpu_count"]
        elif row["container_id"] and (row["state"] or "running") in _RUNNING:
            host.rows[row["container_id"]] = {name: row[name] for name in _CONTAINER}

    # Deciding

    def _settle(self, name: str) -> None:
        host = self._hosts[name]
        _absorb(name, host)
        nodes = {key: _node(key, value) for key, value in sorted(self._hosts.items())}
        cluster = Cluster(host.settled or 0, name, nodes)
        host.decision = self._policy.decide(cluster, self._parameters, self._state)
        self._state = host.decision.state
        horizon = round(self._policy.horizon_s(self._parameters, self._state) * MICRO)
        for track in host.tracks.values():
            track.forget((host.settled or 0) - horizon)

    def _outcome(self) -> Fold:
        """Return a fold in which the pending samples are settled; this one stays as it is."""
        if all(host.sample is None for host in self._hosts.values()):
            return self
        trial = copy.deepcopy(self)
        trial.settle()
        return trial

    def _verdicts(self) -> Iterator[tuple[Verdict, Track]]:
        for name, host in sorted(self._hosts.items()):
            grants = host.decision.grants if host.decision else {}
            settings = realize(self._mode, grants, host.cpus)
            for track in sorted(host.tracks.values(), key=lambda track: (track.name, track.id)):
                present = _present(track, host.cpus)
                grant, setting = grants.get(track.id), settings.get(track.id)
                if setting is not None and not differs(setting, present, host.cpus):
                    setting = None
                if grant is not None:
                    job_class, reason = grant.job_class, grant.reason
                else:
                    job_class = "-"
                    reason = "protected" if track.protected else "no progress seen: left alone"
                yield Verdict(name, track.name, job_class, present, setting, reason), track

    # State

    def _save(self) -> dict[str, Any]:
        return {
            "v": STATE_VERSION,
            "policy": self._policy.name,
            "newest": self._newest,
            "memory": self._state,
            "hosts": {
                name: {
                    "cpus": host.cpus,
                    "settled": host.settled,
                    "tracks": {key: history.to_json(t) for key, t in sorted(host.tracks.items())},
                    "sample": host.sample,
                    "rows": dict(sorted(host.rows.items())),
                    "cpus_seen": host.cpus_seen,
                    "points": [
                        [*point[:3], history.number_to_json(point[3]), point[4]]
                        for point in host.points
                    ],
                }
                for name, host in sorted(self._hosts.items())
            },
        }

    def _restore(self, state: Mapping[str, Any]) -> None:
        if state.get("v") != STATE_VERSION:
            raise DataError(f"state version {state.get('v')}; this dltools reads {STATE_VERSION}")
        if state.get("policy") != self._policy.name:
            raise DataError(
                f"the state is of policy {state.get('policy')!r}, not {self._policy.name!r}"
            )
        try:
            self._newest = state["newest"]
            self._state = state["memory"]
            for name, saved in state["hosts"].items():
                self._hosts[name] = _Host(
                    cpus=saved["cpus"],
                    settled=saved["settled"],
                    tracks={k: history.from_json(k, t) for k, t in saved["tracks"].items()},
                    sample=saved["sample"],
                    rows=saved["rows"],
                    cpus_seen=saved["cpus_seen"],
                    points=[[*p[:3], float(p[3]), p[4]] for p in saved["points"]],
                )
        except (KeyError, TypeError, ValueError, AttributeError, IndexError) as error:
            raise DataError(f"damaged state: {type(error).__name__}: {error}") from error


def _absorb(name: str, host: _Host) -> None:
    """Turn the pending sample into tracks: arrivals, exits, restarts, counters, points."""
    now = host.sample or 0
    if host.cpus_seen:
        host.cpus = host.cpus_seen
    tracks = {}
    for key, row in host.rows.items():
        track = host.tracks.get(key)
        started = row["started_at"]
        if track is None or (started and track.started and started != track.started):
            track = Track(key, row["container_name"] or key[:12], name, arrived=now)
        track.name = row["container_name"] or track.name
        track.started = started or track.started
        track.state = row["state"] or "running"
        track.labels = _labels(row["labels"])
        track.cpus, track.weight = row["cpu_limit_cores"], row["cpu_weight"]
        track.threads = row["thread_count"]
        if row["cpu_seconds"] is not None:
            track.add_sample(now, row["cpu_seconds"])
        tracks[key] = track
    host.tracks = tracks
    later = []
    for point in host.points:
        key, metric, time, value, step = point
        if time > now:
            later.append(point)
        elif key in tracks and (tracks[key].started or 0) <= time:
            tracks[key].add_point(metric, time, value, step)
    host.points, host.rows = later, {}
    host.settled, host.sample, host.cpus_seen = now, None, None


def _node(name: str, host: _Host) -> Node:
    jobs = [t for t in host.tracks.values() if t.metrics and not t.protected and host.cpus > 0]
    return Node(name, host.cpus, tuple(sorted(jobs, key=lambda job: (job.name, job.id))))


def _present(track: Track, cpus: float) -> Settings:
    present: Settings = {}
    if track.cpus is not None:
        present["cpus"] = None if track.cpus >= cpus else track.cpus
    if track.weight is not None:
        present["cpu_weight"] = track.weight
    return present


def _labels(text: str | None) -> dict[str, str]:
    try:
        found = json.loads(text) if text else {}
    except (ValueError, RecursionError):
        return {}
    return {str(k): str(v) for k, v in found.items()} if isinstance(found, dict) else {}


def _rows(table: pa.Table) -> Iterator[dict[str, Any]]:
    """Yield the rows that decide, as dicts of plain values; times are microseconds."""
    import pyarrow as pa
    import pyarrow.compute as pc

    kinds = pa.array([Kind.NODE, Kind.CONTAINER, Kind.PROGRESS], pa.string())
    table = table.filter(pc.is_in(table.column("kind").cast(pa.string()), kinds))
    columns = []
    for name in _READ:
        column = table.column(name)
        if name in ("time", "started_at"):
            column = column.cast(pa.int64())
        elif pa.types.is_dictionary(column.type):
            column = column.cast(pa.string())
        elif pa.types.is_floating(column.type) and name != "value":  # only a metric may be NaN
            column = pc.if_else(pc.is_finite(column), column, None)
        columns.append(column.to_pylist())
    for values in zip(*columns, strict=True):
        yield dict(zip(_READ, values, strict=True))


def _moment(micros: int) -> datetime:
    return datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=micros)
