"""Folding observations into plans: the pure heart of `dl-plan`.

A host's rows of kind `node` and `container` with one time are a sample. A sample is settled, and
counts for good, when a later one of the host begins, or when its stream batch ends. Until then it
is pending: the newest plan is a decision on it that leaves no trace. So a recording may be cut
between any two rows, the state handed on, and the last plan is the same.

The policy is asked only when a round is due: its interval has passed, a job has arrived, left or
met a target.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from dltools.cpus import parse_cpus
from dltools.errors import DataError
from dltools.labels import read as read_labels
from dltools.observations import samples as feeds
from dltools.observations.table import format_time
from dltools.plan.policy.base import Cluster, Deed, Grant, Needs, Policy, State
from dltools.plan.policy.container_history import Track
from dltools.plan.realisation import Choice, Realized, realize_host
from dltools.plan.recorded_host import Walk
from dltools.plan.records import Action, Op, Plan, Settings, differs

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
        self._hosts: dict[str, Walk] = {}
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
            host.begin(feeds.pending(host.rest), self._needs)
            self._tick(host, visit=True)
            host.end(self._needs, whole=True)

    def plan(self, input_: Mapping[str, Any], *, pending: bool = True, state: bool = True) -> Plan:
        """Return the plan for the newest samples, the pending ones too unless told otherwise, with
        or without the state.

        `input_` says what was read; the plan repeats it.
        """
        outcome = self._outcome() if pending else self
        actions: list[Action] = []
        realized = outcome._realized()
        for verdict, track, op in outcome._verdicts(realized):
            if verdict.setting is None:
                continue
            expect = {k: v for k, v in verdict.present.items()
                      if k in verdict.setting and op is Op.UPDATE}  # fmt: skip
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
            if host.settled is not None and (wait := host.wait_s(self._needs)) is not None
        ]
        return Plan(
            policy=self._policy.name,
            at=self._at(pending=pending),
            params={**dataclasses.asdict(self._parameters), **_modes(realized)},
            input=input_,
            next_s=round(min(waits), 6) if waits else None,
            actions=tuple(actions),
            state=self._save() if state else {},
            gain=outcome._gain(),
            classes=outcome._classes(),
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

    def _at(self, *, pending: bool) -> str:
        """Return the newest time that was decided on."""
        settled = [host.settled for host in self._hosts.values() if host.settled is not None]
        newest = self._newest if pending else max(settled, default=self._newest)
        return "" if newest is None else format_time(moment(newest))

    # Walking

    def _fold(self, table: pa.Table, *, every: bool) -> Iterator[None]:
        for chunk in feeds.chunks(table):
            found = feeds.feeds(
                chunk,
                {name: host.rest for name, host in self._hosts.items()},
                {name: host.settled for name, host in self._hosts.items()},
            )
            newest = feeds.newest(chunk)
            if newest is not None:
                self._newest = newest if self._newest is None else max(self._newest, newest)
            ticks = []
            for name, feed in found.items():
                self._hosts.setdefault(name, Walk(name)).begin(feed, self._needs)
                # A tick is settled by the first row of the next: that is the order of all hosts'.
                ticks += [(place, name) for place in feed.first[1:]]
            for _, name in sorted(ticks):
                self._tick(self._hosts[name], visit=every)
                if every:
                    yield
            for name in found:
                self._hosts[name].end(self._needs, whole=False)

    def _tick(self, host: Walk, *, visit: bool) -> None:
        """Settle a host's next tick; decide on it if a round is due."""
        quiet = host.is_quiet()
        host.settle_tick(self._needs, self._labels_of)
        if quiet and not visit:
            return
        met = host.take(self._needs)
        jobs = host.open_round(self._needs, met=met)
        if jobs:
            self._decide(host, jobs)
        if jobs or host.line.is_due(host.settled or 0):
            host.line = realize_host(host, self._choice).line

    def _decide(self, host: Walk, jobs: tuple[Track, ...]) -> None:
        nodes = {host.name: host.node(jobs)}
        if self._needs.cluster:
            for name, other in sorted(self._hosts.items()):
                other.take(self._needs)
                nodes[name] = other.node()
        now, itval = host.settled or 0, host.rounds.itval_s or 0.0
        cluster = Cluster(now, host.name, nodes, itval)
        decision = self._policy.decide(cluster, self._parameters, self._state)
        host.close_round(decision, self._needs, jobs)
        self._state = decision.state

    # Deciding

    def _gain(self) -> str:
        gains = {name: host.gain for name, host in sorted(self._hosts.items()) if host.gain}
        if len(gains) == 1:
            return next(iter(gains.values()))
        return "; ".join(f"{name}: {gain}" for name, gain in gains.items())

    def _classes(self) -> dict[str, dict[str, str]]:
        """Return the class of each job that has one, by its name, for each host."""
        found = {
            name: {host.tracks[key].name: grant.job_class for key, grant in host.grants.items()
                   if key in host.tracks}
            for name, host in sorted(self._hosts.items())
        }  # fmt: skip
        return {name: dict(sorted(jobs.items())) for name, jobs in found.items() if jobs}

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
            name: realize_host(host, self._choice) for name, host in sorted(self._hosts.items())
        }

    def _verdicts(self, realized: Mapping[str, Realized]) -> Iterator[tuple[Verdict, Track, Op]]:
        for name, host in sorted(self._hosts.items()):
            found = realized[name]
            for track in sorted(host.tracks.values(), key=lambda track: (track.name, track.id)):
                present = _present(track, host.cpus, host.cpuset)
                grant, setting = host.grants.get(track.id), found.settings.get(track.id)
                if setting is not None and found.op is Op.UPDATE:
                    setting = setting if differs(setting, present, host.cpus) else None
                note = found.notes.get(track.id, "")
                if grant is None:
                    note = note if setting is not None else "left alone"
                    why = "protected" if track.protected else f"no progress seen: {note}"
                    grant, note = Grant(None, "-", why), ""
                notes = [grant.reason, note, *track.targets.faults]
                reason = "; ".join(note for note in notes if note)
                yield Verdict(name, track.name, grant, present, setting, reason), track, found.op

    def _labels_of(self, name: str, text: str | None) -> dict[str, str]:
        own = self._read.get(text)
        if own is None:
            own = self._read[text] = read_labels(text)
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
            host.forget_bystanders(self._needs)
        return {
            "v": STATE_VERSION,
            "policy": self._policy.name,
            "newest": self._newest,
            "memory": self._state,
            "hosts": {name: host.to_json() for name, host in sorted(self._hosts.items())},
        }

    def _restore(self, state: Mapping[str, Any]) -> None:
        if state.get("v") != STATE_VERSION:
            raise DataError(
                f"state version {state.get('v')}, and this dltools reads {STATE_VERSION}: "
                "begin anew without it"
            )
        if state.get("policy") != self._policy.name:
            raise DataError(
                f"the state is of policy {state.get('policy')!r}, not {self._policy.name!r}"
            )
        try:
            self._newest = state["newest"]
            self._state = state["memory"]
            self._hosts = {name: Walk(name) for name in state["hosts"]}
            for name, saved in state["hosts"].items():
                self._hosts[name].load(saved)
        except (KeyError, TypeError, ValueError, AttributeError, IndexError) as error:
            raise DataError(f"damaged state: {type(error).__name__}: {error}") from error


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
        every = track.cpuset == cpuset and len(parse_cpus(track.cpuset)) >= cpus
        present["cpuset"] = None if every else track.cpuset
    if track.turn_s is not None:
        present["turn_s"] = track.turn_s
    if track.state == "paused":
        present["state"] = track.state
    return present


def moment(micros: int) -> datetime:
    """Return a time in microseconds since the epoch as a datetime."""
    return datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=micros)
