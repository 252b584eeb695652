"""One action on the settings of one container: compare, change, read back.

The original settings are recorded first. A change that fails is reverted at once. What somebody
else has changed of a run's settings is noticed at the next action. The actuator calls it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime
from functools import partial
from typing import Any

from dltools.apply.original_settings import (
    Originals,
    are_in_force,
    is_restored,
    restore,
    unknown_settings,
)
from dltools.apply.refusals import CHANGED, GONE, ended_meanwhile, refusal
from dltools.engine.interface import (
    CpuLimits,
    Engine,
    GoneError,
    LocatedContainer,
    RefusedError,
    UnableError,
)
from dltools.engine.journal import Entry
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
    if not is_forced and unknown_settings(present, known, action.expect, located.usable_cpus):
        return replace(found, status=Status.STALE, error=CHANGED)
    if reason := unfit_cpu_list(located, wanted, present):
        return replace(found, status=Status.SKIPPED, error=reason)
    return replace(found, status=Status.PLANNED, after=as_found({**before, **wanted}))


class SettingsUpdate:
    """Changes settings of one engine's containers, after recording what they were. `made` are the
    settings that this run has made, by container; none where a change has failed since."""

    def __init__(self, engine: Engine, locator: Locator, originals: Originals) -> None:
        self.engine = engine
        self.locator = locator
        self.originals = originals
        self.made: dict[str, FoundSettings] = {}

    def apply(self, found: Result, located: LocatedContainer, wanted: CpuLimits) -> Result:
        """Apply settings to a container and return what became of it."""
        before = self.originals.describe(located, wanted=wanted)
        is_new = self.originals.record(before)
        result = self._try(found, located, wanted)
        if result.status is not Status.APPLIED:
            self.made.pop(located.container.id, None)  # an engine may yet carry it out
            return self._revert(result, before, is_new)
        return self.note(result, located)

    def note(self, result: Result, located: LocatedContainer) -> Result:
        """Note the settings of an update that has succeeded, also of one that found them in force.
        Return its result, which says which of them somebody else had changed meanwhile."""
        if result.status not in (Status.APPLIED, Status.UNCHANGED):
            return result
        made = self.made.setdefault(located.container.id, {})
        names = [name for name in result.before if name in made]
        others = unknown_settings(result.before, [made], names, located.usable_cpus)
        made |= result.after
        if not others or result.error:
            return result
        who = "Swarm, or somebody," if located.container.is_task else "somebody"
        if located.container.files_only:
            who = "systemd, or somebody,"  # a daemon-reload resets what the engine does not know
        changed = " and ".join(name for name in names if name in others)
        return replace(result, error=f"{who} has changed {changed} since dl-apply set it")

    def _try(self, found: Result, located: LocatedContainer, wanted: CpuLimits) -> Result:
        try:
            is_in_force = partial(are_in_force, self.engine, located, wanted)
            set_limits(self.engine, located, wanted, is_in_force)
            return read_back(self.engine, found, located, wanted)
        except GoneError:
            return replace(found, status=Status.STALE, error=GONE)
        except UnableError as error:
            return replace(found, error=str(error))
        except RefusedError as error:
            failed = replace(found, status=Status.FAILED, error=str(error))
            return ended_meanwhile(self.engine, failed)

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
        located = self.locator.find(before.container_id)
        if is_restored(self.engine, located, before):
            return located
        restore(self.engine, located, before)
        return self.locator.find(before.container_id)

    def _forget(self, before: Entry, is_new: bool) -> None:
        if is_new:
            self.originals.forget(before)


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
