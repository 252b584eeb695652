"""The settings that containers had before dl-apply first changed them: what goes into the journal,
and what is restored from it. `settings_update` and the actuator record, `undo` restores.

The engine's record and the kernel's files can differ. An engine records a change before the kernel
has taken it, and what the kernel refuses stays on record: it is not seen until the container
restarts, and it fails every update.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any

from dltools.actions.settings import Settings
from dltools.engine.interface import Engine, LocatedContainer
from dltools.engine.journal import Entry, Journal
from dltools.engine.limits import limit_writing
from dltools.engine.limits.cpu_limits import (
    current_settings,
    recorded_settings,
    settings_in_force,
    settings_then,
)
from dltools.engine.parts import LimitChange, Original, SetsLimits, needed
from dltools.engine.runs import UNKNOWN_RUN, ApplyRun
from dltools.notation.limits import CPU_LIMITS, Limits, differs, only, weight_of

_LONGEST_S = 1e9
"""Longest lease (s), about thirty years: later times need not be dates."""


def timestamp(in_s: float = 0.0) -> str:
    """Return the time now, or in so many seconds, as RFC 3339 in UTC, to the second."""
    at = datetime.now(UTC) + timedelta(seconds=min(in_s, _LONGEST_S))
    return at.strftime("%Y-%m-%dT%H:%M:%SZ")


_FEWEST_TO_CHECK = 100
"""Containers that a run has changed when it looks for the first time which are gone (ours)."""


class Originals:
    """Records the containers that one run of dl-apply changes."""

    def __init__(self, engine: Engine, journal: Journal, run: ApplyRun) -> None:
        """`run` may be replaced: entries name the latest one. `is_leased` says whether what it
        changes is to end with it."""
        self.run = run
        self.is_leased = False
        self.changed: set[str] = set()
        self._most = _FEWEST_TO_CHECK
        self._engine = engine
        self._journal = journal

    def describe(
        self, located: LocatedContainer, state: str | None = None, wanted: Limits | None = None
    ) -> Entry:
        """Return a container as it is now. `state` is given where the state is to be changed,
        `wanted` where settings are."""
        container = located.container
        present, kernel = settings_in_force(located), limit_writing.read_files(located)
        if "cpuset" not in self._engine.capabilities.limits:  # it is somebody else's to change
            present.pop("cpuset", None)
            kernel.pop(limit_writing.CPUSET, None)
        return Entry(
            engine=self._engine.id,
            host=self._engine.host,
            container_id=container.id,
            container_name=container.name,
            fields=container.limit_fields,
            settings=present,
            kernel=kernel,
            state=state,
            started=container.started_text if state else "",
            since=timestamp(),
            run=self.run,
            leased_by=self.run if self.is_leased else UNKNOWN_RUN,
            ours=(only(present, wanted), wanted) if wanted else (),
        )

    def record(self, entry: Entry) -> bool:
        """Record a container that is about to be changed, and tell whether it was not recorded yet:
        the journal keeps the first entry."""
        is_new = self._journal.add(entry)
        self.changed.add(entry.container_id)
        return is_new

    def forget(self, entry: Entry) -> None:
        """Forget a container whose change failed and was reverted."""
        self._journal.remove(entry)
        self.changed.discard(entry.container_id)

    def forget_gone(self) -> set[str]:
        """Forget the containers that no longer exist, and return their ids, each time that twice as
        many have been changed: a long stream sees thousands come and go."""
        if len(self.changed) < self._most:
            return set()
        gone = self.changed - self._engine.ids()
        for id_ in gone:
            if entry := self._journal.find(id_):
                self._journal.remove(entry)
        self.changed -= gone
        self._most = max(_FEWEST_TO_CHECK, 2 * len(self.changed))
        return gone


def foreign_settings(
    engine: Engine,
    located: LocatedContainer,
    entry: Entry,
    settings: Sequence[Mapping[str, Any]] = (),
    asked: Settings | None = None,
    *,
    is_told: bool = False,
) -> set[str]:
    """Return the names of the settings that somebody else has changed since dl-apply set them. For
    a task, Swarm does so by itself, so that does not count. Nor do the original settings count
    where nobody keeps a record of what dl-apply has set: a restart puts them back, and so does
    systemd, which writes those of a unit again at each reload.

    `settings`: what the caller's run has set, each setting once or more. It knows that what was
    there before is there no more, so that an owner may have set just that again. `asked`: what it
    has asked the engine for last. `is_told`: the engine has told that somebody changes settings:
    then it was not systemd that put a quota back.
    """
    if located.container.service.is_task:
        return set()
    has_ended = bool(entry.kernel) and located.controller("cpu") is None
    is_recorded = engine.capabilities.keeps and not located.container.files_only
    if not entry.ours or (has_ended and (not is_recorded or "cpu.weight" in entry.kernel)):
        return set()  # version 2 has weights of its own: a record does not tell them apart
    present, is_lost = settings_in_force(located), has_ended or not is_recorded
    lost = frozenset(CPU_LIMITS) if is_lost else limit_writing.names_in_files(engine, located)
    recorded = settings_then(engine, located, entry.fields)
    resets = [only(limits, lost) for limits in (entry.settings, recorded)]
    names, made = present.keys() & entry.names, {name for limits in settings for name in limits}
    if is_lost or (engine.cgroup_driver == "systemd" and not is_told):
        settings = [*settings, *resets]
    cpus = located.usable_cpus
    return (
        unknown_settings(present, settings, names & made, cpus)
        | unknown_settings(present, [*entry.ours, *resets], names - made, cpus)
        | _changed_on_record(engine, located, entry, asked, is_told=is_told)
    )


def _changed_on_record(
    engine: Engine,
    located: LocatedContainer,
    entry: Entry,
    asked: Settings | None = None,
    *,
    is_told: bool = False,
) -> set[str]:
    """Return the names of the settings that somebody else has changed on the engine's record: also
    where dl-apply has written over what is in force since. The record has what the engine was asked
    for, and the owner's settings where dl-apply writes the kernel's files. If the engine has told
    of a change (`is_told`), that may be just what dl-apply had set before."""
    recorded, cpus, changed = recorded_settings(located), located.usable_cpus, set[str]()
    in_files = limit_writing.names_in_files(engine, located)
    if asked and engine.tells_hands and located.cgroup_version == 1:  # many shares are one in v2
        changed = unknown_settings(recorded, [asked], (asked.keys() & entry.names) - in_files, cpus)
    if not engine.capabilities.keeps or located.container.files_only:
        return changed
    settings = [settings_then(engine, located, entry.fields)]
    settings += (entry.settings,) if is_told else entry.ours
    return changed | unknown_settings(recorded, settings, entry.names & in_files, cpus)


def bring_into_force(engine: Engine, located: LocatedContainer, entry: Entry) -> None:
    """Bring into force what somebody else has changed on the engine's record, where dl-apply has
    written over it: it had looked just before. Raises `GoneError` or `RefusedError`."""
    changed, present = _changed_on_record(engine, located, entry), settings_in_force(located)
    if changed - unknown_settings(present, entry.ours, changed, located.usable_cpus):
        needed(engine, limit_writing.WritesLimits).renew(located.container)


def unknown_settings(
    present: Mapping[str, Any],
    known: Iterable[Mapping[str, Any]],
    names: Iterable[str],
    cpus: float,
) -> set[str]:
    """Return those of these names whose present setting is none of those that are known: somebody
    else has made it. `cpus` is how many containers can use."""
    known = list(known)
    return {
        name
        for name in names
        if all(differs({name: limits[name]}, present, cpus) for limits in known if name in limits)
    }


def is_restored(
    engine: Engine, located: LocatedContainer, entry: Entry, names: Collection[str] | None = None
) -> bool:
    """Tell whether a container is as its entry says: the kernel's files where they were visible,
    and the effect of the engine's record; of its settings those of these names (None: all).

    A restart of the container loses what was written to the kernel's files alone.
    """
    if located.container.files_only and located.cgroup is None:
        return True
    is_partial = _has_others(located, entry, names)
    if entry.kernel and not is_partial and not limit_writing.are_original(located, entry.kernel):
        return False
    recorded = recorded_settings(located)
    original = settings_then(engine, located, entry.fields)
    if located.cgroup_version == 2:  # many shares stand for one weight there
        recorded["weight"] = original["weight"]
    if names is None or not is_partial:
        return recorded == original
    settings, limits = only(entry.settings, names), only(recorded, names)
    is_in_force = not differs(settings, settings_in_force(located), located.usable_cpus)
    return is_in_force and limits == only(original, names)


def restore(
    engine: Engine, located: LocatedContainer, entry: Entry, names: Collection[str] | None = None
) -> None:
    """Restore the CPU settings that an entry holds, or those of these names.

    Raises `GoneError` or `RefusedError`.
    """
    if names is not None and _has_others(located, entry, names):
        original = entry.settings
        if located.controller("cpu") is None:  # the record alone counts, and has its own scale
            original = {**original, **settings_then(engine, located, entry.fields)}
        if settings := only(original, names):
            is_in_force = partial(are_in_force, engine, located, settings)
            needed(engine, SetsLimits).set_limits(LimitChange(located, settings, is_in_force))
        return
    limits: Limits = {"weight": weight_of(entry.settings)}
    if _has_lost_cpu_list(located, entry):
        limits["cpuset"] = entry.settings["cpuset"]
    has_its_weight = partial(_has_its_weight, located, entry)
    before = Original(entry.fields, entry.kernel)
    change = LimitChange(located, limits, has_its_weight, before)
    needed(engine, SetsLimits).set_limits(change)


def _has_others(located: LocatedContainer, entry: Entry, names: Collection[str] | None) -> bool:
    """Tell whether settings of other names than these are not as an entry says: they are somebody
    else's, and stay."""
    if names is None:
        return False
    others = {name: value for name, value in entry.settings.items() if name not in names}
    present = settings_in_force(located)
    return differs(only(others, present), present, located.usable_cpus)


def are_in_force(engine: Engine, located: LocatedContainer, settings: Limits) -> bool:
    """Tell whether settings are in force now. Raises `GoneError` or `RefusedError`."""
    return not differs(settings, current_settings(engine, located), located.usable_cpus)


def _has_its_weight(located: LocatedContainer, entry: Entry) -> bool:
    """Tell whether the weight in force is an entry's, as far as anybody knows. A quota may yet
    differ: one of all CPUs may stand for none."""
    directory = located.controller("cpu")
    weight = directory.weight() if directory else None
    return weight in (None, weight_of(entry.settings))


def _has_lost_cpu_list(located: LocatedContainer, entry: Entry) -> bool:
    """Tell whether the CPU list of an entry must be set: it is known, and not as it was."""
    if "cpuset" not in entry.settings:
        return False
    original, recorded = entry.settings["cpuset"], recorded_settings(located)["cpuset"]
    return not settings_in_force(located).get("cpuset") == recorded == original
