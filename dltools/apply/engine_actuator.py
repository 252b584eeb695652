"""Applying the actions of plans to the containers of one engine, and undoing them.

`actuator` has one of these for each engine that answers.
"""

from __future__ import annotations

from collections.abc import Collection, Set
from dataclasses import replace
from datetime import datetime

from dltools.actions.plans import Action, OnResult, Op, Plan, Result, Status
from dltools.actions.settings import Settings, as_found
from dltools.apply import refusals
from dltools.apply.delivering import Deliverer
from dltools.apply.left_alone import HandsOff
from dltools.apply.migrate.migrator import Migrator
from dltools.apply.original_settings import Originals
from dltools.apply.owners_hand import AT_WORK, Hands
from dltools.apply.refusals import Rules
from dltools.apply.settings_update import SettingsUpdate, compare
from dltools.apply.turn_schedule import Turn
from dltools.apply.turns import Rotation
from dltools.apply.undo import undo
from dltools.engine.interface import Container, Engine, GoneError, RefusedError
from dltools.engine.journal import Entry, Journal
from dltools.engine.left_alone_records import FOLDER, LeftAloneRecords
from dltools.engine.limits.cpu_limits import Locator, attainable_settings
from dltools.engine.links import own_records
from dltools.engine.pauses import set_state, why_no_pause
from dltools.errors import DataError, UnavailableError
from dltools.labels import longest_pause_s
from dltools.notation.times import time_or_none

_CHANGES = (Status.APPLIED, Status.PLANNED, Status.FAILED)


def _ignore(_: Result) -> None:
    pass


class OwnLeases:
    """What this run does with leases. `rules` say which containers it may change."""

    def __init__(self, engine: Engine, journal: Journal, rotation: Rotation, rules: Rules) -> None:
        self._engine = engine
        self._journal = journal
        self._rotation = rotation
        self._rules = rules

    def adopt(self, covered: Set[str] | None) -> None:
        """Make leases of earlier runs end with this run: those of containers that this run may
        change and, unless `covered` is None, whose ids are in it."""
        left = (entry for entry in self._entries() if entry.until)
        entries = (entry for entry in left if self._is_covered(entry, covered))
        self._journal.lease(entries, self._rotation.run)

    def leave(self, until: str, covered: Set[str] | None) -> bool:
        """Keep what this run holds under lease until a time (RFC 3339); the same for leases of
        earlier runs, on the containers that `adopt` takes. Tell whether anything is under lease."""
        leased = [
            entry
            for entry in self._entries()
            if entry.is_leased and (not entry.until or self._is_covered(entry, covered))
        ]
        self._journal.lease(leased, until=until)
        return bool(leased)

    def _is_covered(self, entry: Entry, covered: Set[str] | None) -> bool:
        if covered is not None and entry.container_id not in covered:
            return False
        if self._rules.selects_all:
            return True
        try:
            return self._rules.refusal(self._engine.inspect(entry.container_id)) is None
        except (GoneError, RefusedError, UnavailableError):
            return False

    def _entries(self) -> list[Entry]:
        return own_records(self._engine, self._journal.all(skip=(DataError,)))


