"""Applying the actions of plans to the containers of one engine, and undoing them.

`actuator` has one of these for each engine that answers.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence, Set
from contextlib import suppress
from dataclasses import replace
from datetime import datetime

from dltools.apply import refusals
from dltools.apply.delivering import Deliverer
from dltools.apply.migrate.migrator import Migrator
from dltools.apply.original_settings import Originals
from dltools.apply.owners_hand import AT_WORK, Attendance, OwnSettings
from dltools.apply.recovery import undo
from dltools.apply.refusals import Rules
from dltools.apply.settings_update import SettingsUpdate, compare
from dltools.apply.turn_order import Turn
from dltools.apply.turns import Rotation
from dltools.engine.event_feed import EventFeed
from dltools.engine.interface import (
    Container,
    Engine,
    Event,
    GoneError,
    LocatedContainer,
    RefusedError,
)
from dltools.engine.journal import Entry, Journal
from dltools.engine.left_alone import FOLDER, LeftAlone, LeftAloneRecords
from dltools.engine.limits.cpu_limits import Locator, attainable_settings, settings_in_force
from dltools.engine.links import own_records
from dltools.engine.pauses import set_state, why_no_pause
from dltools.errors import UnavailableError
from dltools.labels import longest_pause_s
from dltools.notation.limits import Limits, differs
from dltools.notation.times import time_or_none
from dltools.plan.outcome.records import Action, Op, Plan, Result, Status
from dltools.plan.realisation.settings import Settings, as_found

OnResult = Callable[[Result], None]
"""What is called with each result as soon as there is one."""


_HEEDS_S = 1.0
"""How soon a release is noticed (ours)."""

_CHANGES = (Status.APPLIED, Status.PLANNED, Status.FAILED)


def _ignore(_: Result) -> None:
    pass


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
        self.left_alone: dict[tuple[str, str], str] = {}
        """The names of the containers that are left alone, by id and reason."""
        self._rules = rules or Rules()
        self.rotation = rotation
        self.deliverer = deliverer
        self.migrator = migrator
        self._journal = journal
        self._dry_run = dry_run
        self._turns: list[Turn] = []
        self._locator = Locator(engine)
        self._originals = Originals(engine, journal, rotation.run)
        self._update = SettingsUpdate(engine, self._locator, self._originals)
        self._attendance = Attendance()
        self._attended: frozenset[str] = frozenset()
        self._own = OwnSettings(journal, self._update)
        self._records = LeftAloneRecords(journal.home / FOLDER)
        self._recorded: frozenset[str] = frozenset()
        self._joined: dict[str, Limits] = {}  # of those that take turns, when last set
        self._begun = time.time()
        self._feed: EventFeed | None = None
        rotation.on_hand = self._leave_to_somebody

    def lease(self, is_leased: bool) -> None:
        """Set whether changes from now on end with this run."""
        self._originals.is_leased = is_leased

    def adopt_leases(self, covered: Set[str] | None) -> None:
        """Make leases of earlier runs end with this run: those of containers that this run may
        change and, unless `covered` is None, whose ids are in it."""
        left = (entry for entry in self._entries() if entry.until)
        found = (entry for entry in left if self._is_covered(entry, covered))
        self._journal.lease(found, self.rotation.run)

    def leave_leases(self, until: str, covered: Set[str] | None) -> bool:
        """Keep what this run holds under lease until a time (RFC 3339); the same for leases of
        earlier runs, on the containers that `adopt_leases` takes. Tell whether anything is under
        lease."""
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
            return self._rules.refusal(self.engine.inspect(entry.container_id)) is None
        except (GoneError, RefusedError, UnavailableError):
            return False

    def _entries(self) -> list[Entry]:
        return own_records(self.engine, self._journal.all())

    @property
    def changed(self) -> frozenset[str]:
        """Ids of the containers that this actuator has changed."""
        return frozenset(self._originals.changed)

    def apply(self, plan: Plan, on_result: OnResult = _ignore) -> list[Result]:
        """Apply each action of a plan, whatever becomes of the others."""
        self.rotation.run = replace(self.rotation.run, policy=plan.policy)
        self._originals.run = self.rotation.run
        turns_before, self._turns = self._turns, []
        self._take_events()
        planned_at = time_or_none(plan.at)
        results: list[Result] = []
        too_old = self._rules.refusal_of_age(planned_at)
        for action in plan.actions:
            result = self._refused(action, results, too_old) or self._apply(action, planned_at)
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
        for id_ in self._originals.forget_gone():
            self._update.forget(id_)
            self._own.forget(id_)
            self.left_alone = {key: name for key, name in self.left_alone.items() if key[0] != id_}
        return results

    # Owners

    def attend(self, wake: Callable[[], None]) -> None:
        """Do what people at work on containers need, by what the engine has told since the last
        call. `wake` is called, in another thread, when there is more to do."""
        if self._dry_run:
            return
        if self._feed is None and self.engine.tells_hands and (self.changed or self._turns):
            self._feed = EventFeed(self.engine, self._begun, wake)
        self._take_events()
        self._heed_records()
        attended = self._attendance.attended(time.monotonic())
        self.rotation.attended = attended
        for id_ in attended - self._attended:
            self._own.give(id_)
        for id_ in self._attended - attended:
            self._own.take_back(id_)
        if attended != self._attended:
            self.rotation.look()
        self._attended = attended

    def close(self) -> None:
        """Hear no more of the engine."""
        if self._feed is not None:
            self._feed.close()

    def seconds_until_due(self) -> float | None:
        """Return how long until `attend`, the turns or the deliverer have something to do, None if
        they never have."""
        end = self._attendance.next_end()
        left = None if end is None else max(0.0, end - time.monotonic())
        heeds = _HEEDS_S if self.changed and not self._dry_run else None
        retries = self.deliverer.seconds_until_due() if self.deliverer else None
        due = (left, heeds, retries, self.rotation.seconds_until_due())
        return min((seconds for seconds in due if seconds is not None), default=None)

    def _take_events(self) -> None:
        now = time.monotonic()
        for event in self._feed.take() if self._feed else ():
            self._note(event, now)

    def _note(self, event: Event, now: float) -> None:
        """Take note of what has happened to a container."""
        id_ = event.container_id
        self._attendance.note(event, now)
        self.rotation.note_event(event)
        if event.action == "start":
            self._joined.pop(id_, None)
            if (known := self._records.find(id_)) and known.started:
                self._records.remove(known)  # it may have been made after this start
        elif event.hand == "signal":
            self.rotation.drop(id_, refusals.SIGNALLED)
        elif event.action == "update" and not self.engine.is_own(event):
            with suppress(GoneError, RefusedError):
                self._note_update(self._locator.find(id_))

    def _note_update(self, located: LocatedContainer) -> None:
        """Take note that somebody else has updated a container. While it has its own settings for
        somebody's sake, its owner may have set just these, so they are not this run's any more."""
        id_ = located.container.id
        if id_ in self._joined:
            self._has_changed_in_turns(located)
            return
        entry = self._journal.find(id_)
        others = self._update.foreign(located, entry, is_told=True) if entry else set()
        if others and not self._rules.is_forced:
            self._leave_to_others(located.container)

    def _has_changed_in_turns(self, located: LocatedContainer) -> bool:
        """Tell whether somebody has changed settings of a container that takes turns, which it does
        no longer then."""
        id_, present = located.container.id, settings_in_force(located)
        if not differs(self._joined.setdefault(id_, present), present, located.usable_cpus):
            return False
        self._joined.pop(id_)
        self.rotation.drop(id_, refusals.UPDATED)
        return True

    def _why_left_alone(self, container: Container) -> str | None:
        """Return why no plan may touch a container, None if one may."""
        why = self._records.why(self.engine, container)
        if why != refusals.FOREIGN or not self._rules.is_forced:
            return why
        self._end_foreign(container.id)
        return None

    def _end_foreign(self, container_id: str) -> None:
        """Where that is forced, leave a container alone no longer since somebody has changed it."""
        left = self._records.find(container_id) if self._rules.is_forced else None
        if left is not None and left.why == refusals.FOREIGN and not self._dry_run:
            self._records.remove(left)

    def _leave_to_somebody(self, turn: Turn, why: str) -> None:
        """Leave a container alone until it is started again."""
        why = f"{why}: left alone until it is started again"
        self.left_alone[turn.container_id, why] = turn.name
        with suppress(GoneError, RefusedError):
            self._write_left_alone(self.engine.inspect(turn.container_id), why)

    def _write_left_alone(self, container: Container, why: str) -> None:
        self._records.write(
            LeftAlone(
                self.engine.id,
                self.engine.host,
                container.id,
                container.name,
                why,
                container.started_text,
            )
        )

    def _heed_records(self) -> None:
        """Restore the containers that are to be left alone from now on."""
        names = self._records.names()
        if names == self._recorded:
            return
        self._recorded = names
        found = {
            one.container_id: one for one in own_records(self.engine, self._records.readable())
        }
        for id_, one in found.items():
            self.rotation.drop(id_, one.why)
            if self._journal.find(id_):
                self.left_alone[id_, one.why] = one.container_name
                self._give_back(id_)

    def _give_back(self, container_id: str) -> None:
        """Restore a container, and want nothing more of it."""
        self.undo([container_id])
        self._update.forget(container_id)
        self._own.forget(container_id)

    def undo(
        self, only: Iterable[str] | None = None, on_result: OnResult = _ignore
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
        for one in results:
            self._end_foreign(one.container_id)
        return results

    def release(self, on_result: OnResult = _ignore) -> None:
        """End all turns, and restore what this actuator has changed, until it applies the next
        plan."""
        self._turns = []
        self.rotation.end()
        self._joined.clear()
        for id_ in self.changed:
            self._own.forget(id_)
        self.undo(self.changed, on_result)

    def _refused(
        self, action: Action, results: Sequence[Result], too_old: str | None
    ) -> Result | None:
        """Return the result of an action that the rules forbid for its plan's sake, None if they
        do not. `results` are those of the plan's actions before."""
        found = Result(action.id, Status.STALE, action.container_id, action.container_name)
        if too_old:
            return replace(found, error=too_old)
        changes = sum(one.status in _CHANGES for one in results)
        if reason := self._rules.refusal_of_number(changes):
            return replace(found, status=Status.SKIPPED, error=reason)
        return None

    def _apply(self, action: Action, planned_at: datetime | None) -> Result:
        found = Result(action.id, Status.SKIPPED, action.container_id, action.container_name)
        engine_can, is_leased = self.engine.capabilities, self._originals.is_leased
        reason = refusals.unsupported(action, self.engine.host, engine_can)
        if reason := reason or refusals.unleased(action, engine_can, is_leased=is_leased):
            return replace(found, error=reason)
        try:
            container = self.engine.inspect(action.container_id)
            reason = self._rules.refusal(container) or refusals.unsettable(action, container)
            if reason := reason or self._why_left_alone(container):
                return replace(found, error=reason)
            self._look_who_paused(container)
            if action.op is Op.DELIVER:
                return self._deliver(action, container, found)
            if action.op is Op.MIGRATE:
                return self._migrate(action, container, found, planned_at)
            if action.op is Op.UPDATE:
                return self._apply_settings(action, container, found, planned_at)
            if action.op is Op.ROTATE:
                return self._apply_turn(action, container, found, planned_at)
            return self._apply_state(action, container, found, planned_at)
        except GoneError:
            return replace(found, status=Status.STALE, error=refusals.missing(self.engine, action))
        except RefusedError as error:
            failed = replace(found, status=Status.FAILED, error=str(error))
            return refusals.ended_meanwhile(self.engine, failed)

    def _look_who_paused(self, container: Container) -> None:
        """Note a container that somebody else has paused. A dry run, which leaves paused what an
        earlier run has left so, cannot tell."""
        if self._dry_run or container.state != "paused" or self.rotation.turn_of(container.id):
            return
        entry = self._journal.find(container.id)
        if entry is None or entry.state is None:
            self.left_alone[container.id, refusals.PAUSED_ELSEWHERE] = container.name

    def _deliver(self, action: Action, container: Container, found: Result) -> Result:
        """Copy a container's model out of it."""
        if self.deliverer is None:
            return replace(found, error=refusals.NO_DELIVERIES)
        return self.deliverer.deliver(action, container, found, dry_run=self._dry_run)

    def _migrate(
        self, action: Action, container: Container, found: Result, planned_at: datetime | None
    ) -> Result:
        """Move a container to another host."""
        if refused := refusals.refusal(found, container, planned_at):
            return refused
        if self.migrator is None:
            return replace(found, error=refusals.NO_MIGRATIONS)
        entry = self._journal.find(container.id)
        original = entry.fields if entry else {}
        return self.migrator.migrate(action, container, found, original)

    def _apply_settings(
        self, action: Action, container: Container, found: Result, planned_at: datetime | None
    ) -> Result:
        """Set a quota, a weight or a CPU list."""
        located = self._locator.locate(container)
        is_forced = self._rules.is_forced
        made = self._update.made.get(container.id)
        compared = compare(action, found, located, planned_at, made=made, is_forced=is_forced)
        if compared.status is not Status.PLANNED:
            return self._update.note(compared, located)
        if self._is_left_alone(located, action.set):
            after = compared.before
            return replace(compared, status=Status.SKIPPED, after=after, error=refusals.FOREIGN)
        if self._dry_run:
            return compared
        unchanged = replace(compared, status=Status.SKIPPED, after=compared.before)
        wanted = attainable_settings(located, action.set)
        if container.id in self._attended:
            self._own.defer(container.id, wanted)
            return replace(unchanged, error=AT_WORK)
        self._joined.pop(container.id, None)
        self._own.see(located)
        return self._update.apply(unchanged, located, wanted)

    def _is_left_alone(self, located: LocatedContainer, names: Iterable[str]) -> bool:
        """Tell whether somebody else has changed settings of these names in a container. Then what
        this run has set there besides is restored."""
        entry = None if self._rules.is_forced else self._journal.find(located.container.id)
        if entry is None or not self._update.foreign(located, entry).intersection(names):
            return False
        self._leave_to_others(located.container)
        return True

    def _leave_to_others(self, container: Container) -> None:
        """Leave a container alone of which somebody else has changed settings, and restore what
        this run has set there besides."""
        self.left_alone[container.id, refusals.FOREIGN] = container.name
        if not self._dry_run:
            self._write_left_alone(container, refusals.FOREIGN)
            self._give_back(container.id)

    def _apply_state(
        self, action: Action, container: Container, found: Result, planned_at: datetime | None
    ) -> Result:
        """Pause or unpause a container."""
        before: Settings = {"state": container.state}
        wanted = "paused" if action.op is Op.PAUSE else "running"
        found = replace(found, before=before, after=before)
        if refused := refusals.refusal(found, container, planned_at):
            return refused
        if container.state == wanted:
            return replace(found, status=Status.UNCHANGED)
        if wanted == "paused" and (refusal := why_no_pause(container)):
            return replace(found, error=refusal)
        if self._dry_run:
            return replace(found, status=Status.PLANNED, after={"state": wanted})
        located = self._locator.locate(container)
        self._originals.record(self._originals.describe(located, container.state))
        try:
            set_state(self.engine, container.id, wanted)
        except GoneError:
            return replace(found, status=Status.STALE, error=refusals.GONE)
        return replace(found, status=Status.APPLIED, after={"state": wanted})

    def _apply_turn(
        self, action: Action, container: Container, found: Result, planned_at: datetime | None
    ) -> Result:
        """Give a container a turn, which begins when the whole plan has been applied."""
        if refused := refusals.refusal(found, container, planned_at):
            return refused
        known = self.rotation.turn_of(container.id)
        if reason := refusals.refusal_of_turn(container, has_turn=known is not None):
            return replace(found, error=reason)
        if self._dry_run:
            return replace(found, status=Status.PLANNED, after=as_found(action.set))
        if self._has_changed_in_turns(self._locator.locate(container)):
            return replace(found, error=self._records.why(self.engine, container))
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
        status = Status.UNCHANGED if turn == known else Status.APPLIED
        return replace(found, status=status, after=as_found(action.set))
