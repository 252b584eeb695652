"""People at work on containers: they come before every plan.

While somebody is at it, a container has its own settings, and it runs, whosever turn it is. What
somebody else has changed of a plan's settings is theirs from then on.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterable
from contextlib import suppress

from dltools.apply.attendance import Attendance, Hearing
from dltools.apply.left_alone import HandsOff
from dltools.apply.own_settings import OwnSettings
from dltools.apply.refusals import FOREIGN, SIGNALLED, UPDATED
from dltools.apply.settings_update import SettingsUpdate
from dltools.apply.turns import Rotation
from dltools.engine.interface import Container, GoneError, LocatedContainer, RefusedError
from dltools.engine.journal import Journal
from dltools.engine.limits.cpu_limits import settings_in_force
from dltools.notation.limits import Limits, differs

AT_WORK = "somebody is at work in it: it keeps its own settings until then"

_HEEDS_S = 1.0
"""How soon a release is noticed (ours)."""


class Hands:
    """What people do to the containers of one engine, as it tells, and what follows from that."""

    def __init__(
        self,
        journal: Journal,
        rotation: Rotation,
        update: SettingsUpdate,
        hands_off: HandsOff,
        undo: Callable[[Collection[str]], object],
    ) -> None:
        """`undo` restores the containers with some ids. `hearing` is closed by whoever is done."""
        self._journal = journal
        self._rotation = rotation
        self._update = update
        self._hands_off = hands_off
        self._undo = undo
        self._attendance = Attendance()
        self._at_work: frozenset[str] = frozenset()
        self._own = OwnSettings(journal, update)
        self._in_turns: dict[str, Limits] = {}  # of those that take turns, when last set
        self.hearing = Hearing(update.engine, rotation, self._own)
        rotation.on_hand = hands_off.leave_until_started

    def attend(self, wake: Callable[[], None]) -> None:
        """Hear from the engine what people do, and do what they need. `wake` is called, in another
        thread, when there is more to do."""
        has_changed = self.hearing.has_any or bool(self._update.originals.changed)
        if has_changed or self._rotation.has_turns:
            self.hearing.begin(wake)
        self.heed()

    def heed(self) -> None:
        """Do what people at work on containers need, by what has been heard since the last call."""
        rotation, raised = self._rotation, set(self._update.raised)
        self._take_events()
        for record in self._hands_off.take_new():
            rotation.drop(record.container_id, record.why)
            if self._journal.find(record.container_id):
                self._hands_off.names[record.container_id, record.why] = record.container_name
                self._undo([record.container_id])
                self.forget(record.container_id)
        at_work = self._attendance.attended(time.monotonic())
        rotation.attended = at_work
        for id_ in at_work - self._at_work:
            self._own.give(id_)
        for id_ in self._at_work - at_work:
            self._own.take_back(id_)
        self._own.lower(raised - at_work)
        if at_work != self._at_work:
            rotation.look()
        self._at_work = at_work

    def seconds_until_due(self) -> float | None:
        """Return how long until `attend` has something to do, None if it never has."""
        end = self._attendance.next_end()
        due = [] if end is None else [max(0.0, end - time.monotonic())]
        if self._update.originals.changed:
            due.append(_HEEDS_S)
        return min(due, default=None)

    def _take_events(self) -> None:
        """Take note of what the engine has told."""
        now = time.monotonic()
        self._rotation.touched.clear()
        for event in self.hearing.take():
            self._attendance.note(event, now)
            self._rotation.note_event(event)
            id_ = event.container_id
            if event.action == "start":
                self._in_turns.pop(id_, None)
                self._hands_off.note_start(id_)
            elif event.hand == "signal":
                self._rotation.drop(id_, SIGNALLED)
            elif event.action == "update" and not self._update.engine.requests.is_own(event):
                with suppress(GoneError, RefusedError):
                    self._note_update(self._update.locator.locate_by_id(id_))

    def _note_update(self, located: LocatedContainer) -> None:
        """Take note that somebody else has updated a container. While it has its own settings for
        somebody's sake, its owner may have set just these, so they are not this run's any more."""
        id_ = located.container.id
        if id_ in self._in_turns:
            self.have_changed_in_turns(located)
            return
        entry = self._journal.find(id_)
        others = self._update.foreign(located, entry, is_told=True) if entry else set()
        if others and not self._hands_off.is_forced:
            self._leave_to_others(located.container)

    def have_changed_in_turns(self, located: LocatedContainer) -> bool:
        """Tell whether somebody has changed settings of a container that takes turns, which it does
        no longer then."""
        id_, present = located.container.id, settings_in_force(located)
        if not differs(self._in_turns.setdefault(id_, present), present, located.usable_cpus):
            return False
        self._in_turns.pop(id_)
        self._rotation.drop(id_, UPDATED)
        return True

    def have_changed(self, located: LocatedContainer, names: Iterable[str]) -> bool:
        """Tell whether somebody else has changed settings of these names in a container. Then what
        this run has set there besides is restored."""
        is_forced = self._hands_off.is_forced
        entry = None if is_forced else self._journal.find(located.container.id)
        if entry is None or not self._update.foreign(located, entry).intersection(names):
            return False
        self._leave_to_others(located.container)
        return True

    def see(self, located: LocatedContainer) -> None:
        """Look after a container if it has settings by a plan, maybe by one of an earlier run."""
        if self._journal.find(located.container.id) is not None:
            self.hearing.add(located)

    def defer(self, located: LocatedContainer, limits: Limits) -> bool:
        """Tell whether somebody is at work in a container. Then it gets what a plan wants of it
        later."""
        id_ = located.container.id
        if id_ in self._at_work or self._update.has_raised(located):
            self._own.defer(id_, limits)
            return True
        self._in_turns.pop(id_, None)
        self.hearing.add(located)
        return False

    def _leave_to_others(self, container: Container) -> None:
        """Leave a container alone of which somebody else has changed settings, and restore what
        this run has set there besides."""
        self._hands_off.leave(container, FOREIGN)
        if not self._hands_off.dry_run:
            self._undo([container.id])
            self.forget(container.id)

    def forget(self, container_id: str) -> None:
        """Want nothing more of a container."""
        self._update.forget(container_id)
        self._own.forget(container_id)

    def lower(self) -> None:
        """Give restored containers their own weight that were raised meanwhile."""
        self._own.lower(set(self._update.raised))

    def release(self) -> None:
        """Want nothing more of all containers that were changed, until the next plan."""
        self._in_turns.clear()
        for id_ in self._update.originals.changed:
            self._own.forget(id_)
