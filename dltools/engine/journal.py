"""The journal of dl-apply: what containers were before it first changed them.

It has a file for each container, which is on disk before the change is made: so `dl-apply --undo`
can restore a container, however the run ended that changed it, and dl-probe tells what owners asked
for.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

from dltools.engine.interface import Fields
from dltools.engine.kernel_scales import asked_weight
from dltools.engine.runs import UNKNOWN_RUN, ApplyRun
from dltools.engine.state_records import EngineRecord, Records
from dltools.errors import AccessError, DataError
from dltools.notation.limits import Limits, weight_of

_MOST_OURS = 6
"""Settings of ours that are known again: before and after each of the last three changes."""


@dataclass(frozen=True, slots=True)
class Entry(EngineRecord):
    """One container as it was."""

    fields: Mapping[str, Any]
    """Its limits in the engine's words: `Container.limit_fields`."""

    settings: Limits
    """The limits that were in force."""

    kernel: Mapping[str, str]
    """The texts of the kernel's files by their names, {} if these were not visible."""

    since: str
    """When the entry was made (RFC 3339)."""

    run: ApplyRun
    """The run that made it."""

    state: str | None = None
    """running or paused, None while dl-apply has changed only settings."""

    started: str = ""
    """When the container had been started whose state that is (the engine's text): a state counts
    until the container is started again."""

    leased_by: ApplyRun = UNKNOWN_RUN
    """The run that has changed the container under lease: when that run is over, so is the change.
    `UNKNOWN_RUN` where the change is to stay."""

    ours: Sequence[Limits] = ()
    """The settings before and after the last changes, of those that were changed: other values are
    somebody else's. () where that cannot be told."""

    until: str = ""
    """When the lease ends that a run has left behind (RFC 3339), "" for none."""

    def __post_init__(self) -> None:
        """Raise ValueError for a state that dl-apply could not restore."""
        if self.state not in (None, "running", "paused"):
            raise ValueError("its state is neither running nor paused")

    @property
    def is_leased(self) -> bool:
        """Whether the change is to end by itself."""
        return self.leased_by != UNKNOWN_RUN or bool(self.until)

    def has_expired(self, now: str) -> bool:
        """Tell whether the lease that a run has left behind is over at a time (RFC 3339, in UTC to
        the second)."""
        return bool(self.until) and self.until <= now

    @property
    def names(self) -> set[str]:
        """The names of the settings that dl-apply has set; all, where that cannot be told."""
        return set(self.ours[-1] if self.ours else self.settings)

    def with_ours(self, newer: Iterable[Limits]) -> Entry:
        """Return the entry with newer settings of ours besides. Older ones stay for a while: the
        engine may yet carry out what a run asked for that was killed since."""
        last = self.ours[-1] if self.ours else {}
        ours = (*self.ours, *(Limits(**{**last, **limits}) for limits in newer))
        return replace(self, ours=ours[-_MOST_OURS:])

    def with_state_of(self, newer: Entry) -> Entry:
        """Return the entry with the state of a newer one, if the newer one has a state and this
        entry has none for the container's present run."""
        has_state = self.state is not None and self.started == newer.started
        if newer.state is None or has_state:
            return self
        return replace(self, state=newer.state, started=newer.started)


