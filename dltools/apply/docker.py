"""Applying update actions to the containers of one Docker engine, and undoing them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from datetime import datetime
from typing import Any

from dltools.apply import gpu, limits, threads
from dltools.apply.gpu import Access
from dltools.apply.journal import Entry, Journal
from dltools.apply.limits import Place
from dltools.apply.rotation import Rotation, Turn
from dltools.cpus import parse_cpus
from dltools.errors import DltoolsError
from dltools.labels import PROTECT, QOE, is_true
from dltools.plans import Action, Op, Plan, Result, Settings, Status, differs
from dltools.probe import cgroup
from dltools.probe.engine import Container, Engine, GoneError, RefusedError, parse_time

SUPPORTED = ("cpus", "cpu_weight", "cpuset")
_RUNNING = ("running", "paused")


Tell = Callable[[Result], None]
"""What is called with each result as soon as there is one."""


def _nobody(_: Result) -> None:
    pass


class Actuator:
    """Brings plans about on one engine. A dry run does all but write."""

    def __init__(
        self, engine: Engine, journal: Journal, rotation: Rotation, *, dry_run: bool = False
    ) -> None:
        """Nothing is changed yet."""
        self._engine = engine
        self._journal = journal
        self.rotation = rotation
        self._turns: list[Turn] = []
        self._dry_run = dry_run
        self._mounts = cgroup.mounts()
        self.touched: set[str] = set()

    def apply(self, plan: Plan, tell: Tell = _nobody) -> list[Result]:
        """Apply each action of a plan, telling of each result at once.

        An action that fails keeps no other from its turn.
        """
        results = []
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
        if action.host != self._engine.host:
            return replace(
                blank, error=f"on host {action.host}; this engine is {self._engine.host}"
            )
        if action.op not in (Op.UPDATE, Op.PAUSE, Op.UNPAUSE, Op.ROTATE):
            return replace(blank, error=f"{action.op} is not something dl-apply can do")
        if action.op is Op.UPDATE and (
            unknown := [name for name in action.set if name not in SUPPORTED]
        ):
            return replace(blank, error=f"{', '.join(unknown)} is not something dl-apply can set")
        try:
            container = self._engine.inspect(action.container_id)
        except GoneError:
            return replace(blank, status=Status.STALE, error=self._gone(action))
        if action.op is not Op.UPDATE:
            return self._stop_or_go(action, container, decided, blank)
        place = limits.locate(self._engine, container, self._mounts)
        present = limits.in_force(place)
        before = {k: v for k, v in present.items() if k in action.set}
        found = replace(blank, before=before, after=before)
        if is_true(container.labels.get(PROTECT)):
            return replace(found, error=f"protected by its label {PROTECT}")
        if reason := _moved_on(container, decided):
            return replace(found, status=Status.STALE, error=reason)
        if not differs(action.set, before, place.cpus):
            return replace(found, status=Status.UNCHANGED)
        if differs(action.expect, present, place.cpus):
            return replace(found, status=Status.STALE, error="somebody changed it since the plan")
        if reason := _too_few(place, action.set, present):
            return replace(found, error=reason)
        if self._dry_run:
            return replace(found, status=Status.PLANNED, after={**before, **action.set})
        return self._change(found, place, action.set)

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
        place = limits.locate(self._engine, container, self._mounts)
        self._journal.add(self._entry(place, container.state))
        self.touched.add(container.id)
        try:
            self._set_state(container.id, wanted)
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

    def _set_state(self, container_id: str, state: str) -> None:
        if state == "paused":
            self._engine.pause(container_id)
        else:
            self._engine.unpause(container_id)

    def _entry(self, place: Place, state: str | None = None) -> Entry:
        container = place.container
        return Entry(
            engine=self._engine.id,
            container_id=container.id,
            container_name=container.name,
            fields={name: container.host_config.get(name) or 0 for name in limits.FIELDS},
            settings=limits.in_force(place),
            kernel=limits.exactly(place),
            state=state,
        )

    def _change(self, found: Result, place: Place, wanted: Settings) -> Result:
        """Journal, change, read back."""
        container = place.container
        way = gpu.access(container)
        self._journal.add(self._entry(place))
        self.touched.add(container.id)
        had_gpu = gpu.usable(self._engine, container) if way is not Access.NONE else None
        try:
            if way is Access.HOOK:
                limits.write_directly(place, wanted)
            else:
                self._update(place, wanted)
        except GoneError:
            return replace(found, status=Status.STALE, error="gone")
        except RefusedError as error:
            return replace(found, status=Status.FAILED, error=str(error))
        except OSError as error:
            reason = f"cannot write its cgroup files: {error.strerror or error}"
            return replace(found, error=f"an update could cut off its GPU, and dl-apply {reason}")
        result = self._read_back(found, place, wanted)
        if had_gpu and gpu.usable(self._engine, container) is False:
            return replace(result, status=Status.FAILED, error="it has lost its GPU: restart it")
        return result

    def _update(self, place: Place, wanted: Settings) -> None:
        fields: dict[str, Any] = {}
        if "cpus" in wanted:
            fields |= limits.cpu_fields(place, wanted["cpus"], self._engine.cpus)
        if "cpuset" in wanted:
            fields |= limits.cpuset_fields(place, wanted["cpuset"])
        if "cpu_weight" not in wanted:
            self._engine.update(place.container.id, fields)
            return
        for candidate in limits.weight_fields(place, wanted["cpu_weight"]):
            self._engine.update(place.container.id, fields | candidate)
            if not differs(wanted, self._now(place), place.cpus):
                return

    def _now(self, place: Place) -> Settings:
        """Return the settings in force now, from a fresh inspection where it takes one."""
        if place.cgroup is not None and place.cgroup.exists:
            return limits.in_force(place)
        container = self._engine.inspect(place.container.id)
        return limits.in_force(replace(place, container=container, cgroup=None))

    def _read_back(self, found: Result, place: Place, wanted: Settings) -> Result:
        try:
            after = {k: v for k, v in self._now(place).items() if k in wanted}
        except GoneError:
            return replace(found, status=Status.STALE, error="gone")
        if differs(wanted, after, place.cpus):
            return replace(found, status=Status.FAILED, after=after,
                           error="accepted, but another limit is in force")  # fmt: skip
        return replace(found, status=Status.APPLIED, after=after)

    def _gone(self, action: Action) -> str:
        try:
            other = self._engine.inspect(action.container_name)
        except DltoolsError:
            return "gone"
        if other.name == action.container_name and other.id != action.container_id:
            return f"replaced by {other.id[:12]} since the plan"
        return "gone"

    # Undoing

    def undo(self, only: Iterable[str] | None = None, tell: Tell = _nobody) -> list[Result]:
        """Put containers back as they were found: all in the journal, or those with these ids."""
        wanted = None if only is None else set(only)
        results = []
        for number, entry in enumerate(self._journal.entries(self._engine.id), 1):
            if wanted is None or entry.container_id in wanted:
                results.append(self._undo(number, entry))
                tell(results[-1])
        return results

    def _undo(self, number: int, entry: Entry) -> Result:
        blank = Result(number, Status.STALE, entry.container_id, entry.container_name)
        try:
            container = self._engine.inspect(entry.container_id)
            place = limits.locate(self._engine, container, self._mounts)
            before = self._now(place)
            original = {k: v for k, v in entry.settings.items() if k in before}
            found = replace(blank, before=before, after=before)
            state = _state_to_restore(container, entry)
            if state is not None and not self._dry_run:
                self._set_state(container.id, state)
            if _is_back(place, entry):
                done = Status.PLANNED if self._dry_run else Status.APPLIED
                result = replace(found, status=done if state else Status.UNCHANGED)
            elif self._dry_run:
                return replace(found, status=Status.PLANNED, after=original)
            else:
                self._put_back(place, entry, original)
                result = self._read_back(found, place, original)
        except GoneError:
            if not self._dry_run:
                self._journal.remove(entry)
            return replace(blank, status=Status.UNCHANGED, error="gone")
        except RefusedError as error:
            return replace(blank, status=Status.FAILED, error=str(error))
        except OSError as error:
            return replace(blank, status=Status.FAILED, error=str(error.strerror or error))
        if result.status in (Status.APPLIED, Status.UNCHANGED) and not self._dry_run:
            self._journal.remove(entry)
        return result

    def _put_back(self, place: Place, entry: Entry, original: Settings) -> None:
        if gpu.access(place.container) is Access.HOOK:
            limits.write_back(place, dict(entry.kernel))
            return
        fields = limits.original_cpu_fields(dict(entry.fields))
        if "cpuset" in original and original["cpuset"] != limits.in_force(place).get("cpuset"):
            fields |= limits.cpuset_fields(place, original["cpuset"])
        for candidate in limits.weight_fields(place, original.get("cpu_weight", 1024.0)):
            self._engine.update(place.container.id, fields | candidate)
            now = limits.exactly(place)
            if not entry.kernel or not now or _same(now, entry.kernel):
                return


def _is_back(place: Place, entry: Entry) -> bool:
    """Tell whether a container is as it was found.

    What was written past the engine does not outlive the container's processes.
    """
    if gpu.access(place.container) is Access.HOOK and not place.container.pid:
        return True
    return bool(entry.kernel) and _same(limits.exactly(place), entry.kernel)


def _same(now: Mapping[str, str], then: Mapping[str, str]) -> bool:
    """Tell whether the kernel's files say what they said, as far as that was noted."""
    return bool(now) and all(now.get(name) == text for name, text in then.items())


