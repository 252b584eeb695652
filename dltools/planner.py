"""Folding observations into plans: the pure heart of `dl-plan`.

A host's rows of kind `node` and `container` with one time are a sample. A sample is settled, and
counts for good, when a later one of the host begins, or when its stream batch ends. Until then it
is pending: the newest plan is a decision on it that leaves no trace. So a recording may be cut
between any two rows, the state handed on, and the last plan is the same.

The policy is asked only when a round is due: its interval has passed, a job has arrived, left or
met a target. Samples in between are taken in whole stretches, which is what makes a week of them
a matter of seconds.
"""

from __future__ import annotations

import bisect
import dataclasses
import json
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from dltools import feed as feeds
from dltools.cpus import widest
from dltools.errors import DataError
from dltools.feed import Feed, Rest
from dltools.plans import Action, Op, Plan, Settings, differs
from dltools.policy import history, rounds
from dltools.policy.base import Cluster, Deed, Grant, Needs, Node, Order, Policy, State
from dltools.policy.history import MICRO, Track
from dltools.policy.rounds import Rounds
from dltools.realize import Choice, Realized, choose, realize
from dltools.streams import format_time

if TYPE_CHECKING:
    import pyarrow as pa

STATE_VERSION = 2
_DEEDS = {Deed.MIGRATE: Op.MIGRATE, Deed.DELIVER: Op.DELIVER}


@dataclass(frozen=True, slots=True)
class Verdict:
    """What was decided for one container, for people: `setting` is None where nothing changes."""

    host: str
    name: str
    grant: Grant
    present: Settings
    setting: Settings | None
    reason: str

    @property
    def job_class(self) -> str:
        """The job's class, - where it has none."""
        return self.grant.job_class


@dataclass(slots=True)
class _Host:
    """What is known of one host. `feed` is what is being walked over: `reached` of its ticks are
    settled, `taken` of these are in the tracks already."""

    cpus: float = 0.0
    cpuset: str | None = None  # the most CPUs that its containers were ever seen to have
    settled: int | None = None
    tracks: dict[str, Track] = field(default_factory=dict)
    rest: Rest = field(default_factory=Rest)
    rounds: Rounds = field(default_factory=lambda: Rounds(None))
    grants: dict[str, Grant] = field(default_factory=dict)
    orders: tuple[Order, ...] = ()  # of the newest settled sample
    gain: str = ""
    feed: Feed | None = None
    reached: int = 0
    taken: int = 0
    order: list[str] = field(default_factory=list)
    layout: Any = None
    alarms: dict[str, int] = field(default_factory=dict)  # when a job first speaks, meets a target

    def clone(self) -> _Host:
        tracks = {key: track.clone() for key, track in self.tracks.items()}
        return replace(self, tracks=tracks, grants=dict(self.grants))

    def jobs(self) -> tuple[Track, ...]:
        jobs = [t for t in self.tracks.values() if t.metrics and not t.protected and self.cpus > 0]
        return tuple(sorted(jobs, key=lambda job: (job.name, job.id)))


