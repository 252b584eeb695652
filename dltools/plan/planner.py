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
from dltools.plan.policy.base import ActionKind, Allocation, Cluster, Policy, Requirements, State
from dltools.plan.policy.container_history import ContainerHistory
from dltools.plan.realisation import Realisation, RealisationOptions, realise_host
from dltools.plan.recorded_host import RecordedHost
from dltools.plan.records import Action, Op, Plan, Settings, differs

if TYPE_CHECKING:
    import pyarrow as pa

STATE_VERSION = 2
_DEEDS = {ActionKind.MIGRATE: Op.MIGRATE, ActionKind.DELIVER: Op.DELIVER}


@dataclass(frozen=True, slots=True)
class JobDecision:
    """What was decided for one container, for people: `setting` is None where nothing changes."""

    host: str
    name: str
    allocation: Allocation
    present: Settings
    setting: Settings | None
    reason: str

    @property
    def job_class(self) -> str:
        """The job's class, - where it has none."""
        return self.allocation.job_class


class Planner:
    """Folds tables of observations, in order, into plans of one policy."""

    def __init__(
        self,
        policy: Policy,
        parameters: Any,
        options: RealisationOptions,
        state: Mapping[str, Any] | None = None,
        labels: Sequence[tuple[str, Mapping[str, str]]] = (),
    ) -> None:
        """Begin, or go on from the `state` of an earlier plan.

        `labels` are given to containers whose names match a pattern (as in a shell) and that do not
        have them. Raises `DataError` for a state of another version or policy.
        """
        self._policy = policy
        self._parameters = parameters
        self._requirements: Requirements = policy.requirements(parameters)
        self._options = options
        self._labels = tuple(labels)
        self._hosts: dict[str, RecordedHost] = {}
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
            host.begin(feeds.pending(host.rest), self._requirements)
            self._tick(host, visit=True)
            host.end(self._requirements, whole=True)

    def plan(self, input_: Mapping[str, Any], *, pending: bool = True, state: bool = True) -> Plan:
        """Return the plan for the newest samples, the pending ones too unless told otherwise, with
        or without the state.

        `input_` says what was read; the plan repeats it.
        """
        outcome = self._outcome() if pending else self
        actions: list[Action] = []
        realisations = outcome._realized()
        for verdict, container, op in outcome._verdicts(realisations):
            if verdict.setting is None:
                continue
            expect = {k: v for k, v in verdict.present.items()
                      if k in verdict.setting and op is Op.UPDATE}  # fmt: skip
            actions.append(
                Action(len(actions) + 1, op, verdict.host, container.id, container.name,
                       verdict.setting, expect, verdict.reason)
            )  # fmt: skip
        for name, host in sorted(outcome._hosts.items()):
            for order in host.actions:
                if order.job_id in host.containers:
                    job = host.containers[order.job_id]
                    actions.append(
                        Action(len(actions) + 1, _DEEDS[order.kind], name, job.id, job.name, {}, {},
                               order.reason, order.to or None)
                    )  # fmt: skip
        waits = [
            wait
            for host in outcome._hosts.values()
            if host.sampled_at is not None and (wait := host.wait_s(self._requirements)) is not None
        ]
        return Plan(
            policy=self._policy.name,
            at=self._at(pending=pending),
            params={**dataclasses.asdict(self._parameters), **_modes(realisations)},
            input=input_,
            next_s=round(min(waits), 6) if waits else None,
            actions=tuple(actions),
            state=self._save() if state else {},
            gain=outcome._gain(),
            classes=outcome._classes(),
        )

    def explain(self, *, pending: bool = True) -> tuple[list[JobDecision], list[str]]:
        """Return what was decided for each container and why, and what the plan is expected to
        bring, a line per host: for people."""
        outcome = self._outcome() if pending else self
        realisations = outcome._realized()
        lines = [outcome._gain()] if outcome._gain() else []
        for name in sorted(realisations):
            found = realisations[name]
            if found.settings:
                host = f"{name}: " if len(realisations) > 1 else ""
                lines.append(f"{host}{found.mode.value}, {found.why}; {found.note}")
        return [verdict for verdict, _, _ in outcome._verdicts(realisations)], lines

    def _at(self, *, pending: bool) -> str:
        """Return the newest time that was decided on."""
        sampled_at = [
            host.sampled_at for host in self._hosts.values() if host.sampled_at is not None
        ]
        newest = self._newest if pending else max(sampled_at, default=self._newest)
        return "" if newest is None else format_time(moment(newest))

    # Walking

    def _fold(self, table: pa.Table, *, every: bool) -> Iterator[None]:
        for chunk in feeds.chunks(table):
            found = feeds.feeds(
                chunk,
                {name: host.rest for name, host in self._hosts.items()},
                {name: host.sampled_at for name, host in self._hosts.items()},
            )
            newest = feeds.newest(chunk)
            if newest is not None:
                self._newest = newest if self._newest is None else max(self._newest, newest)
            ticks = []
            for name, feed in found.items():
                self._hosts.setdefault(name, RecordedHost(name)).begin(feed, self._requirements)
                # A tick is settled by the first row of the next: that is the order of all hosts'.
                ticks += [(place, name) for place in feed.first[1:]]
            for _, name in sorted(ticks):
                self._tick(self._hosts[name], visit=every)
                if every:
                    yield
            for name in found:
                self._hosts[name].end(self._requirements, whole=False)

    def _tick(self, host: RecordedHost, *, visit: bool) -> None:
        """Settle a host's next tick; decide on it if a round is due."""
        quiet = host.is_quiet()
        host.settle_tick(self._requirements, self._labels_of)
        if quiet and not visit:
            return
        met = host.take(self._requirements)
        jobs = host.open_round(self._requirements, met=met)
        if jobs:
            self._decide(host, jobs)
        if jobs or host.queue.is_due(host.sampled_at or 0):
            host.queue = realise_host(host, self._options).queue

    def _decide(self, host: RecordedHost, jobs: tuple[ContainerHistory, ...]) -> None:
        nodes = {host.name: host.node(jobs)}
        if self._requirements.cluster:
            for name, other in sorted(self._hosts.items()):
                other.take(self._requirements)
                nodes[name] = other.node()
        now, itval = host.sampled_at or 0, host.round_timer.interval_s or 0.0
        cluster = Cluster(now, host.name, nodes, itval)
        decision = self._policy.decide(cluster, self._parameters, self._state)
        host.close_round(decision, self._requirements, jobs)
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
            name: {host.containers[key].name: one.job_class for key, one in host.allocations.items()
                   if key in host.containers}
            for name, host in sorted(self._hosts.items())
        }  # fmt: skip
        return {name: dict(sorted(jobs.items())) for name, jobs in found.items() if jobs}

    def _outcome(self) -> Planner:
        """Return a fold in which the pending samples are settled; this one stays as it is."""
        if all(host.rest.time is None for host in self._hosts.values()):
            return self
        trial: Planner = object.__new__(type(self))
        trial.__dict__ = {
            **self.__dict__,
            "_hosts": {name: host.clone() for name, host in self._hosts.items()},
        }
        trial.settle()
        return trial

    def _realized(self) -> dict[str, Realisation]:
        return {
            name: realise_host(host, self._options) for name, host in sorted(self._hosts.items())
        }

    def _verdicts(
        self, realisations: Mapping[str, Realisation]
    ) -> Iterator[tuple[JobDecision, ContainerHistory, Op]]:
        for name, host in sorted(self._hosts.items()):
            found = realisations[name]
            for container in sorted(
                host.containers.values(), key=lambda container: (container.name, container.id)
            ):
                present = _present(container, host.cpus, host.cpuset)
                allocation, setting = (
                    host.allocations.get(container.id),
                    found.settings.get(container.id),
                )
                if setting is not None and found.op is Op.UPDATE:
                    setting = setting if differs(setting, present, host.cpus) else None
                note = found.notes.get(container.id, "")
                if allocation is None:
                    note = note if setting is not None else "left alone"
                    why = "protected" if container.protected else f"no progress seen: {note}"
                    allocation, note = Allocation(None, "-", why), ""
                notes = [allocation.reason, note, *container.targets.faults]
                reason = "; ".join(note for note in notes if note)
                yield (
                    JobDecision(name, container.name, allocation, present, setting, reason),
                    container,
                    found.op,
                )

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
            host.forget_bystanders(self._requirements)
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
            self._hosts = {name: RecordedHost(name) for name in state["hosts"]}
            for name, saved in state["hosts"].items():
                self._hosts[name].load(saved)
        except (KeyError, TypeError, ValueError, AttributeError, IndexError) as error:
            raise DataError(f"damaged state: {type(error).__name__}: {error}") from error


def _modes(realisations: Mapping[str, Realisation]) -> dict[str, str]:
    """Return how shares became settings: of all hosts, and why."""
    modes = sorted({found.mode.value for found in realisations.values() if found.settings})
    whys = sorted({found.why for found in realisations.values() if found.settings})
    return {"realize": "+".join(modes), "realize_why": "; ".join(whys)} if modes else {}


def _present(container: ContainerHistory, cpus: float, cpuset: str | None) -> Settings:
    present: Settings = {}
    if container.cpus is not None and container.cpus > 0:
        present["cpus"] = None if container.cpus >= cpus else container.cpus
    if container.weight is not None and container.weight > 0:
        present["cpu_weight"] = container.weight
    if container.cpuset:
        every = container.cpuset == cpuset and len(parse_cpus(container.cpuset)) >= cpus
        present["cpuset"] = None if every else container.cpuset
    if container.turn_s is not None:
        present["turn_s"] = container.turn_s
    if container.state == "paused":
        present["state"] = container.state
    return present


def moment(micros: int) -> datetime:
    """Return a time in microseconds since the epoch as a datetime."""
    return datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=micros)
