"""People at work on containers: they come before every plan.

The engine's events tell of commands that are run in a container, of signals and of whoever attaches
to it. While somebody is at it, a container has its own settings: what its owner asked for, and a
weight as large beside those in force as its own is beside the others' own. So nobody waits longer
than without dltools. It also runs, whosever turn it is.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress

from dltools.apply.original_settings import Journal, foreign_settings
from dltools.apply.refusals import has_processes
from dltools.apply.settings_update import SettingsMade, SettingsUpdate
from dltools.engine.interface import CpuLimits, Event, GoneError, RefusedError
from dltools.engine.limits.cpu_limits import Locator, attainable_settings, settings_in_force
from dltools.engine.scales import MOST_SHARES
from dltools.notation.cpu_weights import DEFAULT_CPU_WEIGHT
from dltools.plan.realisation.settings import Settings, as_found, differs, only
from dltools.plan.records import Result, Status

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
    """Gives the containers of one engine their own settings for a while."""

    def __init__(
        self, journal: Journal, locator: Locator, update: SettingsUpdate, made: SettingsMade
    ) -> None:
        """`made` are the settings that this run has made."""
        self._journal = journal
        self._locator = locator
        self._update = update
        self._made = made
        self._later: dict[str, CpuLimits] = {}

    def give(self, container_id: str) -> None:
        """Give a container its own settings, if it has those of dl-apply."""
        with suppress(GoneError, RefusedError):
            entry = self._journal.find(container_id)
            if entry is None:
                return
            located = self._locator.find(container_id)
            foreign = foreign_settings(self._update.engine, located, entry)
            own = only(entry.settings, entry.names - foreign)
            if "cpu_weight" in own:
                own["cpu_weight"] = self._weight_beside_others(container_id, own["cpu_weight"])
            present = only(settings_in_force(located), own)
            self._later.setdefault(container_id, {**present})
            self._set(container_id, own)

    def defer(self, container_id: str, wanted: CpuLimits) -> None:
        """Keep in mind what a plan wants of a container that has its own settings for now. Of
        another one the next plan will ask again."""
        if container_id in self._later:
            self._later[container_id].update(wanted)

    def take_back(self, container_id: str) -> None:
        """Give a container what plans want of it, but for what somebody else has changed since."""
        wanted = self._later.pop(container_id, {})
        with suppress(GoneError, RefusedError):
            entry = self._journal.find(container_id) if wanted else None
            if entry is not None:
                located = self._locator.find(container_id)
                foreign = foreign_settings(self._update.engine, located, entry)
                self._set(container_id, only(wanted, wanted.keys() - foreign))

    def forget(self, container_id: str) -> None:
        """Want nothing more of a container."""
        self._later.pop(container_id, None)

    def _set(self, container_id: str, settings: CpuLimits) -> None:
        located = self._locator.find(container_id)
        wanted, present = attainable_settings(located, settings), settings_in_force(located)
        if not has_processes(located.container) or not differs(
            wanted, present, located.usable_cpus
        ):
            return
        before = as_found(only(present, wanted))
        name = located.container.name
        found = Result(0, Status.SKIPPED, container_id, name, before=before, after=before)
        self._made.add(self._update.apply(found, located, wanted), located)

    def _weight_beside_others(self, container_id: str, own: float) -> float:
        """Return a weight that is to those in force as a container's own is to the others' own."""
        most = 1.0
        for other, settings in self._made.all().items():
            entry = self._journal.find(other) if other != container_id else None
            if entry is not None:
                most = max(most, _weight(settings) / _weight(entry.settings))
        return float(min(MOST_SHARES, round(own * most)))


def _weight(settings: Settings | CpuLimits) -> float:
    return float(settings.get("cpu_weight", DEFAULT_CPU_WEIGHT))
