"""From observations to plans: the pure heart of `dl-plan`.

A host's rows of kind `node` and `container` with one time are a sample. A sample is complete, and
counts for good, when a later one of the host begins, or when its stream batch ends. Until then it
is pending: the newest plan is a decision on it that leaves no trace. So a recording may be cut
between any two rows, the state handed on, and the last plan is the same.

The policy is asked only when a round is due: its interval has passed, a job has arrived, left or
met a target.
"""

from __future__ import annotations

import copy
import dataclasses
from collections.abc import Hashable, Iterator, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from dltools.actions.plans import Action, Plan
from dltools.notation.times import MICRO, format_time, from_micros
from dltools.observations.roles import NO_RULES, Rules
from dltools.observations.samples_by_host import (
    SAMPLE_COLUMNS,
    newest_time,
    rows_after,
    samples_by_host,
    table_chunks,
)
from dltools.observations.schema import SAMPLED, arrow_schema
from dltools.observations.table import concat, hosts_of
from dltools.plan.hosts.host_history import HostHistory
from dltools.plan.hosts.pace_tracking import forget_places
from dltools.plan.hosts.rounds import Lazy, Rounds
from dltools.plan.outcome import decisions
from dltools.plan.outcome.advice import advice
from dltools.plan.outcome.decisions import Explanation
from dltools.plan.outcome.nothing_to_do import why_nothing
from dltools.plan.policy.interface import Policy
from dltools.plan.realisation.options import RealisationOptions
from dltools.plan.samples import state
from dltools.plan.samples.recorded_host import RecordedHost
from dltools.plan.samples.recorded_hosts import RecordedHosts, UserRules

if TYPE_CHECKING:
    import pyarrow as pa


_LEAST_LEASE_S = 10.0
"""Shortest lease of a single plan (ours)."""


def copied(value: Any) -> Any:
    """Return a copy of what is known of hosts that shares nothing that changes: what has a hash
    does not."""
    if isinstance(value, Hashable):
        return value
    if isinstance(value, dict):
        return {key: copied(entry) for key, entry in value.items()}
    twin = copy.copy(value)
    if dataclasses.is_dataclass(twin):
        for field in dataclasses.fields(twin):
            setattr(twin, field.name, copied(getattr(value, field.name)))
    return twin


@dataclasses.dataclass(frozen=True, slots=True)
class _Decided:
    """What was decided of hosts, and what that changes. `nothing`: why it changes nothing, "" where
    it does."""

    hosts: list[HostHistory]
    realised: decisions.Realised
    decisions: list[decisions.JobDecision]
    actions: tuple[Action, ...]
    nothing: str


