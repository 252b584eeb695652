"""Applying update actions to the containers of one Docker engine, and undoing them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from datetime import datetime
from typing import Any

from dltools.apply import bounds, gpu, limits, original
from dltools.apply.gpu import Access
from dltools.apply.journal import Entry, Journal
from dltools.apply.limits import Place
from dltools.apply.turns import Rotation, Turn
from dltools.apply.undo import RUNNING, Tell, read_back, set_state, undo
from dltools.engine import cgroup
from dltools.engine.containers import Container, Engine, GoneError, RefusedError, parse_time
from dltools.errors import DltoolsError
from dltools.labels import PROTECT, QOE, is_true
from dltools.plan.realisation.settings import Settings, differs
from dltools.plan.records import Action, Op, Plan, Result, Status

SUPPORTED = ("cpus", "cpu_weight", "cpuset")


def _nobody(_: Result) -> None:
    pass


class Actuator:
    """Brings plans about on one engine. A dry run does all but write."""

    def __init__(
        self, engine: Engine, journal: Journal, rotation: Rotation, *, dry_run: bool = False
    ) -> None:
        """Nothing is changed yet."""
        self.engine = engine
        self.journal = journal
        self.rotation = rotation
        self._run = rotation.run
        self._turns: list[Turn] = []
        self._dry_run = dry_run
        self._mounts = cgroup.mounts()
        self.touched: set[str] = set()

    def apply(self, plan: Plan, tell: Tell = _nobody) -> list[Result]:
        """Apply each action of a plan, telling of each result at once.

        An action that fails keeps no other from its turn.
        """
        results = []
        self._run = self.rotation.run = replace(self._run, policy=plan.policy)
        before, self._turns = self._turns, []
        for action in plan.actions:
            try:
                result = self._apply(action, parse_time(plan.at))
            except RefusedError as error:
                result = Result(action.id, Status.FAILED, action.container_id,
                                action.container_name, error=str(error))  # fmt: skip
            results.append(result)
            tell(result)
        if not self._dry_run and self._turns != before:
            self.rotation.follow(self._turns)
        return results

    def _apply(self, action: Action, decided: datetime | None) -> Result:
        blank = Result(action.id, Status.SKIPPED, action.container_id, action.container_name)
        if action.host != self.engine.host:
            return replace(blank, error=f"on host {action.host}; this engine is {self.engine.host}")
        if action.op not in (Op.UPDATE, Op.PAUSE, Op.UNPAUSE, Op.ROTATE):
            return replace(blank, error=f"{action.op} is not something dl-apply can do")
        if action.op is Op.UPDATE and (
            unknown := [name for name in action.set if name not in SUPPORTED]
        ):
            return replace(blank, error=f"{', '.join(unknown)} is not something dl-apply can set")
        try:
            container = self.engine.inspect(action.container_id)
        except GoneError:
            return replace(blank, status=Status.STALE, error=self._gone(action))
        if action.op is not Op.UPDATE:
            return self._stop_or_go(action, container, decided, blank)
        place = limits.locate(self.engine, container, self._mounts)
        present = limits.in_force(place)
        before = {k: v for k, v in present.items() if k in action.set}
        found = replace(blank, before=before, after=before)
        if is_true(container.labels.get(PROTECT)):
            return replace(found, error=f"protected by its label {PROTECT}")
        if reason := _moved_on(container, decided):
            return replace(found, status=Status.STALE, error=reason)
        if reason := bounds.out_of_bounds(action.set):
            return replace(found, status=Status.FAILED, error=reason)
        wanted = limits.attainable(place, action.set)
        if not differs(wanted, before, place.cpus):
            return replace(found, status=Status.UNCHANGED)
        if differs(action.expect, present, place.cpus):
            return replace(found, status=Status.STALE, error="somebody changed it since the plan")
        if reason := bounds.unfit_cpuset(place, wanted, present):
            return replace(found, error=reason)
        if self._dry_run:
            return replace(found, status=Status.PLANNED, after={**before, **wanted})
        return self._change(found, place, wanted)

    def _stop_or_go(
        self, action: Action, container: Container, decided: datetime | None, blank: Result
    ) -> Result:
        """Pause, unpause, or give a container its place in the rotation."""
        turning = action.op is Op.ROTATE
        before: Settings = {} if turning else {"state": container.state}
        found = replace(blank, before=before, after=before)
        if is_true(container.labels.get(PROTECT)):
            return replace(found, error=f"protected by its label {PROTECT}")
        if reason := _moved_on(container, decided):
            return replace(found, status=Status.STALE, error=reason)
        if turning:
            return self._give_turn(action, container, found)
        wanted = "paused" if action.op is Op.PAUSE else "running"
        if container.state == wanted:
            return replace(found, status=Status.UNCHANGED)
        if self._dry_run:
            return replace(found, status=Status.PLANNED, after={"state": wanted})
        place = limits.locate(self.engine, container, self._mounts)
        self.journal.add(original.entry(self.engine, place, self._run, container.state))
        self.touched.add(container.id)
        try:
            set_state(self.engine, container.id, wanted)
        except GoneError:
            return replace(found, status=Status.STALE, error="gone")
        return replace(found, status=Status.APPLIED, after={"state": wanted})

    def _give_turn(self, action: Action, container: Container, found: Result) -> Result:
        if QOE in container.labels:
            return replace(found, error=f"it serves (label {QOE}): never paused")
        mine = self.rotation.holds(container.id)
        if container.state == "paused" and not mine:
            return replace(found, error="somebody has paused it: left alone")
        if self._dry_run:
            return replace(found, status=Status.PLANNED, after=action.set)
        turn = Turn(container.id, container.name, action.set["group"], action.set["turn_s"])
        self._turns.append(turn)
        same = self.rotation.holds(container.id, turn)
        status = Status.UNCHANGED if same else Status.APPLIED
        return replace(found, status=status, after=action.set)

    def _change(self, found: Result, place: Place, wanted: Settings) -> Result:
        """Journal, change, read back; take back what has failed."""
        entry = original.entry(self.engine, place, self._run)
        new = self.journal.add(entry)
        self.touched.add(entry.container_id)
        way = gpu.access(place.container)
        had_gpu = gpu.usable(self.engine, place.container) if way is not Access.NONE else None
        result = self._try(found, place, wanted)
        if result.status is Status.APPLIED:
            if had_gpu and gpu.usable(self.engine, place.container) is False:
                return replace(
                    result, status=Status.FAILED, error="it has lost its GPU: restart it"
                )
            return result
        result, back = self._take_back(result, entry)
        if back and new:
            self.journal.remove(entry)
            self.touched.discard(entry.container_id)
        return result

    def _try(self, found: Result, place: Place, wanted: Settings) -> Result:
        try:
            if gpu.access(place.container) is Access.HOOK:
                limits.write_directly(place, wanted)
            else:
                self._update(place, wanted)
            return read_back(self.engine, found, place, wanted)
        except GoneError:
            return replace(found, status=Status.STALE, error="gone")
        except RefusedError as error:
            return replace(found, status=Status.FAILED, error=str(error))
        except OSError as error:
            reason = f"cannot write its cgroup files: {error.strerror or error}"
            return replace(found, error=f"an update could cut off its GPU, and dl-apply {reason}")

    def _take_back(self, result: Result, entry: Entry) -> tuple[Result, bool]:
        """Put back what a failed change has left, on the engine's record and in the kernel's files.

        Return the result with what is in force then, and whether all is as it was.
        """
        try:
            place = self._place(entry.container_id)
            if not original.is_back(place, entry):
                original.put_back(self.engine, place, entry)
                place = self._place(entry.container_id)
            current = original.now(self.engine, place)
            back = not differs(entry.settings, current, place.cpus)
        except GoneError:
            return replace(result, status=Status.STALE, error="gone"), True
        except (RefusedError, OSError) as error:
            why = f"{result.error}; it could not be taken back: {error}"
            return replace(result, error=why), False
        after = {name: current[name] for name in result.before if name in current}
        if back:
            return replace(result, after=after), True
        return replace(result, after=after, error=f"{result.error}; not all was taken back"), False

    def _place(self, container_id: str) -> Place:
        return limits.locate(self.engine, self.engine.inspect(container_id), self._mounts)

    def _update(self, place: Place, wanted: Settings) -> None:
        fields: dict[str, Any] = {}
        if "cpus" in wanted:
            fields |= limits.cpu_fields(place, wanted["cpus"], self.engine.cpus)
        if "cpuset" in wanted:
            fields |= limits.cpuset_fields(place, wanted["cpuset"])
        if "cpu_weight" not in wanted:
            self.engine.update(place.container.id, fields)
            return
        for candidate in limits.weight_fields(place, wanted["cpu_weight"]):
            self.engine.update(place.container.id, fields | candidate)
            if not differs(wanted, original.now(self.engine, place), place.cpus):
                return

    def _gone(self, action: Action) -> str:
        try:
            other = self.engine.inspect(action.container_name)
        except DltoolsError:
            return "gone"
        if other.name == action.container_name and other.id != action.container_id:
            return f"replaced by {other.id[:12]} since the plan"
        return "gone"

    def undo(self, only: Iterable[str] | None = None, tell: Tell = _nobody) -> list[Result]:
        """Put containers back as they were found: all in the journal, or those with these ids."""
        return undo(self.engine, self.journal, tell, only=only, dry_run=self._dry_run)


def _moved_on(container: Container, decided: datetime | None) -> str | None:
    if container.state not in RUNNING:
        return f"it is {container.state}"
    if decided and container.started and container.started > decided:
        return "restarted since the plan"
    return None


def offline(plan: Plan, tell: Tell) -> None:
    """Tell what a dry run would say if everything were as the plan expects it."""
    for action in plan.actions:
        reason = bounds.out_of_bounds(action.set)
        tell(Result(action.id, Status.FAILED if reason else Status.PLANNED, action.container_id,
                    action.container_name, action.expect, action.expect if reason else action.set,
                    reason))  # fmt: skip
