"""Applying the actions of plans to the containers of one engine, and undoing them.

`actuator` has one of these for each engine that answers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence, Set
from dataclasses import replace
from datetime import datetime

from dltools.apply import refusals
from dltools.apply.deliver.deliverer import Deliverer
from dltools.apply.migrate.migrator import Migrator
from dltools.apply.original_settings import Entry, Journal, Originals, is_foreign
from dltools.apply.recovery import undo
from dltools.apply.refusals import Rules
from dltools.apply.settings_update import SettingsMade, SettingsUpdate, compare
from dltools.apply.turn_order import Turn
from dltools.apply.turns import Rotation, set_state
from dltools.engine.identity import own_records
from dltools.engine.interface import Container, Engine, GoneError, LocatedContainer, RefusedError
from dltools.engine.limits.cpu_limits import Locator, attainable_settings, out_of_bounds
from dltools.engine.pauses import why_no_pause
from dltools.errors import UnavailableError
from dltools.labels import longest_pause_s
from dltools.notation.times import parse_time
from dltools.plan.realisation.settings import FoundSettings, as_found
from dltools.plan.records import Action, Op, Plan, Result, Status

OnResult = Callable[[Result], None]
"""What is called with each result as soon as there is one."""


_CHANGES = (Status.APPLIED, Status.PLANNED, Status.FAILED)


def _ignore(_: Result) -> None:
    pass


_TAKES_TURNS = (Status.APPLIED, Status.UNCHANGED, Status.PLANNED)
"""What becomes of the action of a container that takes turns."""


def _takes_turns_with_others(action: Action) -> bool:
    return action.op is Op.ROTATE and action.job is not None


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
        self.foreign: dict[str, str] = {}
        """Ids and names of the containers that were left alone: somebody else has changed them."""
        self.paused_elsewhere: dict[str, str] = {}
        """Ids and names of the containers of plans that somebody else has paused."""
        self._rules = rules or Rules()
        self.rotation = rotation
        self.deliverer = None if dry_run else deliverer
        self._deliverer = deliverer
        self.migrator = migrator
        self._journal = journal
        self._dry_run = dry_run
        self._turns: list[Turn] = []
        self._made = SettingsMade()
        self._locator = Locator(engine)
        self._originals = Originals(engine, journal, rotation.run)
        self._update = SettingsUpdate(engine, self._locator, self._originals)

    def lease(self, is_leased: bool) -> None:
        """Set whether changes from now on end with this run."""
        self._originals.is_leased = is_leased

    def adopt_leases(self, covered: Set[str] | None) -> None:
        """Make leases of earlier runs end with this run: those of containers that this run may
        change and, unless `covered` is None, whose ids are in it."""
        covered = self._known(covered)
        found = (entry for entry in self._entries() if self._is_covered(entry, covered))
        self._journal.lease_to(found, self.rotation.run)

    def leave_leases(self, until: str, covered: Set[str] | None) -> bool:
        """Keep what this run holds under lease until a time (RFC 3339); the same for leases of
        earlier runs, on the containers that `adopt_leases` takes. Tell whether anything is under
        lease."""
        covered = self._known(covered)
        leased = [
            entry
            for entry in self._entries()
            if entry.is_leased and (not entry.until or self._is_covered(entry, covered))
        ]
        self._journal.lease_until(leased, until)
        return bool(leased)

    def _known(self, covered: Set[str] | None) -> Set[str] | None:
        return None if covered is None else {self.engine.known_as(one) for one in covered}

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
        planned_at = _time(plan.at)
        results: list[Result] = []
        too_old = self._rules.refusal_of_age(planned_at)
        for action in plan.actions:
            result = self._refused(action, results, too_old) or self._apply(action, planned_at)
            results.append(result)
            if not _takes_turns_with_others(action):
                on_result(result)
        results = self._all_or_none(plan.actions, results)
        for action, result in zip(plan.actions, results, strict=True):
            if _takes_turns_with_others(action):
                on_result(result)
        if not self._dry_run and self._turns != turns_before:
            self.rotation.set_turns(self._turns)
        for id_ in self._originals.forget_gone():
            self._made.forget(id_)
            self.foreign.pop(id_, None)
            self.paused_elsewhere.pop(id_, None)
        return results

    def _all_or_none(self, actions: Sequence[Action], results: Sequence[Result]) -> list[Result]:
        """Return the results, in which no container of a job takes turns where another one cannot:
        each would wait for the other."""
        failed = {
            action.job: action.container_name
            for action, result in zip(actions, results, strict=True)
            if _takes_turns_with_others(action) and result.status not in _TAKES_TURNS
        }
        found = []
        for action, result in zip(actions, results, strict=True):
            name = failed.get(action.job) if _takes_turns_with_others(action) else None
            if name is not None and result.status in _TAKES_TURNS:
                self._turns = [
                    one for one in self._turns if one.container_id != action.container_id
                ]
                error = refusals.job_takes_no_turns(name)
                result = replace(result, status=Status.SKIPPED, after={}, error=error)
            found.append(result)
        return found

    def undo(
        self, only: Iterable[str] | None = None, on_result: OnResult = _ignore
    ) -> list[Result]:
        """Restore containers: all in the journal, or those with the ids `only`."""
        return undo(
            self.engine,
            self._journal,
            on_result,
            only=only,
            dry_run=self._dry_run,
            is_forced=self._rules.is_forced,
        )

    def release(self, on_result: OnResult = _ignore) -> None:
        """End all turns, and restore what this actuator has changed, until it applies the next
        plan."""
        self._turns = []
        self.rotation.end()
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
            if reason:
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
            self.paused_elsewhere[container.id] = container.name

    def _deliver(self, action: Action, container: Container, found: Result) -> Result:
        """Copy a container's model out of it."""
        if self._deliverer is None:
            return replace(found, error=refusals.NO_DELIVERIES)
        return self._deliverer.deliver(action, container, found, dry_run=self._dry_run)

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
        made = self._made.of(container.id)
        compared = compare(action, found, located, planned_at, made=made, is_forced=is_forced)
        if compared.status is not Status.PLANNED:
            return self._made.add(compared, located)
        if self._is_left_alone(located):
            after = compared.before
            return replace(compared, status=Status.SKIPPED, after=after, error=refusals.FOREIGN)
        if self._dry_run:
            return compared
        unchanged = replace(compared, status=Status.SKIPPED, after=compared.before)
        wanted = attainable_settings(located, action.set)
        return self._made.add(self._update.apply(unchanged, located, wanted), located)

    def _is_left_alone(self, located: LocatedContainer) -> bool:
        """Tell whether somebody else has changed a container's settings."""
        container = located.container
        entry = None if self._rules.is_forced else self._journal.find(container.id)
        if entry is None or not is_foreign(self.engine, located, entry):
            return False
        self.foreign[container.id] = container.name
        return True

    def _apply_state(
        self, action: Action, container: Container, found: Result, planned_at: datetime | None
    ) -> Result:
        """Pause or unpause a container."""
        before: FoundSettings = {"state": container.state}
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
        turn = Turn(
            container.id,
            container.name,
            action.set["group"],
            action.set["turn_s"],
            action.set.get("queue", ""),
            longest_pause_s(container.labels),
        )
        self._turns.append(turn)
        status = Status.UNCHANGED if turn == known else Status.APPLIED
        return replace(found, status=status, after=as_found(action.set))


def _time(text: str) -> datetime | None:
    try:
        return parse_time(text)
    except ValueError:
        return None


def check_offline(plan: Plan, on_result: OnResult) -> None:
    """Report what a dry run would report if every container were as the plan expects."""
    for action in plan.actions:
        reason = out_of_bounds(action.set)
        on_result(
            Result(
                action.id,
                Status.FAILED if reason else Status.PLANNED,
                action.container_id,
                action.container_name,
                before=as_found(action.expect),
                after=as_found(action.expect if reason else action.set),
                error=reason,
            )
        )
