"""One action on the settings of one container: compare, change, read back.

The original settings are recorded first. A change that fails is reverted at once. What somebody
else has changed of a run's settings is found here. The actuator calls it.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial
from typing import Any, NamedTuple

from dltools.actions.plans import Action, Result, Status
from dltools.actions.settings import Settings, as_found
from dltools.apply.original_settings import (
    Originals,
    are_in_force,
    foreign_settings,
    is_restored,
    restore,
    unknown_settings,
)
from dltools.apply.refusals import CHANGED, GONE, ended_meanwhile, refusal
from dltools.engine.interface import Engine, GoneError, LocatedContainer, RefusedError, UnableError
from dltools.engine.journal import Entry
from dltools.engine.limits.cpu_limits import (
    Locator,
    attainable_settings,
    current_settings,
    out_of_bounds,
    settings_in_force,
    unfit_cpu_list,
)
from dltools.engine.limits.limit_writing import names_in_files
from dltools.engine.parts import LimitChange, SetsLimits, needed
from dltools.notation.limits import Limits, differs, only, written_name


def compare(
    action: Action,
    result: Result,
    located: LocatedContainer,
    planned_at: datetime | None,
    *,
    made: Settings | None = None,
    is_forced: bool = False,
) -> Result:
    """Return what becomes of an update: PLANNED with the settings that it brings about, or why the
    container is left alone. `result` names the action and its container. `made`: the settings that
    this run has set; a plan made before they were observed may expect older ones. `is_forced` also
    changes settings that neither the plan nor this run knows."""
    present = settings_in_force(located)
    before = as_found(only(present, action.set))
    result = replace(result, before=before, after=before)
    if refused := refusal(result, located.container, planned_at):
        return refused
    if reason := out_of_bounds(action.set):
        return replace(result, status=Status.FAILED, error=reason)
    limits = attainable_settings(located, action.set)
    if not differs(limits, before, located.usable_cpus):
        return replace(result, status=Status.UNCHANGED)
    expected = [action.expect, made or {}]
    if not is_forced and unknown_settings(present, expected, action.expect, located.usable_cpus):
        return replace(result, status=Status.STALE, error=CHANGED)
    if reason := unfit_cpu_list(located, limits, present):
        return replace(result, status=Status.SKIPPED, error=reason)
    return replace(result, status=Status.PLANNED, after=as_found({**before, **limits}))


class Raised(NamedTuple):
    """The weights of a container that was raised as soon as somebody entered it: before, since, and
    its owner's."""

    before: float
    since: float
    own: float


@dataclass(slots=True)
class OwnersOwn:
    """The settings that a container has for now for its owner's sake, and when that run of it began
    (the engine's text). Where they are in the kernel's files alone, a restart ends them."""

    settings: Limits
    started: str
    is_on_record: bool = False