def _state_to_restore(container: Container, entry: Entry) -> str | None:
    """Return the state that a container is to be put back into, None where it is in it."""
    if entry.state is None or container.state not in _RUNNING or container.state == entry.state:
        return None
    return entry.state


def _too_few(place: Place, wanted: Settings, present: Settings) -> str | None:
    """Return why a CPU list cannot be set: it has fewer CPUs than the container busy threads, or
    CPUs that are not there."""
    cpus = parse_cpus(wanted.get("cpuset") or "")
    if not cpus:
        return None if not wanted.get("cpuset") else f"not a list of CPUs: {wanted['cpuset']}"
    every = parse_cpus(place.cpuset)
    if not set(cpus) <= set(every):
        return f"CPUs {wanted['cpuset']}: containers here can have {place.cpuset}"
    if set(parse_cpus(present.get("cpuset") or place.cpuset)) <= set(cpus):
        return None  # it only grows
    busy = threads.busy(place.cgroup) if place.cgroup else None
    if busy is None:
        return "its threads are out of sight, and fewer CPUs than busy threads make it collapse"
    if busy > len(cpus):
        return f"it has {busy} busy threads: on {len(cpus)} CPUs it would collapse"
    return None


def _moved_on(container: Container, decided: datetime | None) -> str | None:
    if container.state not in _RUNNING:
        return f"it is {container.state}"
    if decided and container.started and container.started > decided:
        return "restarted since the plan"
    return None


def offline(plan: Plan, tell: Tell) -> None:
    """Tell what a dry run would say if everything were as the plan expects it."""
    for action in plan.actions:
        tell(Result(action.id, Status.PLANNED, action.container_id, action.container_name,
                    action.expect, action.set))  # fmt: skip