class Fold:
    """Folds tables of observations, in order, into plans of one policy."""

    def __init__(
        self,
        policy: Policy,
        parameters: Any,
        choice: Choice,
        state: Mapping[str, Any] | None = None,
        labels: Sequence[tuple[str, Mapping[str, str]]] = (),
    ) -> None:
        """Begin, or go on from the `state` of an earlier plan.

        `labels` are given to containers whose names match a pattern (as in a shell) and that do not
        have them. Raises `DataError` for a state of another version or policy.
        """
        self._policy = policy
        self._parameters = parameters
        self._needs: Needs = policy.needs(parameters)
        self._choice = choice
        self._labels = tuple(labels)
        self._hosts: dict[str, _Host] = {}
        self._state: State = {}
        self._newest: int | None = None
        self._read: dict[str | None, dict[str, str]] = {}
        if state:
            self._restore(state)

    def add(self, table: pa.Table) -> None:
        """Fold in rows, sorted by time; earlier samples settle as later ones begin."""
        for _ in self._fold(table, every=False):
            pass

    def add_by_tick(self, table: pa.Table) -> Iterator[None]:
        """Fold in rows like `add`, and pause after each sample that a later one settles."""
        yield from self._fold(table, every=True)

    def settle(self) -> None:
        """Settle every pending sample: a stream's batch has ended, so the samples are whole."""
        waiting = [(host.rest.time, name) for name, host in self._hosts.items()
                   if host.rest.time is not None]  # fmt: skip
        for _, name in sorted(waiting):
            host = self._hosts[name]
            self._begin(host, feeds.pending(host.rest))
            self._tick(name, visit=True)
            self._end(host, whole=True)

    def plan(self, input_: Mapping[str, Any], *, pending: bool = True) -> Plan:
        """Return the plan for the newest samples, the pending ones too unless told otherwise.

        `input_` says what was read; the plan repeats it.
        """
        outcome = self._outcome() if pending else self
        actions: list[Action] = []
        realized = outcome._realized()
        for verdict, track, op in outcome._verdicts(realized):
            if verdict.setting is None:
                continue
            expect = {k: v for k, v in verdict.present.items() if k in verdict.setting}
            actions.append(
                Action(len(actions) + 1, op, verdict.host, track.id, track.name,
                       verdict.setting, expect, verdict.reason)
            )  # fmt: skip
        for name, host in sorted(outcome._hosts.items()):
            for order in host.orders:
                if order.job_id in host.tracks:
                    job = host.tracks[order.job_id]
                    actions.append(
                        Action(len(actions) + 1, _DEEDS[order.deed], name, job.id, job.name, {}, {},
                               order.reason, order.to or None)
                    )  # fmt: skip
        waits = [
            wait
            for host in outcome._hosts.values()
            if host.settled is not None and (wait := outcome._wait(host)) is not None
        ]
        return Plan(
            policy=self._policy.name,
            at="" if self._newest is None else format_time(moment(self._newest)),
            params={**dataclasses.asdict(self._parameters), **_modes(realized)},
            input=input_,
            next_s=round(min(waits), 6) if waits else None,
            actions=tuple(actions),
            state=self._save(),
            gain=outcome._gain(),
        )

    def explain(self, *, pending: bool = True) -> tuple[list[Verdict], list[str]]:
        """Return what was decided for each container and why, and what the plan is expected to
        bring, a line per host: for people."""
        outcome = self._outcome() if pending else self
        realized = outcome._realized()
        lines = [outcome._gain()] if outcome._gain() else []
        for name in sorted(realized):
            found = realized[name]
            if found.settings:
                host = f"{name}: " if len(realized) > 1 else ""
                lines.append(f"{host}{found.mode.value}, {found.why}; {found.note}")
        return [verdict for verdict, _, _ in outcome._verdicts(realized)], lines

    # Walking

    def _fold(self, table: pa.Table, *, every: bool) -> Iterator[None]:
        for chunk in feeds.chunks(table):
            found = feeds.feeds(
                chunk,
                {name: host.rest for name, host in self._hosts.items()},
                {name: host.settled for name, host in self._hosts.items()},
            )
            self._note_newest(chunk)
            ticks = []
            for name, feed in found.items():
                self._begin(self._hosts.setdefault(name, _Host()), feed)
                # A tick is settled by the first row of the next: that is the order of all hosts'.
                ticks += [(place, name) for place in feed.first[1:]]
            for _, name in sorted(ticks):
                self._tick(name, visit=every)
                if every:
                    yield
            for name in found:
                self._end(self._hosts[name], whole=False)

    def _note_newest(self, table: pa.Table) -> None:
        newest = feeds.newest(table)
        if newest is not None:
            self._newest = newest if self._newest is None else max(self._newest, newest)

    def _begin(self, host: _Host, feed: Feed) -> None:
        host.feed, host.reached, host.taken = feed, 0, 0
        host.alarms = {}
        for track in host.tracks.values():
            self._set_alarm(host, track)

    def _end(self, host: _Host, *, whole: bool) -> None:
        """Take what is settled; keep the rest for later: the last tick, unless that is settled
        too, and the points after it."""
        feed = host.feed
        assert feed is not None
        self._take(host)
        self._forget(host, self._bystanders(host))
        ticks = len(feed.times)
        settled = feed.times[host.reached - 1] if host.reached else None
        points = feeds.ungrouped(feed.points, settled)
        host.rest = Rest(points=points)
        if not whole and ticks:
            low, high = feed.bounds[ticks - 1], feed.bounds[ticks]
            rows = {name: column[low:high] for name, column in feed.rows.items()}
            host.rest = Rest(feed.times[-1], feed.sizes[-1], rows, points)
        host.feed = None

    def _tick(self, name: str, *, visit: bool) -> None:
        """Settle a host's next tick; decide on it if a round is due."""
        host = self._hosts[name]
        feed = host.feed
        assert feed is not None
        tick = host.reached
        now = feed.times[tick]
        layout = feed.layout(tick)
        if layout != host.layout:
            self._take(host)
            self._arrive(name, host, tick, layout)
        elif not visit and not self._due(host, now):
            host.reached += 1
            host.settled, host.orders = now, ()
            return
        host.reached += 1
        host.settled, host.orders = now, ()
        met = self._take(host)
        self._decide(name, host, now, met=met)

    def _due(self, host: _Host, now: int) -> bool:
        assert host.feed is not None
        if any(time <= now for time in host.alarms.values()):
            return True
        if host.cpus == 0 and host.feed.sizes[host.reached] > 0:
            return True
        return bool(host.rounds.members) and host.rounds.due(now)

    def _arrive(self, name: str, host: _Host, tick: int, layout: Any) -> None:
        """Make the tracks of the containers that run at a tick."""
        feed = host.feed
        assert feed is not None
        low = feed.bounds[tick]
        tracks = {}
        for at, (key, started, labels) in enumerate(zip(*layout, strict=True), low):
            track = host.tracks.get(key)
            if track is None or (started and track.started and started != track.started):
                title = feed.rows["container_name"][at] or key[:12]
                track = Track(key, title, name, arrived=feed.times[tick])
                host.grants.pop(key, None)
                host.alarms.pop(key, None)
                if tick > 0:  # what it said while it was not seen to run is nobody's
                    for points in feed.points.get(key, {}).values():
                        points.at = points.upto(feed.times[tick - 1])
            track.started = started or track.started
            track.label(self._labels_of(track.name, labels))
            tracks[key] = track
            if key not in host.tracks or host.tracks[key] is not track:
                self._set_alarm(host, track)
        host.tracks = tracks
        host.order, host.layout = layout[0], layout
        host.alarms = {key: time for key, time in host.alarms.items() if key in tracks}

    def _take(self, host: _Host) -> bool:
        """Bring the tracks up to the last settled tick; the same containers run at all of them.

        Tell whether one has met a target.
        """
        feed = host.feed
        assert feed is not None
        begin, end = host.taken, host.reached
        if begin == end:
            return False
        met = False
        host.taken = end
        now = feed.times[end - 1]
        size = next((s for s in reversed(feed.sizes[begin:end]) if s > 0), None)
        host.cpus = size or host.cpus
        times, many = feed.times[begin:end], len(host.order)
        low, high = feed.bounds[begin], feed.bounds[end]
        rows = feed.rows
        for number, key in enumerate(host.order):
            track = host.tracks[key]
            last = high - many + number
            track.name = rows["container_name"][last] or track.name
            track.state = rows["state"][last] or "running"
            track.cpus = _known(rows["cpu_limit_cores"][last])
            track.weight = _known(rows["cpu_weight"][last])
            track.threads = rows["thread_count"][last]
            track.cpuset = rows["cpuset"][last]
            track.add_samples(times, rows["cpu_seconds"][low + number : high : many])
            own = feed.points.get(key)
            if own:
                before = (track.met_first, track.met_final)
                self._take_points(host, track, own, now)
                met = met or (track.met_first, track.met_final) != before
        host.cpuset = widest(host.cpuset, (track.cpuset for track in host.tracks.values()))
        return met

    def _take_points(
        self, host: _Host, track: Track, own: Mapping[str, feeds.Points], now: int
    ) -> None:
        for metric, points in own.items():
            low, high = points.at, points.upto(now)
            if low == high:
                continue
            points.at = high
            if track.started is not None and points.times[low] < track.started:
                low = bisect.bisect_left(points.times, track.started, low, high)
                if low == high:
                    continue
            steps, epochs = points.steps[low:high], points.epochs[low:high]
            track.add_points(metric, points.times[low:high], points.values[low:high], steps,
                             curves=self._needs.curves)  # fmt: skip
            track.step = next((s for s in reversed(steps) if s is not None), track.step)
            track.epoch = next((e for e in reversed(epochs) if e == e), track.epoch)
        if host.alarms and host.alarms.get(track.id, now + 1) <= now:
            del host.alarms[track.id]
            self._set_alarm(host, track)

    def _set_alarm(self, host: _Host, track: Track) -> None:
        """Note when a job that has said nothing yet does, and when one meets its next target."""
        feed = host.feed
        assert feed is not None
        own = feed.points.get(track.id)
        if not own:
            return
        started = track.started or 0
        targets = track.targets
        unmet = targets.final if track.met_first is not None else targets.first
        if not track.metrics:
            times = [
                next((t for t in points.times[points.at :] if t >= started), None)
                for points in own.values()
            ]
        elif self._needs.targets and unmet is not None and track.met_final is None:
            points = own.get(targets.metric or "")
            if points is None:
                return
            rest = zip(points.times[points.at :], points.values[points.at :], strict=True)
            times = [next((t for t, v in rest if t >= started and targets.meets(v, unmet)), None)]
        else:
            return
        known = [time for time in times if time is not None]
        if known:
            host.alarms[track.id] = min(known)

    # Deciding

    def _decide(self, name: str, host: _Host, now: int, *, met: bool) -> None:
        jobs = host.jobs()
        before = host.rounds
        host.rounds = before.listen(jobs, self._needs)
        if met and self._needs.targets:
            host.rounds = host.rounds.interrupted()
        stayed = set(before.members)
        host.grants = {job.id: host.grants[job.id] for job in jobs
                       if job.id in host.grants and job.member in stayed}  # fmt: skip
        if not jobs or not host.rounds.due(now):
            return
        names = sorted(self._hosts) if self._needs.cluster else [name]
        nodes = {}
        for other in names:
            if self._hosts[other].feed is not None:
                self._take(self._hosts[other])
            nodes[other] = _node(other, self._hosts[other], jobs if other == name else None)
        cluster = Cluster(now, name, nodes, host.rounds.itval_s or 0.0)
        decision = self._policy.decide(cluster, self._parameters, self._state)
        host.grants = dict(decision.grants)
        host.orders, host.gain = decision.orders, decision.gain
        host.rounds = host.rounds.ran(now, decision.pace, self._needs)
        self._state = decision.state
        self._forget(host, jobs)

    # What is forgotten must not tell how the rows were cut up, or two halves would not make a
    # whole: jobs forget when a round has run; who is in no round, up to now.

    def _forget(self, host: _Host, tracks: Iterable[Track]) -> None:
        itval = host.rounds.itval_s or self._needs.itval_s or 0.0
        reach = (self._needs.windows + 1) * itval if self._needs.windows else 0.0
        for track in tracks:
            track.forget((host.settled or 0) - round(reach * MICRO))

    def _bystanders(self, host: _Host) -> Iterable[Track]:
        members = set(host.rounds.members) if self._needs.windows else ()
        return [track for track in host.tracks.values() if track.member not in members]

    def _wait(self, host: _Host) -> float | None:
        return host.rounds.wait_s(host.settled or 0) if host.jobs() else self._needs.itval_s

    def _gain(self) -> str:
        gains = {name: host.gain for name, host in sorted(self._hosts.items()) if host.gain}
        if len(gains) == 1:
            return next(iter(gains.values()))
        return "; ".join(f"{name}: {gain}" for name, gain in gains.items())

    def _outcome(self) -> Fold:
        """Return a fold in which the pending samples are settled; this one stays as it is."""
        if all(host.rest.time is None for host in self._hosts.values()):
            return self
        trial: Fold = object.__new__(type(self))
        trial.__dict__ = {
            **self.__dict__,
            "_hosts": {name: host.clone() for name, host in self._hosts.items()},
        }
        trial.settle()
        return trial

    def _realized(self) -> dict[str, Realized]:
        return {
            name: realize(choose(self._choice, _node(name, host)), _node(name, host), host.cpuset)
            for name, host in sorted(self._hosts.items())
        }

    def _verdicts(self, realized: Mapping[str, Realized]) -> Iterator[tuple[Verdict, Track, Op]]:
        for name, host in sorted(self._hosts.items()):
            found = realized[name]
            for track in sorted(host.tracks.values(), key=lambda track: (track.name, track.id)):
                present = _present(track, host.cpus, host.cpuset)
                grant, setting = host.grants.get(track.id), found.settings.get(track.id)
                if setting is not None and found.op is Op.UPDATE:
                    setting = setting if differs(setting, present, host.cpus) else None
                if grant is None:
                    why = "protected" if track.protected else "no progress seen: left alone"
                    grant = Grant(None, "-", why)
                notes = [grant.reason, found.notes.get(track.id, ""), *track.targets.faults]
                reason = "; ".join(note for note in notes if note)
                yield Verdict(name, track.name, grant, present, setting, reason), track, found.op

    def _labels_of(self, name: str, text: str | None) -> dict[str, str]:
        own = self._read.get(text)
        if own is None:
            own = self._read[text] = _labels(text)
        if not self._labels:
            return own
        from fnmatch import fnmatchcase

        given = (labels for pattern, labels in self._labels if fnmatchcase(name, pattern))
        merged: dict[str, str] = {}
        for labels in given:
            merged |= labels
        return {**merged, **own}

    # State

    def _save(self) -> dict[str, Any]:
        for host in self._hosts.values():
            self._forget(host, self._bystanders(host))
        return {
            "v": STATE_VERSION,
            "policy": self._policy.name,
            "newest": self._newest,
            "memory": self._state,
            "hosts": {
                name: {
                    "cpus": host.cpus,
                    "cpuset": host.cpuset,
                    "settled": host.settled,
                    "tracks": {key: history.to_json(t) for key, t in sorted(host.tracks.items())},
                    "rounds": host.rounds.to_json(),
                    "grants": {
                        key: [g.share, g.job_class, g.reason, g.signal, g.prediction]
                        for key, g in sorted(host.grants.items())
                    },
                    "orders": [[o.deed.value, o.job_id, o.reason, o.to] for o in host.orders],
                    "gain": host.gain,
                    "layout": host.layout and [list(column) for column in host.layout],
                    "rest": host.rest.to_json(),
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
            self._hosts = {name: _host(saved) for name, saved in state["hosts"].items()}
        except (KeyError, TypeError, ValueError, AttributeError, IndexError) as error:
            raise DataError(f"damaged state: {type(error).__name__}: {error}") from error


def _host(saved: Mapping[str, Any]) -> _Host:
    layout = saved["layout"]
    host = _Host(
        cpus=float(saved["cpus"]),
        cpuset=saved["cpuset"],
        settled=saved["settled"],
        tracks={key: history.from_json(key, data) for key, data in saved["tracks"].items()},
        rest=feeds.rest_from_json(saved["rest"]),
        rounds=rounds.from_json(saved["rounds"]),
        grants={key: Grant(*data) for key, data in saved["grants"].items()},
        orders=tuple(Order(Deed(o[0]), o[1], o[2], o[3]) for o in saved["orders"]),
        gain=saved["gain"],
        layout=layout and tuple(list(column) for column in layout),
    )
    host.order = host.layout[0] if host.layout else []
    if set(host.order) != set(host.tracks):
        raise ValueError("the layout names other containers than the tracks")
    return host


def _node(name: str, host: _Host, jobs: tuple[Track, ...] | None = None) -> Node:
    return Node(name, host.cpus, host.jobs() if jobs is None else jobs, host.grants)


def _modes(realized: Mapping[str, Realized]) -> dict[str, str]:
    """Return how shares became settings: of all hosts, and why."""
    modes = sorted({found.mode.value for found in realized.values() if found.settings})
    whys = sorted({found.why for found in realized.values() if found.settings})
    return {"realize": "+".join(modes), "realize_why": "; ".join(whys)} if modes else {}


def _present(track: Track, cpus: float, cpuset: str | None) -> Settings:
    present: Settings = {}
    if track.cpus is not None and track.cpus > 0:
        present["cpus"] = None if track.cpus >= cpus else track.cpus
    if track.weight is not None and track.weight > 0:
        present["cpu_weight"] = track.weight
    if track.cpuset:
        present["cpuset"] = None if track.cpuset == cpuset else track.cpuset
    return present


def _labels(text: str | None) -> dict[str, str]:
    try:
        found = json.loads(text) if text else {}
    except (ValueError, RecursionError):
        return {}
    return {str(k): str(v) for k, v in found.items()} if isinstance(found, dict) else {}


def _known(value: float | None) -> float | None:
    return value if value is not None and math.isfinite(value) else None


def moment(micros: int) -> datetime:
    """Return a time in microseconds since the epoch as a datetime."""
    return datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=micros)
