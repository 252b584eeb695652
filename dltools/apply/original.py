"""The original settings of containers: recorded before the first change, and restored.

The engine's record and the kernel's files can differ. An engine records a change before the kernel
has taken it, and what the kernel refuses stays on record: it is not seen until the container
restarts, and it fails every update.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress

from dltools.apply import engine_fields, limit_files
from dltools.apply.journal import Entry, Journal, timestamp
from dltools.apply.located import LocatedContainer
from dltools.apply.settings import recorded_settings, settings_in_force
from dltools.engine import gpu
from dltools.engine.containers import SWARM_TASK, Engine, RefusedError
from dltools.engine.gpu import Access
from dltools.engine.runs import UNKNOWN_RUN, ApplyRun
from dltools.observations.schema import DEFAULT_CPU_WEIGHT
from dltools.plan.realisation.settings import Settings, differs

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
        self, located: LocatedContainer, state: str | None = None, wanted: Settings | None = None
    ) -> Entry:
        """Return a container as it is now. `state` is given where the state is to be changed,
        `wanted` where settings are."""
        container = located.container
        present = settings_in_force(located)
        # A restart loses what was written to the kernel's files alone.
        is_lasting = wanted is not None and gpu.access(container) is not Access.HOOK
        return Entry(
            engine=self._engine.id,
            container_id=container.id,
            container_name=container.name,
            fields={name: container.host_config.get(name) or 0 for name in engine_fields.FIELDS},
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
    if SWARM_TASK in located.container.labels:
        return False
    if not entry.ours or (entry.kernel and located.controller("cpu") is None):
        return False
    present = settings_in_force(located)
    names = {name for ours in entry.ours for name in ours}
    return any(
        all(
            differs({name: ours[name]}, present, located.usable_cpus)
            for ours in entry.ours
            if name in ours
        )
        for name in names
    )


def is_restored(located: LocatedContainer, entry: Entry) -> bool:
    """Tell whether a container is as its entry says: the kernel's files where they were visible,
    and the effect of the engine's record.

    A restart of the container loses what was written to the kernel's files alone.
    """
    container = located.container
    if gpu.access(container) is Access.HOOK and not container.pid:
        return True
    if entry.kernel and not limit_files.are_same(limit_files.read_files(located), entry.kernel):
        return False
    recorded = recorded_settings(container.host_config, located)
    original = recorded_settings(entry.fields, located)
    if located.cgroup_version == 2:  # many shares stand for one weight there
        recorded["cpu_weight"] = original["cpu_weight"]
    return recorded == original


def restore(engine: Engine, located: LocatedContainer, entry: Entry) -> None:
    """Restore the CPU settings that an entry holds.

    Raises `GoneError`, `RefusedError` or OSError.
    """
    if gpu.access(located.container) is Access.HOOK:
        limit_files.write_files(located, entry.kernel)
        return
    equivalent = engine_fields.equivalent_quota_fields(located, entry.fields, engine.cpus)
    try:
        _update(engine, located, entry, engine_fields.original_quota_fields(entry.fields))
    except RefusedError:
        if not equivalent:
            raise
        _update(engine, located, entry, equivalent)
    _restore_files(located, entry)


def _update(
    engine: Engine, located: LocatedContainer, entry: Entry, quota_fields: Mapping[str, object]
) -> None:
    """Send the original quota, CPU list and weight; of several weights, until the files agree."""
    fields = {**quota_fields, **_cpuset_fields(located, entry)}
    weight = entry.settings.get("cpu_weight", DEFAULT_CPU_WEIGHT)
    for candidate in engine_fields.weight_candidates(located, weight):
        engine.update(located.container.id, fields | candidate)
        current = limit_files.read_files(located)
        if not entry.kernel or not current or limit_files.are_same(current, entry.kernel):
            return


def _cpuset_fields(located: LocatedContainer, entry: Entry) -> Mapping[str, object]:
    """Return the field that restores the CPU list, {} if that is as it was."""
    if "cpuset" not in entry.settings:
        return {}
    original = entry.settings["cpuset"]
    recorded = recorded_settings(located.container.host_config, located)["cpuset"]
    if settings_in_force(located).get("cpuset") == recorded == original:
        return {}
    return engine_fields.cpuset_fields(located, original)


def _restore_files(located: LocatedContainer, entry: Entry) -> None:
    """Write the files that still differ after the engine's update, if permissions allow it."""
    current = limit_files.read_files(located)
    if not current or not entry.kernel or limit_files.are_same(current, entry.kernel):
        return
    texts = {
        name: text
        for name, text in entry.kernel.items()
        if name != limit_files.CPUSET or current.get(name) != text
    }
    with suppress(OSError):  # the caller reads back what is in force
        limit_files.write_files(located, texts)
