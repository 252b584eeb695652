"""People at work on containers: they come before every plan.

The engine's events tell of commands that are run in a container, of signals and of whoever attaches
to it. While somebody is at it, a container has its own settings: what its owner asked for, and a
weight as large beside those in force as its own is beside the others' own. So nobody waits longer
than without dltools. It also runs, whosever turn it is.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress

from dltools.apply.original_settings import foreign_settings
from dltools.apply.refusals import has_processes
from dltools.apply.settings_update import OwnersOwn, SettingsUpdate
from dltools.engine.interface import Event, GoneError, LocatedContainer, RefusedError
from dltools.engine.journal import Journal
from dltools.engine.limits import limit_files
from dltools.engine.limits.cpu_limits import attainable_settings, settings_in_force
from dltools.engine.scales import MOST_SHARES
from dltools.notation.cpu_weights import DEFAULT_CPU_WEIGHT
from dltools.notation.limits import Limits, differs, only
from dltools.plan.outcome.records import Result, Status
from dltools.plan.realisation.settings import Settings, as_found

LASTS_S: Mapping[str, float] = {"enter": 60.0, "attach": 10.0, "signal": 600.0}
"""How long somebody counts as being at work at most (ours): a command that goes on trains, and is
part of the job; nobody says when one who attaches has left; a stop may be given minutes to save."""

AT_WORK = "somebody is at work in it: it keeps its own settings until then"


class Attendance:
    """At which containers somebody is, and until when at the latest. Times are arguments (s)."""

    def __init__(self) -> None:
        self._until: dict[tuple[str, str], float] = {}

    def note(self, event: Event, now: float) -> None:
        """Take note of an event."""
        id_ = event.container_id
        if event.action in ("start", "exit", "remove"):
            self._until = {key: at for key, at in self._until.items() if key[0] != id_}
        elif event.hand == "leave":
            self._until.pop((id_, event.hand_id), None)
        elif event.hand:
            self._until[id_, event.hand_id or event.hand] = now + LASTS_S[event.hand]

    def attended(self, now: float) -> frozenset[str]:
        """Return the ids of the containers at which somebody is."""
        self._until = {key: at for key, at in self._until.items() if at > now}
        return frozenset(id_ for id_, _ in self._until)

    def next_end(self) -> float | None:
        """Return when somebody has been there for long enough, None if nobody is."""
        return min(self._until.values(), default=None)


class OwnSettings:
    """Gives the containers of one engine their own settings for a while.

    It writes the kernel's files where they are here. An engine takes no request on a container in
    which a command is about to begin, and at a low weight that alone takes many seconds.
    """

    def __init__(self, journal: Journal, update: SettingsUpdate) -> None:
        self._journal = journal
        self._update = update
        self._seen: dict[str, LocatedContainer] = {}
        self._before: dict[str, Limits] = {}
        self._later: dict[str, Limits] = {}

    def see(self, located: LocatedContainer) -> None:
        """Keep in mind where a container is whose settings are changed."""
        self._seen[located.container.id] = located

    def give(self, container_id: str) -> None:
        """Give a container its own settings, if it has those of dl-apply."""
        with suppress(GoneError, RefusedError):
            entry = self._journal.find(container_id)
            if entry is None:
                return
            located = self._located(container_id)
            made = self._update.made_in(located)
            foreign = foreign_settings(self._update.engine, located, entry, [made])
            own = only(entry.settings, entry.names - foreign)
            if "weight" in own:
                own["weight"] = self._weight_beside_others(container_id, own["weight"])
            self._before[container_id] = only(settings_in_force(located), own)
            started = located.container.started_text
            found = self._update.own[container_id] = OwnersOwn(own, started)
            found.is_on_record = self._set(located, own)

    def defer(self, container_id: str, wanted: Limits) -> None:
        """Keep in mind what a plan wants of a container that has its own settings for now. Of
        another one the next plan will ask again."""
        if container_id in self._before:
            self._later.setdefault(container_id, {}).update(wanted)

    def take_back(self, container_id: str) -> None:
        """Give a container what plans want of it, but for what somebody else has changed since."""
        before = self._before.pop(container_id, {})
        later = self._later.pop(container_id, {})
        with suppress(GoneError, RefusedError):
            entry = self._journal.find(container_id) if before else None
            if entry is None:
                return
            located = self._update.locator.find(container_id)
            ours = entry.names - self._update.foreign(located, entry)
            later = only(later, ours | (later.keys() - before.keys()))
            before = only(before, ours)
            self._set(located, before)
            if not differs(before, settings_in_force(located), located.usable_cpus):
                self._update.note_made(located, as_found(before))
            located = self._update.locator.find(container_id)
            if later and self._ask(located, later):
                self._update.note_made(located, as_found(later))

    def forget(self, container_id: str) -> None:
        """Want nothing more of a container."""
        for known in (self._seen, self._before, self._later):
            known.pop(container_id, None)

    def _located(self, container_id: str) -> LocatedContainer:
        located = self._seen.get(container_id)
        if located is None or located.cgroup is None or not located.cgroup.exists:
            located = self._update.locator.find(container_id)
        return located

    def _set(self, located: LocatedContainer, settings: Limits) -> bool:
        """Set limits, and tell whether the engine has, so that its record has them too."""
        wanted, present = attainable_settings(located, settings), settings_in_force(located)
        if not differs(wanted, present, located.usable_cpus):
            return False
        if located.controller("cpu") is None:
            return self._ask(located, wanted)
        originals = self._update.originals
        originals.record(originals.describe(located, wanted=wanted))
        try:
            limit_files.write_settings(located, wanted)
        except OSError:
            return self._ask(located, wanted)
        return False

    def _ask(self, located: LocatedContainer, wanted: Limits) -> bool:
        """Have the engine set limits, and tell whether it has."""
        container = located.container
        if not has_processes(container):
            return False
        before = as_found(settings_in_force(located))
        found = Result(0, Status.SKIPPED, container.id, container.name, before, before)
        return self._update.change(found, located, wanted).status is Status.APPLIED

    def _weight_beside_others(self, container_id: str, own: float) -> float:
        """Return a weight that is to those in force as a container's own is to the others' own."""
        most = 1.0
        for other, settings in self._update.made.items():
            entry = self._journal.find(other) if other != container_id else None
            if entry is not None:
                most = max(most, _weight(settings) / _weight(entry.settings))
        return float(min(MOST_SHARES, round(own * most)))


def _weight(settings: Settings | Limits) -> float:
    return float(settings.get("weight", DEFAULT_CPU_WEIGHT))
