"""People at work on containers: they come before every plan.

The engine's events tell of commands that are run in a container, of signals and of whoever attaches
to it. While somebody is at it, a container has its own settings: what its owner asked for, and a
weight as large beside those in force as its own is beside the others' own. So nobody waits longer
than without dltools. It also runs, whosever turn it is.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from datetime import UTC, datetime
from functools import partial

from dltools.apply.original_settings import foreign_settings
from dltools.apply.refusals import FOREIGN, PAUSED_ELSEWHERE, SIGNALLED, UPDATED, has_processes
from dltools.apply.settings_update import OwnersOwn, Raised, SettingsUpdate
from dltools.apply.turn_order import Turn
from dltools.apply.turns import Rotation
from dltools.engine.event_feed import EventFeed
from dltools.engine.freeze_watch import FreezeWatch
from dltools.engine.interface import (
    Container,
    Engine,
    Event,
    GoneError,
    LocatedContainer,
    RefusedError,
)
from dltools.engine.journal import Entry, Journal
from dltools.engine.left_alone import LeftAlone, LeftAloneRecords
from dltools.engine.limits import limit_files
from dltools.engine.limits.cpu_limits import attainable_settings, settings_in_force
from dltools.engine.links import own_records
from dltools.engine.scales import MOST_SHARES
from dltools.notation.cpu_weights import DEFAULT_CPU_WEIGHT
from dltools.notation.limits import Limits, differs, only
from dltools.plan.outcome.records import Result, Status
from dltools.plan.realisation.settings import Settings, as_found

LASTS_S: Mapping[str, float] = {"enter": 60.0, "attach": 10.0, "signal": 600.0, "freeze": 5.0}
"""How long somebody counts as being at work at most (ours): a command that goes on trains, and is
part of the job; nobody says when one who attaches has left; a stop may be given minutes to save;
a pause takes milliseconds."""

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
        elif event.action == "pause":
            self._until.pop((id_, "freeze"), None)
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

    def hear(self, wake: Callable[[], None], event: Event) -> None:
        """Do what cannot wait until `give` is called, then call `wake`. The thread of the events
        calls this: the one that calls `give` may be waiting for the answer of an engine that gives
        none while a command begins in the container."""
        try:
            if event.hand in LASTS_S:
                self._raise_weight(event.container_id)
        finally:
            wake()

    def _raise_weight(self, container_id: str) -> None:
        """Give a container its own weight now, in the kernel's file, if it has less by dl-apply."""
        located, entry = self._seen.get(container_id), self._journal.find(container_id)
        directory = located.controller("cpu") if located else None
        if located is None or directory is None or entry is None or "weight" not in entry.names:
            return
        own = self._weight_beside_others(container_id, _weight(entry.settings))
        with self._update.lock:
            present, is_ours = directory.weight(), {_weight(limits) for limits in entry.ours}
            if present is None or present >= own or present not in is_ours:
                return
            if self._journal.add_ours(container_id, {"weight": own}):
                self._update.raised[container_id] = Raised(present, own, _weight(entry.settings))
                self._write_weight(located, own)
                if self._journal.find(container_id) is None:  # it was restored meanwhile
                    self._write_weight(located, _weight(entry.settings))

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
            limit_files.write_settings(located, {"weight": weight})

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
            wanted = only(before, ours)
            wanted.update(only(later, ours | (later.keys() - before.keys())))
            is_set = self._ask(located, wanted) if later else self._set(located, wanted)
            if is_set or not differs(wanted, settings_in_force(located), located.usable_cpus):
                self._update.note_made(located, as_found(wanted))

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
            with self._update.lock:
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
        result = Result(0, Status.SKIPPED, container.id, container.name, before, before)
        return self._update.change(result, located, wanted).status is Status.APPLIED

    def _weight_beside_others(self, container_id: str, own: float) -> float:
        """Return a weight that is to those in force as a container's own is to the others' own."""
        most = 1.0
        for other, settings in self._update.made.copy().items():
            entry = self._journal.find(other) if other != container_id else None
            if entry is not None:
                most = max(most, _weight(settings) / _weight(entry.settings))
        return float(min(MOST_SHARES, round(own * most)))


def _weight(settings: Settings | Limits) -> float:
    return float(settings.get("weight", DEFAULT_CPU_WEIGHT))