class Journal(Records[Entry]):
    """The entries in one directory. Threads of a run may change them side by side."""

    record_type = Entry
    what = "journal entry"

    def __init__(self, directory: Path) -> None:
        super().__init__(directory)
        self._lock = threading.Lock()

    def add(self, entry: Entry) -> bool:
        """Add the entry of a container that has none, and tell whether that was so.

        An entry that has no state of the container's present run gets that of the new one, and any
        gets the new one's lease and settings of ours. Raises `OutputError`.
        """
        with self._lock:
            earlier = self.find(entry.container_id)
            if earlier is not None:
                newest = earlier.with_state_of(entry).with_ours(entry.ours)
                entry = replace(newest, leased_by=entry.leased_by, until=entry.until)
            if entry != earlier:
                self.write(entry)
        return earlier is None

    def add_ours(self, container_id: str, settings: Limits) -> bool:
        """Add settings that are about to be made to the entry of a container, and tell whether it
        has one. Raises `DataError` and `OutputError`."""
        with self._lock:
            entry = self.find(container_id)
            if entry is not None:
                self.write(entry.with_ours([settings]))
        return entry is not None

    def remove(self, record: Entry) -> None:
        """Remove an entry, if it is there."""
        with self._lock:
            super().remove(record)

    def lease(self, entries: Iterable[Entry], run: ApplyRun = UNKNOWN_RUN, until: str = "") -> None:
        """Let changes end with a run, or at a time (RFC 3339); without either they are kept. Raises
        `OutputError`."""
        for entry in entries:
            with self._lock:
                newest = self.find(entry.container_id) or entry
                self.write(replace(newest, leased_by=run, until=until))

    def next_end(self) -> str:
        """Return when the first lease that a run left behind ends (RFC 3339), "" if there is none.
        Raises `DataError`."""
        return min((entry.until for entry in self.all() if entry.until), default="")


class _Read(NamedTuple):
    """An entry: when it was made (RFC 3339, "" where that is unknown), and what its owner asked
    for; a text says why that cannot be told."""

    since: str
    limits: Limits | str


_Stamp = tuple[int, int]


class OwnersJournals:
    """What owners asked for of containers that dl-apply has changed, by the journals of state
    directories; an entry is read again only when it has changed."""

    def __init__(self, directories: Iterable[Path], recorded: Callable[[Fields], Limits]) -> None:
        """`recorded` tells what an entry's fields of the engine stand for."""
        self._journals = [Journal(directory / "journal") for directory in directories]
        self._recorded = recorded
        self._known: dict[Path, dict[str, tuple[_Stamp, _Read]]] = {}

    def read(self, container_ids: Collection[str]) -> dict[str, Limits | str]:
        """Return what the owners of those containers asked for that dl-apply has changed.

        A text says why that cannot be told: of all the containers, where a journal cannot be read.
        Of several entries of a container the first counts: what a later one calls original may be
        ours.
        """
        faults: list[str] = []
        firsts: dict[str, _Read] = {}
        for journal in self._journals if container_ids else ():
            try:
                for id_, entry in self._entries(journal, container_ids).items():
                    firsts[id_] = min(entry, firsts.get(id_, entry), key=lambda read: read.since)
            except AccessError as error:
                faults.append(str(error))
        unknown = dict.fromkeys(container_ids, "; ".join(faults)) if faults else {}
        return {**unknown, **{id_: entry.limits for id_, entry in firsts.items()}}

    def _entries(self, journal: Journal, container_ids: Collection[str]) -> dict[str, _Read]:
        old = self._known.get(journal.home, {})
        fresh: dict[str, tuple[_Stamp, _Read]] = {}
        for id_, stamp in journal.stamps(container_ids).items():
            before = old.get(id_)
            entry = before[1] if before and before[0] == stamp else self._read(journal, id_)
            if entry is not None:
                fresh[id_] = stamp, entry
        self._known[journal.home] = fresh
        return {id_: entry for id_, (_, entry) in fresh.items()}

    def _read(self, journal: Journal, container_id: str) -> _Read | None:
        """Return an entry, None if it is gone."""
        try:
            entry = journal.find(container_id)
        except (AccessError, DataError) as error:
            return _Read("", str(error))
        if entry is None:
            return None
        settings, recorded = entry.settings, self._recorded(entry.fields)
        is_v2 = "cpu.weight" in entry.kernel
        weight = asked_weight(recorded.get("weight"), weight_of(settings), is_v2=is_v2)
        return _Read(entry.since, {**settings, "weight": weight})
