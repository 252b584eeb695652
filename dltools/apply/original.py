"""The original settings of containers: recorded before the first change, and restored.

The engine's record and the kernel's files can differ. An engine records a change before the kernel
has taken it, and what the kernel refuses stays on record: it is not seen until the container
restarts, and it fails every update.
"""

from __future__ import annotations

from contextlib import suppress

from dltools.apply.journal import Entry, Journal, timestamp
from dltools.engine.interface import CpuLimits, Engine, GpuAccess, LocatedContainer
from dltools.engine.limits import limit_files
from dltools.engine.limits.cpu_limits import recorded_settings, settings_in_force
from dltools.engine.runs import UNKNOWN_RUN, ApplyRun
from dltools.observations.schema import DEFAULT_CPU_WEIGHT
from dltools.plan.realisation.settings import differs

_FEWEST_TO_CHECK = 100
"""Containers that a run has changed when it looks for the first time which are gone (ours)."""


class Originals:
    """Records the containers that one run of dl-apply changes."""

    def __init__(self, engine: Engine, journal: Journal, run: ApplyRun) -> None:
        """Nothing is recorded yet. `run` may be replaced: entries name the latest one. `is_leased`
        says whether what it changes is to end with it."""
        self.run = run
        self.is_leased = False
        self.changed: set[str] = set()
        self._most = _FEWEST_TO_CHECK
        self._engine = engine
        self._journal = journal

    def describe(
        self, located: LocatedContainer, state: str | None = None, wanted: CpuLimits | None = None
    ) -> Entry:
        """Return a container as it is now. `state` is given where the state is to be changed,
        `wanted` where settings are."""
        container = located.container
        present = settings_in_force(located)
        # A restart loses what was written to the kernel's files alone.
        is_lasting = wanted is not None and container.gpu is not GpuAccess.FRAGILE
        return Entry(
            engine=self._engine.id,
            container_id=container.id,
            container_name=container.name,
            fields=container.limit_fields,
            settings=present,
            kernel=limit_files.read_files(located),
            state=state,
            started=container.started_text if state else "",
            since=timestamp(),
            run=self.run,
            leased_by=self.run if self.is_leased else UNKNOWN_RUN,
            ours=(present, {**present, **(wanted or {})}) if is_lasting else (),
            host=self._engine.host,
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


def is_foreign(located: LocatedContainer, entry: Entry) -> bool:
    """Tell whether somebody else has changed the settings of a container since dl-apply did. Swarm
    does so by itself with its tasks: that is nobody's wish."""
    if located.container.is_task:
        return False
    if not entry.ours or (entry.kernel and located.controller("cpu") is None):
        return False
    present = settings_in_force(located)
    names = {name for ours in entry.ours for name in ours}
    return any(
        all(
            differs({name: ours.get(name)}, present, located.usable_cpus)
            for ours in entry.ours
            if name in ours
        )
        for name in names
    )


def is_restored(engine: Engine, located: LocatedContainer, entry: Entry) -> bool:
    """Tell whether a container is as its entry says: the kernel's files where they were visible,
    and the effect of the engine's record.

    A restart of the container loses what was written to the kernel's files alone.
    """
    container = located.container
    if container.gpu is GpuAccess.FRAGILE and not container.pid:
        return True
    if entry.kernel and not limit_files.are_same(limit_files.read_files(located), entry.kernel):
        return False
    recorded = recorded_settings(located)
    original = recorded_settings(located, engine.recorded(entry.fields))
    if located.cgroup_version == 2:  # many shares stand for one weight there
        recorded["cpu_weight"] = original["cpu_weight"]
    return recorded == original


def restore(engine: Engine, located: LocatedContainer, entry: Entry) -> None:
    """Restore the CPU settings that an entry holds.

    Raises `GoneError`, `RefusedError` or OSError.
    """
    if located.container.gpu is GpuAccess.FRAGILE:
        limit_files.write_files(located, entry.kernel)
        return
    wanted: CpuLimits = {"cpu_weight": entry.settings.get("cpu_weight", DEFAULT_CPU_WEIGHT)}
    if _has_lost_cpu_list(located, entry):
        wanted["cpuset"] = entry.settings["cpuset"]
    engine.restore_limits(located, entry.fields, wanted, lambda: _are_original(located, entry))
    _restore_files(located, entry)


def _has_lost_cpu_list(located: LocatedContainer, entry: Entry) -> bool:
    """Tell whether the CPU list of an entry must be set: it is known, and not as it was."""
    if "cpuset" not in entry.settings:
        return False
    original, recorded = entry.settings["cpuset"], recorded_settings(located)["cpuset"]
    return not settings_in_force(located).get("cpuset") == recorded == original


def _are_original(located: LocatedContainer, entry: Entry) -> bool:
    """Tell whether the kernel's files are as an entry says, as far as anybody knows."""
    current = limit_files.read_files(located)
    return not entry.kernel or not current or limit_files.are_same(current, entry.kernel)


def _restore_files(located: LocatedContainer, entry: Entry) -> None:
    """Write the files that still differ after the engine's update, if permissions allow it."""
    if _are_original(located, entry):
        return
    current = limit_files.read_files(located)
    texts = {
        name: text
        for name, text in entry.kernel.items()
        if name != limit_files.CPUSET or current.get(name) != text
    }
    with suppress(OSError):  # the caller reads back what is in force
        limit_files.write_files(located, texts)
