"""One action on the settings of one container: compare, change, read back.

The original settings are recorded first. A change that fails is reverted at once. What somebody
else has changed of a run's settings is noticed at the next action. The actuator calls it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from functools import partial
from typing import Any

from dltools.apply.original_settings import Entry, Originals, is_restored, restore
from dltools.apply.refusals import CHANGED, GONE, ended_meanwhile, refusal
from dltools.engine.interface import (
    CpuLimits,
    Engine,
    GoneError,
    LocatedContainer,
    RefusedError,
    UnableError,
)
from dltools.engine.limits.cpu_limits import (
    Locator,
    attainable_settings,
    current_settings,
    out_of_bounds,
    settings_in_force,
    unfit_cpu_list,
)
from dltools.engine.limits.limit_files import set_limits
from dltools.plan.realisation.settings import FoundSettings, Settings, as_found, differs, only
from dltools.plan.records import Action, Result, Status


def compare(
    action: Action,
    found: Result,
    located: LocatedContainer,
    planned_at: datetime | None,
    *,
    made: Settings | None = None,
    is_forced: bool = False,
) -> Result:
    """Return what becomes of an update: PLANNED with the settings that it brings about, or why the
    container is left alone. `found` names the action and its container. `made`: the settings that
    this run has set; a plan made before they were observed may expect older ones. `is_forced` also
    changes settings that neither the plan nor this run knows."""
    present = settings_in_force(located)
    before = as_found(only(present, action.set))
    found = replace(found, before=before, after=before)
    if refused := refusal(found, located.container, planned_at):
        return refused
    if reason := out_of_bounds(action.set):
        return replace(found, status=Status.FAILED, error=reason)
    wanted = attainable_settings(located, action.set)
    if not differs(wanted, before, located.usable_cpus):
        return replace(found, status=Status.UNCHANGED)
    known = [action.expect, made or {}]
    if not is_forced and not _is_known(present, known, action.expect, located.usable_cpus):
        return replace(found, status=Status.STALE, error=CHANGED)
    if reason := unfit_cpu_list(located, wanted, present):
        return replace(found, status=Status.SKIPPED, error=reason)
    return replace(found, status=Status.PLANNED, after=as_found({**before, **wanted}))


def _is_known(
    present: Mapping[str, Any], known: Sequence[Settings], names: Iterable[str], cpus: float
) -> bool:
    """Tell whether each setting of these names is one of those that are known."""
    return all(
        any(not differs(only(one, (name,)), present, cpus) for one in known if name in one)
        for name in names
    )


class SettingsUpdate:
    """Changes settings of one engine's containers. The journal has their entries before."""

    def __init__(self, engine: Engine, locator: Locator, originals: Originals) -> None:
        self.engine = engine
        self._locator = locator
        self._originals = originals

    def apply(self, found: Result, located: LocatedContainer, wanted: CpuLimits) -> Result:
        """Apply settings to a container and return what became of it."""
        before = self._originals.describe(located, wanted=wanted)
        is_new = self._originals.record(before)
        result = self._try(found, located, wanted)
        applied = result.status is Status.APPLIED
        return result if applied else self._revert(result, before, is_new)

    def _try(self, found: Result, located: LocatedContainer, wanted: CpuLimits) -> Result:
        try:
            set_limits(self.engine, located, wanted, partial(self._has, located, wanted))
            return read_back(self.engine, found, located, wanted)
        except GoneError:
            return replace(found, status=Status.STALE, error=GONE)
        except UnableError as error:
            return replace(found, error=str(error))
        except RefusedError as error:
            failed = replace(found, status=Status.FAILED, error=str(error))
            return ended_meanwhile(self.engine, failed)

    def _has(self, located: LocatedContainer, wanted: CpuLimits) -> bool:
        """Tell whether the limits in force now are those wanted."""
        return not differs(wanted, current_settings(self.engine, located), located.usable_cpus)

    def _revert(self, result: Result, before: Entry, is_new: bool) -> Result:
        """Restore what was in force before a change that failed, on the engine's record and in the
        kernel's files. Return the result with what is in force now."""
        try:
            located = self._restored(before)
            current = current_settings(self.engine, located)
        except GoneError:
            self._forget(before, is_new)
            return replace(result, status=Status.STALE, error=GONE)
        except RefusedError as error:
            reason = f"{result.error}; the change could not be reverted: {error}"
            return replace(result, error=reason)
        after = as_found(only(current, result.before))
        if differs(before.settings, current, located.usable_cpus):
            reason = f"{result.error}; some settings could not be reverted"
            return replace(result, after=after, error=reason)
        self._forget(before, is_new)
        return replace(result, after=after)

    def _restored(self, before: Entry) -> LocatedContainer:
        located = self._locator.find(before.container_id)
        if is_restored(self.engine, located, before):
            return located
        restore(self.engine, located, before)
        return self._locator.find(before.container_id)

    def _forget(self, before: Entry, is_new: bool) -> None:
        if is_new:
            self._originals.forget(before)


def read_back(
    engine: Engine, found: Result, located: LocatedContainer, wanted: Mapping[str, Any]
) -> Result:
    """Return a result with the settings that are in force now, and whether they are as wanted."""
    try:
        current = current_settings(engine, located)
    except GoneError:
        return replace(found, status=Status.STALE, error=GONE)
    after = as_found(only(current, wanted))
    if differs(wanted, after, located.usable_cpus):
        reason = "the engine accepted the change, but other settings are in force"
        return replace(found, status=Status.FAILED, after=after, error=reason)
    return replace(found, status=Status.APPLIED, after=after)


class SettingsMade:
    """Remembers the settings that a run has made, by container."""

    def __init__(self) -> None:
        self._made: dict[str, FoundSettings] = {}

    def of(self, container_id: str) -> FoundSettings:
        """Return the settings that the run has made in a container, {} if none."""
        return self._made.get(container_id, {})

    def all(self) -> Mapping[str, FoundSettings]:
        """Return the settings that the run has made, by container."""
        return self._made

    def forget(self, container_id: str) -> None:
        """Forget a container that is gone."""
        self._made.pop(container_id, None)

    def add(self, result: Result, located: LocatedContainer) -> Result:
        """Add the settings of an update that has succeeded, also of one that found them in force.
        Return its result, which says which of them somebody else had changed meanwhile."""
        if result.status not in (Status.APPLIED, Status.UNCHANGED):
            return result
        made = self._made.setdefault(located.container.id, {})
        changed = [
            name
            for name in result.before
            if name in made and differs(only(made, (name,)), result.before, located.usable_cpus)
        ]
        made |= result.after
        if not changed or result.error:
            return result
        others = "Swarm" if located.container.is_task else ""
        if located.container.files_only:
            others = "systemd"  # a daemon-reload resets what the engine does not know
        who = f"{others}, or somebody," if others else "somebody"
        reason = f"{who} has changed {' and '.join(changed)} since dl-apply set it"
        return replace(result, error=reason)