class HandsOff:
    """Which containers are left alone, and why, by the records that all runs make.

    `names`: the names of those that this run leaves alone, by id and reason. `is_forced`: what
    others have changed is no reason.
    """

    def __init__(
        self, engine: Engine, records: LeftAloneRecords, *, is_forced: bool, dry_run: bool
    ) -> None:
        self.names: dict[tuple[str, str], str] = {}
        self.is_forced = is_forced
        self._engine = engine
        self._records = records
        self._recorded: frozenset[str] = frozenset()
        self.dry_run = dry_run

    def why(self, container: Container) -> str | None:
        """Return why no plan may touch a container, None if one may."""
        why = self._records.why(self._engine, container)
        if why != FOREIGN or not self.is_forced:
            return why
        self.end_foreign(container.id)
        return None

    def leave(self, container: Container, why: str) -> None:
        """Leave a container alone, until it is started again."""
        self.names[container.id, why] = container.name
        if not self.dry_run:
            engine, started = self._engine, container.started_text
            record = LeftAlone(engine.id, engine.host, container.id, container.name, why, started)
            self._records.write(record)

    def leave_until_started(self, turn: Turn, why: str) -> None:
        """Leave a container alone that has taken turns, until it is started again."""
        why = f"{why}: left alone until it is started again"
        self.names[turn.container_id, why] = turn.name
        with suppress(GoneError, RefusedError):
            self.leave(self._engine.inspect(turn.container_id), why)

    def end_foreign(self, container_id: str) -> None:
        """Where that is forced, leave a container alone no longer since somebody has changed it."""
        left = self._records.find(container_id) if self.is_forced else None
        if left is not None and left.why == FOREIGN and not self.dry_run:
            self._records.remove(left)

    def note_start(self, container_id: str) -> None:
        """Leave a container alone no longer that has started, if it was left until then."""
        if (record := self._records.find(container_id)) and record.started:
            self._records.remove(record)  # it may have been made after this start

    def take_new(self) -> list[LeftAlone]:
        """Return the records if there are other ones than at the last call; none in a dry run."""
        names = self._records.names()
        if self.dry_run or names == self._recorded:
            return []
        self._recorded = names
        records = own_records(self._engine, self._records.readable())
        return list({record.container_id: record for record in records}.values())

    def note_pause(self, container: Container, entry: Entry | None) -> None:
        """Note a paused container if somebody else has paused it. A dry run, which leaves paused
        what an earlier run has left so, cannot tell."""
        if not self.dry_run and (entry is None or entry.state is None):
            self.names[container.id, PAUSED_ELSEWHERE] = container.name

    def forget(self, container_id: str) -> None:
        """Forget a container that is gone."""
        self.names = {key: name for key, name in self.names.items() if key[0] != container_id}


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
        undo: Callable[[Iterable[str]], object],
    ) -> None:
        """`undo` restores the containers with some ids."""
        self._journal = journal
        self._rotation = rotation
        self._update = update
        self._hands_off = hands_off
        self._undo = undo
        self._attendance = Attendance()
        self._at_work: frozenset[str] = frozenset()
        self._own = OwnSettings(journal, update)
        self._in_turns: dict[str, Limits] = {}  # of those that take turns, when last set
        self._begun = time.time()
        self._is_used = False
        self._feed: EventFeed | None = None
        self._freezes: FreezeWatch | None = None
        rotation.on_hand = hands_off.leave_until_started

    def attend(self, wake: Callable[[], None]) -> None:
        """Hear from the engine what people do, and do what they need. `wake` is called, in another
        thread, when there is more to do."""
        engine = self._update.engine
        is_used = self._is_used or bool(self._update.originals.changed) or self._rotation.has_turns
        if self._feed is None and engine.tells_hands and is_used:
            self._feed = EventFeed(engine, self._begun, partial(self._hear, wake))
            self._freezes = FreezeWatch(partial(self._hear_freeze, self._feed))
            for located in self._own.seen():
                self._freezes.add(located.container.id, located.controller("freezer"))
        self.heed()

    def _hear_freeze(self, feed: EventFeed, container_id: str) -> None:
        """Hear that somebody pauses a container. Those that take turns are paused by this run."""
        if self._rotation.turn_of(container_id) is None:
            feed.tell(Event(container_id, "", "", datetime.now(UTC), hand="freeze"))

    def _hear(self, wake: Callable[[], None], event: Event) -> None:
        """Note in the thread of the events what cannot wait until it is heeded."""
        if event.hand in LASTS_S or event.action == "update":
            self._rotation.touched.add(event.container_id)
        self._own.hear(wake, event)

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

    def close(self) -> None:
        """Hear no more of the engine."""
        for follower in (self._feed, self._freezes):
            if follower is not None:
                follower.close()

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
        for event in self._feed.take() if self._feed else ():
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
                    self._note_update(self._update.locator.find(id_))

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
            self._is_used = True
            self._look_after(located)

    def _look_after(self, located: LocatedContainer) -> None:
        self._own.see(located)
        if self._freezes is not None:
            self._freezes.add(located.container.id, located.controller("freezer"))

    def defer(self, located: LocatedContainer, wanted: Limits) -> bool:
        """Tell whether somebody is at work in a container. Then it gets what a plan wants of it
        later."""
        id_ = located.container.id
        if id_ in self._at_work or self._update.has_raised(located):
            self._own.defer(id_, wanted)
            return True
        self._in_turns.pop(id_, None)
        self._look_after(located)
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