class SettingsUpdate:
    """Changes settings of one engine's containers, after recording what they were. `made` are the
    settings that this run has made for plans, by container; none where a change has failed since.
    `own` are those that a container has for now for its owner's sake, `asked` those that the engine
    was asked for last. `raised` is what another thread notes before it writes that weight, with
    `lock`."""

    def __init__(self, engine: Engine, locator: Locator, originals: Originals) -> None:
        self.engine = engine
        self.locator = locator
        self.originals = originals
        self.made: dict[str, Settings] = {}
        self.own: dict[str, OwnersOwn] = {}
        self.asked: dict[str, Settings] = {}
        self.raised: dict[str, Raised] = {}
        self.lock = threading.Lock()
        self._started: dict[str, str] = {}  # when that run of a container began for which `made` is

    def foreign(
        self, located: LocatedContainer, entry: Entry, *, is_told: bool = False
    ) -> set[str]:
        """Return the names of the settings that somebody else has changed. `is_told`: the engine
        has told that somebody did, who may have set just what the owner had for now.

        What is in the kernel's files for the owner's sake hides a change from view, but not from
        the engine's record.
        """
        id_, started = located.container.id, located.container.started_text
        own, asked = self.own.get(id_), self.asked.get(id_, {})
        settings: list[Limits] = [self.made_in(located)]
        if own and not is_told and (own.is_on_record or own.started == started):
            settings.append(own.settings)
        if self.has_raised(located):
            settings.append({"weight": self.raised[id_].since})
        return foreign_settings(self.engine, located, entry, settings, asked, is_told=is_told)

    def has_raised(self, located: LocatedContainer) -> bool:
        """Tell whether a container has the weight to which it was raised."""
        raised, directory = self.raised.get(located.container.id), located.controller("cpu")
        return raised is not None and directory is not None and directory.weight() == raised.since

    def change(self, unchanged: Result, located: LocatedContainer, limits: Limits) -> Result:
        """Change settings of a container and return what became of it."""
        before = self.originals.describe(located, wanted=limits)
        is_new = self.originals.record(before)
        id_ = located.container.id
        with self.writing(located, limits):
            present = only(settings_in_force(located), unchanged.before)
            if differs(unchanged.before, present, located.usable_cpus):  # while that was written
                self._forget(before, is_new)
                return replace(unchanged, status=Status.STALE, error=CHANGED)
            # What fails may yet be done.
            made, asked = self.made.pop(id_, {}), self.asked.pop(id_, {})
            result = self._try(unchanged, located, limits)
            if result.status is Status.APPLIED:
                self.made[id_], self.asked[id_] = made, as_found({**asked, **result.after})
                return result
        return self._revert(result, before, is_new)

    @contextmanager
    def writing(self, located: LocatedContainer, limits: Limits) -> Iterator[None]:
        """Hold up the thread that raises weights while settings are written to the kernel's files:
        a moment. It never waits for what an engine is asked."""
        in_files = names_in_files(self.engine, located)
        with self.lock if limits.keys() <= in_files else nullcontext():
            yield

    def note(self, result: Result, located: LocatedContainer) -> Result:
        """Note the settings of an update that has succeeded, also of one that found them in force,
        unless the container has them for now for its owner's sake. Return its result, which says
        what was reset meanwhile by those that do so unasked."""
        made, cpus = self.made_in(located), located.usable_cpus
        lent = located.container.id in self.own or self.has_raised(located)
        if result.status not in ((Status.APPLIED,) if lent else (Status.APPLIED, Status.UNCHANGED)):
            return result
        reset = unknown_settings(result.before, [made], made.keys() & result.before, cpus)
        self.note_made(located, result.after)
        by_systemd = reset & names_in_files(self.engine, located)
        who = "Swarm" if located.container.service.is_task else "systemd" if by_systemd else ""
        if not reset or not who or result.error:
            return result
        changed = " and ".join(written_name(name) for name in result.before if name in reset)
        error = f"{who}, or somebody, has changed {changed} since dl-apply set it"
        return replace(result, error=error)

    def made_in(self, located: LocatedContainer) -> Settings:
        """Return the settings that this run has made for plans and that a container has still,
        unless somebody has changed them: a restart ends those in the kernel's files alone."""
        container = located.container
        made = self.made.get(container.id, {})
        if self._started.get(container.id) == container.started_text:
            return made
        return only(made, made.keys() - names_in_files(self.engine, located))

    def note_made(self, located: LocatedContainer, settings: Settings) -> None:
        """Note that a container has what plans want of it."""
        container_id = located.container.id
        self.made[container_id] = as_found({**self.made_in(located), **settings})
        self._started[container_id] = located.container.started_text
        own = self.own.pop(container_id, None)
        if own and (left := only(own.settings, own.settings.keys() - settings.keys())):
            self.own[container_id] = replace(own, settings=left)

    def forget(self, container_id: str) -> None:
        """Want nothing more of a container."""
        for settings in (self.made, self.own, self.asked, self.raised, self._started):
            settings.pop(container_id, None)

    def _try(self, result: Result, located: LocatedContainer, limits: Limits) -> Result:
        try:
            is_in_force = partial(are_in_force, self.engine, located, limits)
            needed(self.engine, SetsLimits).set_limits(LimitChange(located, limits, is_in_force))
            return read_back(self.engine, result, located, limits)
        except GoneError:
            return replace(result, status=Status.STALE, error=GONE)
        except UnableError as error:
            return replace(result, error=str(error))
        except RefusedError as error:
            failed = replace(result, status=Status.FAILED, error=str(error))
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
            return ended_meanwhile(self.engine, replace(result, error=reason))
        after = as_found(only(current, result.before))
        if differs(before.settings, current, located.usable_cpus):
            reason = f"{result.error}; some settings could not be reverted"
            return replace(result, after=after, error=reason)
        self._forget(before, is_new)
        return replace(result, after=after)

    def _restored(self, before: Entry) -> LocatedContainer:
        located = self.locator.locate_by_id(before.container_id)
        if is_restored(self.engine, located, before):
            return located
        restore(self.engine, located, before)
        return self.locator.locate_by_id(before.container_id)

    def _forget(self, before: Entry, is_new: bool) -> None:
        if is_new:
            self.originals.forget(before)


def read_back(
    engine: Engine, result: Result, located: LocatedContainer, limits: Mapping[str, Any]
) -> Result:
    """Return a result with the settings that are in force now, and whether they are as wanted."""
    try:
        current = current_settings(engine, located)
    except GoneError:
        return replace(result, status=Status.STALE, error=GONE)
    after = as_found(only(current, limits))
    if differs(limits, after, located.usable_cpus):
        reason = "the engine accepted the change, but other settings are in force"
        return replace(result, status=Status.FAILED, after=after, error=reason)
    return replace(result, status=Status.APPLIED, after=after)