class Planner:
    """Turns tables of observations, in order, into plans of one policy. `hosts`: all that it has
    read, up to their newest complete samples."""

    def __init__(
        self,
        policy: Policy,
        parameters: Any,
        options: RealisationOptions,
        saved: Mapping[str, Any] | None = None,
        labels: Sequence[tuple[str, Mapping[str, str]]] = (),
        rules: Rules = NO_RULES,
    ) -> None:
        """Begin, or go on from the state `saved` in an earlier plan.

        `labels` are given to containers whose names match a pattern (as in a shell) and that do not
        have them. `rules` are what the user says of roles. Raises `DataError` for a state of
        another version or policy.
        """
        self._rounds = Rounds(policy, parameters, options, {})
        self._rounds.has_levers = True
        self._introduce = UserRules(tuple(labels), rules).introduce
        self.hosts = RecordedHosts()
        self._newest: int | None = None
        self._last_run: int | None = None
        self._pending = arrow_schema().empty_table().select(list(SAMPLE_COLUMNS))
        if saved:
            self._go_on(state.load(saved, policy.name))

    def _go_on(self, saved: state.SavedState) -> None:
        """Go on from an earlier plan."""
        self._newest = self._last_run = saved.newest
        self._pending = saved.pending_rows().select(list(SAMPLE_COLUMNS))
        self._rounds.memory = saved.memory
        self.hosts = RecordedHosts(dict(saved.hosts))
        for host in saved.hosts.values():
            host.requirements = self._rounds.requirements
            host.history.has_servers = host.requirements.servers
            for key, _, text in host.layout.containers():
                self._introduce(host.history.containers[key], text)

    def add(self, table: pa.Table, *, all_complete: bool = False) -> None:
        """Add rows, sorted by time; earlier samples are complete as later ones begin, the last ones
        too if `all_complete`, as after a batch of a stream."""
        for _ in self._add(table, every=False, all_complete=all_complete):
            pass

    def add_by_sample(self, table: pa.Table) -> Iterator[None]:
        """Add rows like `add`, and pause after each sample that a later one completes."""
        yield from self._add(table, every=True)

    def complete(self) -> None:
        """Take every pending sample as complete."""
        self.add(self._pending.slice(0, 0), all_complete=True)

    def newest_hosts(self) -> list[HostHistory]:
        """Return what is known of all hosts as of their newest samples, also the pending ones."""
        if not hosts_of(self._pending, SAMPLED):
            return self.hosts.histories()
        outcome = self.clone()
        outcome.complete()
        return outcome.hosts.histories()

    def forget_actions(self) -> None:
        """Leave what is done once, such as a migration, out of later plans: a plan has told it."""
        for host in self.hosts.histories():
            host.decision.actions = ()

    def plan(
        self,
        input_: Mapping[str, Any],
        *,
        pending: bool = True,
        state: bool = True,
        is_single: bool = False,
    ) -> Plan:
        """Return the plan for the newest samples, also the pending ones unless told otherwise.
        `input_`: what was read. A single plan is the only one of its run: it is good for three
        intervals between runs, and mild where no next run is known."""
        lease_s = self._lease_s() if is_single else None
        is_lasting = is_single and lease_s is None
        decided = self._decided(pending=pending, is_lasting=is_lasting)
        parameters = dataclasses.asdict(self._rounds.parameters)
        return Plan(
            policy=self._rounds.policy.name,
            at=self._at(pending=pending),
            params={**parameters, **decisions.modes(decided.realised)},
            input=input_,
            next_s=self._next_s(decided.hosts),
            actions=decided.actions,
            state=self._state(is_lasting=is_lasting) if state else {},
            gain=decisions.gain(decided.hosts),
            classes=decisions.classes(decided.hosts),
            lease_s=lease_s,
            covers=tuple(sorted(decision.container_id for decision in decided.decisions)),
            nothing=decided.nothing,
        )

    def _next_s(self, hosts: Sequence[HostHistory]) -> float | None:
        """Return in how many seconds the next round is due, None where time brings none."""
        required = self._rounds.requirements
        waits = [host.wait_s(required) for host in hosts if host.sampled_at is not None]
        return min((round(wait, 6) for wait in waits if wait is not None), default=None)

    def explain(self, *, pending: bool = True, is_single: bool = False) -> Explanation:
        """Return the newest decisions for people; those of a single plan, where `is_single`."""
        is_lasting = is_single and self._lease_s() is None
        decided = self._decided(pending=pending, is_lasting=is_lasting)
        lines = list(filter(None, [decisions.gain(decided.hosts)]))
        for name, realisation in decided.realised.items():
            if realisation.settings:
                host = f"{name}: " if len(decided.realised) > 1 else ""
                lines.append(
                    f"{host}{realisation.mode.value}, {realisation.why}; {realisation.note}"
                )
        lines += advice(decided.hosts, decided.decisions)
        return Explanation(decided.decisions, lines, decided.nothing)

    def _decided(self, *, pending: bool, is_lasting: bool) -> _Decided:
        """Return what was decided at the newest samples."""
        rounds, hosts = self._rounds, self.newest_hosts() if pending else self.hosts.histories()
        realised = {host.name: rounds.planned(host, is_lasting=is_lasting) for host in hosts}
        decided = list(decisions.decisions(hosts, realised))
        actions, nothing = decisions.actions(hosts, decided), ""
        if not actions:
            shareless = "" if rounds.requirements.shares else rounds.policy.name
            nothing = why_nothing(hosts, realised, decided, shareless)
        return _Decided(hosts, realised, decided, actions, nothing)

    def _lease_s(self) -> float | None:
        """Return how long a single plan is good for (s): until a third run has failed to come; None
        where nothing tells when the next one comes."""
        if self._last_run is None or self._newest is None or self._newest <= self._last_run:
            return None
        return round(max(_LEAST_LEASE_S, 3 * (self._newest - self._last_run) / MICRO), 3)

    def _at(self, *, pending: bool) -> str:
        """Return the newest time that was decided on."""
        complete = self.hosts.sampled_at.values()
        newest = self._newest if pending else max(complete, default=self._newest)
        return "" if newest is None else format_time(from_micros(newest))

    # Samples

    def _add(self, table: pa.Table, *, every: bool, all_complete: bool = False) -> Iterator[None]:
        *chunks, last = table_chunks(table)
        for chunk in chunks:
            yield from self._add_chunk(chunk, every=every, all_complete=False)
        yield from self._add_chunk(last, every=every, all_complete=all_complete)

    def _add_chunk(self, chunk: pa.Table, *, every: bool, all_complete: bool) -> Iterator[None]:
        """Add some rows behind those that are pending: the last sample of each host, of which more
        rows may come unless `all_complete`, and the points after it."""
        newest = newest_time(chunk)
        if newest is not None:
            self._newest = newest if self._newest is None else max(self._newest, newest)
        rows = concat([self._pending, chunk])
        hosts = self.hosts.by_name
        read_until = {name: host.history.sampled_at for name, host in hosts.items()}
        read = samples_by_host(rows, read_until)
        completions = []
        for name, samples in read.items():
            if name not in hosts:
                requirements = self._rounds.requirements
                history = HostHistory(name, has_servers=requirements.servers)
                hosts[name] = RecordedHost(history, requirements=requirements)
            hosts[name].begin(samples)
            # The first row of a host's next sample completes it: so all hosts' are in order.
            completions += [(row, 0, name) for row in samples.first_rows[1:]]
            if all_complete and samples.times:
                completions.append((rows.num_rows, samples.times[-1], name))
        for row, _, name in sorted(completions):
            self._next_sample(hosts[name], always=every or row == rows.num_rows)
            if every:
                yield
        self._pending = rows_after(rows, {name: hosts[name].end() for name in read})

    def _next_sample(self, host: RecordedHost, *, always: bool) -> None:
        """Complete a host's next sample, and run a round if one is due.

        Where nothing happens that a policy would see, the sample is recorded later, with others,
        unless `always`.
        """
        uneventful = host.is_next_uneventful()
        host.next_sample(self._introduce)
        self.hosts.note_jobs(host)
        if always or not uneventful:
            target_met = host.record()
            hosts = partial(Lazy, self.hosts.by_name, self.hosts.recorded)
            self._rounds.run(host.history, hosts, target_met=target_met)

    def clone(self) -> Planner:
        """Return a copy that shares nothing that changes."""
        twin = copy.copy(self)
        twin._rounds = copy.copy(self._rounds)
        twin.hosts = copied(self.hosts)
        return twin

    def _state(self, *, is_lasting: bool) -> dict[str, Any]:
        for host in self.hosts.histories():
            host.forget_bystanders(self._rounds.requirements)
            if is_lasting:
                forget_places(host)
        policy = self._rounds.policy.name
        return state.save(
            self._newest, self._rounds.memory, self.hosts.by_name, self._pending, policy
        )
