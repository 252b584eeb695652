"""The own settings of containers, which they have again while somebody is at work in them.

They are what the owner asked for, and a weight as large beside those in force as the container's
own is beside the others' own. So nobody waits longer than without dltools.
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress

from dltools.actions.plans import Result, Status
from dltools.actions.settings import as_found
from dltools.apply.original_settings import foreign_settings
from dltools.apply.refusals import has_processes
from dltools.apply.settings_update import OwnersOwn, Raised, SettingsUpdate
from dltools.engine.interface import GoneError, LocatedContainer, RefusedError
from dltools.engine.journal import Journal
from dltools.engine.kernel_scales import MOST_SHARES
from dltools.engine.limits import limit_writing
from dltools.engine.limits.cpu_limits import attainable_settings, settings_in_force
from dltools.notation.limits import Limits, differs, only, weight_of


class OwnSettings:
    """Gives the containers of one engine their own settings for a while.

    It writes the kernel's files where they are here. An engine answers no request on a container in
    which a command is about to begin, and at a low weight that alone takes minutes.
    """

    def __init__(self, journal: Journal, update: SettingsUpdate) -> None:
        self._journal = journal
        self._update = update
        self._seen: dict[str, LocatedContainer] = {}
        self._before: dict[str, Limits] = {}
        self._later: dict[str, Limits] = {}

    def see(self, located: LocatedContainer) -> None:
        """Keep in mind where a container is whose settings plans change."""
        self._seen[located.container.id] = located

    def seen(self) -> list[LocatedContainer]:
        """Return the containers whose settings plans change."""
        return list(self._seen.values())

    def raise_weight(self, container_id: str) -> None:
        """Give a container its own weight now, in the kernel's file, if it has less by dl-apply.
        The thread of the events calls this: the one that calls `give` may be waiting for the answer
        of an engine that gives none while a command begins in the container."""
        located, entry = self._seen.get(container_id), self._journal.find(container_id)
        directory = located.controller("cpu") if located else None
        if located is None or directory is None or entry is None or "weight" not in entry.names:
            return
        own = self._weight_beside_others(container_id, weight_of(entry.settings))
        with self._update.lock:
            present, is_ours = directory.weight(), {weight_of(limits) for limits in entry.ours}
            if present is None or present >= own or present not in is_ours:
                return
            if self._journal.add_ours(container_id, {"weight": own}):
                self._update.raised[container_id] = Raised(present, own, weight_of(entry.settings))
                self._write_weight(located, own)
                if self._journal.find(container_id) is None:  # it was restored meanwhile
                    self._write_weight(located, weight_of(entry.settings))

    def lower(self, ids: Iterable[str]) -> None:
        """Give containers the weight again that they had before it was raised, for somebody who has
        left since."""
        for id_ in ids:
            located = self._seen.get(id_)
            with self._update.lock:
                is_raised = located is not None and self._update.has_raised(located)
                raised = self._update.raised.pop(id_, None)
                if located is not None and raised is not None and is_raised:
                    is_changed = self._journal.find(id_) is not None
                    self._write_weight(located, raised.before if is_changed else raised.own)

    def _write_weight(self, located: LocatedContainer, weight: float) -> None:
        with suppress(OSError):
            limit_writing.write_settings(located, {"weight": weight})

    def give(self, container_id: str) -> None:
        """Give a container its own settings, if it has those of dl-apply."""
        with suppress(GoneError, RefusedError):
            entry = self._journal.find(container_id)
            if entry is None:
                return
            located = self._located(container_id)
            made, present = self._update.made_in(located), settings_in_force(located)
            foreign = foreign_settings(self._update.engine, located, entry, [made])
            if self._update.has_raised(located):
                present["weight"] = self._update.raised[container_id].before
                foreign -= {"weight"}
            self._update.raised.pop(container_id, None)
            own = only(entry.settings, entry.names - foreign)
            if "weight" in own:
                own["weight"] = self._weight_beside_others(container_id, own["weight"])
            self._before[container_id] = only(present, own)
            started = located.container.started_text
            owned = self._update.own[container_id] = OwnersOwn(own, started)
            owned.is_on_record = self._set(located, own)

    def defer(self, container_id: str, limits: Limits) -> None:
        """Keep in mind what a plan wants of a container that has its own settings for now. Of
        another one the next plan will ask again."""
        if container_id in self._before:
            self._later.setdefault(container_id, {}).update(limits)

    def take_back(self, container_id: str) -> None:
        """Give a container what plans want of it, but for what somebody else has changed since."""
        before = self._before.pop(container_id, {})
        later = self._later.pop(container_id, {})
        with suppress(GoneError, RefusedError):
            entry = self._journal.find(container_id) if before else None
            if entry is None:
                return
            located = self._update.locator.locate_by_id(container_id)
            ours = entry.names - self._update.foreign(located, entry)
            limits = only(before, ours)
            limits.update(only(later, ours | (later.keys() - before.keys())))
            is_set = self._ask(located, limits) if later else self._set(located, limits)
            if is_set or not differs(limits, settings_in_force(located), located.usable_cpus):
                self._update.note_made(located, as_found(limits))

    def forget(self, container_id: str) -> None:
        """Want nothing more of a container."""
        for by_id in (self._seen, self._before, self._later):
            by_id.pop(container_id, None)

    def _located(self, container_id: str) -> LocatedContainer:
        located = self._seen.get(container_id)
        if located is None or located.cgroup is None or not located.cgroup.exists:
            located = self._update.locator.locate_by_id(container_id)
        return located

    def _set(self, located: LocatedContainer, settings: Limits) -> bool:
        """Set limits, and tell whether the engine has, so that its record has them too."""
        limits, present = attainable_settings(located, settings), settings_in_force(located)
        if not differs(limits, present, located.usable_cpus):
            return False
        if located.controller("cpu") is None:
            return self._ask(located, limits)
        originals = self._update.originals
        originals.record(originals.describe(located, wanted=limits))
        try:
            with self._update.lock:
                limit_writing.write_settings(located, limits)
        except OSError:
            return self._ask(located, limits)
        return False

    def _ask(self, located: LocatedContainer, limits: Limits) -> bool:
        """Have the engine set limits, and tell whether it has."""
        container = located.container
        if not has_processes(container):
            return False
        before = as_found(settings_in_force(located))
        result = Result(0, Status.SKIPPED, container.id, container.name, before, before)
        return self._update.change(result, located, limits).status is Status.APPLIED

    def _weight_beside_others(self, container_id: str, own: float) -> float:
        """Return a weight that is to those in force as a container's own is to the others' own."""
        most = 1.0
        for other, settings in self._update.made.copy().items():
            entry = self._journal.find(other) if other != container_id else None
            if entry is not None:
                most = max(most, weight_of(settings) / weight_of(entry.settings))
        return float(min(MOST_SHARES, round(own * most)))