class EngineActuator:
    """Applies plans to the containers of one engine. A dry run checks, and changes nothing."""

    def __init__(
        self,
        engine: Engine,
        journal: Journal,
        rotation: Rotation,
        rules: Rules | None = None,
        *,
        deliverer: Deliverer | None = None,
        migrator: Migrator | None = None,
        dry_run: bool = False,
    ) -> None:
        """`rules` say what may be changed; without them, everything. Without a deliverer no model
        is delivered, without a migrator no job is moved."""
        self.engine = engine
        self._rules = rules or Rules()
        self.rotation = rotation
        self.deliverer = deliverer
        self.migrator = migrator
        self._journal = journal
        self._dry_run = dry_run
        self._turns: list[Turn] = []
        originals = Originals(engine, journal, rotation.run)
        self._update = SettingsUpdate(engine, Locator(engine), originals)
        self.leases = OwnLeases(engine, journal, rotation, self._rules)
        records = LeftAloneRecords(journal.home / FOLDER)
        is_forced = self._rules.is_forced
        self.hands_off = HandsOff(engine, records, is_forced=is_forced, dry_run=dry_run)
        self.hands = Hands(journal, rotation, self._update, self.hands_off, self.undo)

    def lease(self, is_leased: bool) -> None:
        """Set whether changes from now on end with this run."""
        self._update.originals.is_leased = is_leased

    @property
    def changed(self) -> frozenset[str]:
        """Ids of the containers that this actuator has changed."""
        return frozenset(self._update.originals.changed)

    def apply(self, plan: Plan, on_result: OnResult = _ignore) -> list[Result]:
        """Apply each action of a plan, whatever becomes of the others."""
        self.rotation.run = replace(self.rotation.run, policy=plan.policy)
        self._update.originals.run = self.rotation.run
        turns_before, self._turns = self._turns, []
        if not self._dry_run:
            self.hands.heed()
        planned_at = time_or_none(plan.at)
        results: list[Result] = []
        too_old = self._rules.refusal_of_age(planned_at)
        for action in plan.actions:
            changes = sum(earlier.status in _CHANGES for earlier in results)
            result = self._result(action, planned_at, too_old, changes)
            results.append(result)
            if not refusals.takes_turns_with_others(action):
                on_result(result)
        results = refusals.all_or_none(plan.actions, results)
        refused = {result.container_id for result in results if result.status is Status.SKIPPED}
        self._turns = [turn for turn in self._turns if turn.container_id not in refused]
        for action, result in zip(plan.actions, results, strict=True):
            if refusals.takes_turns_with_others(action):
                on_result(result)
        if not self._dry_run and self._turns != turns_before:
            self.rotation.set_turns(self._turns)
        for id_ in self._update.originals.forget_gone():
            self.hands.forget(id_)
            self.hands_off.forget(id_)
        return results

    def _result(
        self, action: Action, planned_at: datetime | None, too_old: str | None, changes: int
    ) -> Result:
        """Apply an action, unless its plan is too old, or may make no more than so many changes."""
        skipped = Result(action.id, Status.SKIPPED, action.container_id, action.container_name)
        if too_old:
            return replace(skipped, status=Status.STALE, error=too_old)
        if reason := self._rules.refusal_of_number(changes):
            return replace(skipped, error=reason)
        return self._apply(action, skipped, planned_at)

    def seconds_until_due(self) -> float | None:
        """Return how long until people, the turns or the deliverer have something to do, None if
        they never have."""
        retries = self.deliverer.seconds_until_due() if self.deliverer else None
        due = (self.hands.seconds_until_due(), retries, self.rotation.seconds_until_due())
        return min((seconds for seconds in due if seconds is not None), default=None)

    def undo(
        self, only: Collection[str] | None = None, on_result: OnResult = _ignore
    ) -> list[Result]:
        """Restore containers: all in the journal, or those with the ids `only`."""
        results = undo(
            self.engine,
            self._journal,
            on_result,
            only=only,
            dry_run=self._dry_run,
            is_forced=self._rules.is_forced,
        )
        for result in results:
            self.hands_off.end_foreign(result.container_id)
        self.hands.lower()
        return results

    def release(self, on_result: OnResult = _ignore) -> None:
        """End all turns, and restore what this actuator has changed, until it applies the next
        plan."""
        self._turns = []
        self.rotation.end()
        self.hands.release()
        self.undo(self.changed, on_result)

    def _apply(self, action: Action, result: Result, planned_at: datetime | None) -> Result:
        engine_can, is_leased = self.engine.capabilities, self._update.originals.is_leased
        reason = refusals.unsupported(action, self.engine.host, engine_can)
        if reason := reason or refusals.unleased(action, engine_can, is_leased=is_leased):
            return replace(result, error=reason)
        try:
            container = self.engine.inspect(action.container_id)
            reason = self._rules.refusal(container) or refusals.unsettable(action, container)
            if reason := reason or self.hands_off.why(container):
                return replace(result, error=reason)
            if container.state == "paused" and not self.rotation.turn_of(container.id):
                self.hands_off.note_pause(container, self._journal.find(container.id))
            if action.op is Op.DELIVER:
                return self._deliver(action, container, result)
            if action.op is Op.UPDATE:
                return self._apply_settings(action, container, result, planned_at)
            if action.op in (Op.PAUSE, Op.UNPAUSE):
                before: Settings = {"state": container.state}
                result = replace(result, before=before, after=before)
            if refused := refusals.refusal(result, container, planned_at):
                return refused
            steps = {Op.MIGRATE: self._migrate, Op.ROTATE: self._apply_turn}
            return steps.get(action.op, self._apply_state)(action, container, result)
        except GoneError:
            return replace(result, status=Status.STALE, error=refusals.missing(self.engine, action))
        except RefusedError as error:
            failed = replace(result, status=Status.FAILED, error=str(error))
            return refusals.ended_meanwhile(self.engine, failed)

    def _deliver(self, action: Action, container: Container, result: Result) -> Result:
        """Copy a container's model out of it."""
        if self.deliverer is None:
            return replace(result, error=refusals.NO_DELIVERIES)
        return self.deliverer.deliver(action, container, result, dry_run=self._dry_run)

    def _migrate(self, action: Action, container: Container, result: Result) -> Result:
        """Move a container to another host."""
        if self.migrator is None:
            return replace(result, error=refusals.NO_MIGRATIONS)
        entry = self._journal.find(container.id)
        original = entry.fields if entry else {}
        return self.migrator.migrate(action, container, result, original)

    def _apply_settings(
        self, action: Action, container: Container, result: Result, planned_at: datetime | None
    ) -> Result:
        """Set a quota, a weight or a CPU list."""
        located = self._update.locator.locate(container)
        is_forced = self._rules.is_forced
        if not self._dry_run:
            self.hands.see(located)
        made = self._update.made.get(container.id)
        compared = compare(action, result, located, planned_at, made=made, is_forced=is_forced)
        if compared.status is not Status.PLANNED:
            return self._update.note(compared, located)
        if self.hands.have_changed(located, action.set):
            after = compared.before
            return replace(compared, status=Status.SKIPPED, after=after, error=refusals.FOREIGN)
        if self._dry_run:
            return compared
        unchanged = replace(compared, status=Status.SKIPPED, after=compared.before)
        limits = attainable_settings(located, action.set)
        if self.hands.defer(located, limits):
            return replace(unchanged, error=AT_WORK)
        return self._update.note(self._update.change(unchanged, located, limits), located)

    def _apply_state(self, action: Action, container: Container, result: Result) -> Result:
        """Pause or unpause a container."""
        state = "paused" if action.op is Op.PAUSE else "running"
        if container.state == state:
            return replace(result, status=Status.UNCHANGED)
        if state == "paused" and (refusal := why_no_pause(container)):
            return replace(result, error=refusal)
        if self._dry_run:
            return replace(result, status=Status.PLANNED, after={"state": state})
        located = self._update.locator.locate(container)
        self._update.originals.record(self._update.originals.describe(located, container.state))
        try:
            set_state(self.engine, container.id, state)
        except GoneError:
            return replace(result, status=Status.STALE, error=refusals.GONE)
        return replace(result, status=Status.APPLIED, after={"state": state})

    def _apply_turn(self, action: Action, container: Container, result: Result) -> Result:
        """Give a container a turn, which begins when the whole plan has been applied."""
        previous = self.rotation.turn_of(container.id)
        if reason := refusals.refusal_of_turn(container, has_turn=previous is not None):
            return replace(result, error=reason)
        if self._dry_run:
            return replace(result, status=Status.PLANNED, after=as_found(action.set))
        if self.hands.have_changed_in_turns(self._update.locator.locate(container)):
            return replace(result, error=self.hands_off.why(container))
        turn = Turn(
            container.id,
            container.name,
            action.set["group"],
            action.set["turn_s"],
            action.set.get("queue", ""),
            longest_pause_s(container.labels),
            action.set.get("period_s", 0.0),
        )
        self._turns.append(turn)
        status = Status.UNCHANGED if turn == previous else Status.APPLIED
        return replace(result, status=status, after=as_found(action.set))
