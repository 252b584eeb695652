"""What the owners of containers asked for, of those that dl-apply has changed since.

The journal holds what a container had before dl-apply first changed it; where its entries are, what
they are called and their version stand here. dl-probe reads them for the columns of owners.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from dltools.engine.interface import Fields, RecordedLimits
from dltools.engine.scales import asked_weight
from dltools.engine.state_folder import StateFolder
from dltools.engine.state_records import file_name, parse_record
from dltools.errors import AccessError, DataError
from dltools.notation.cpu_weights import DEFAULT_CPU_WEIGHT


class OwnerLimits(NamedTuple):
    """A quota in cores and a list of CPUs, None where the owner asked for none, and a weight in
    Docker's shares."""

    cpus: float | None
    weight: float
    cpuset: str | None


class _Read(NamedTuple):
    """An entry: when it was made (RFC 3339, "" where that is unknown), and what it says; a text
    says why that cannot be told."""

    since: str
    limits: OwnerLimits | str


_Stamp = tuple[int, int]


class JournaledLimits:
    """Reads the journals of state directories; an entry is read again only when it has changed."""

    def __init__(
        self, directories: Iterable[Path], recorded: Callable[[Fields], RecordedLimits]
    ) -> None:
        """`recorded` tells what an entry's fields of the engine stand for."""
        self._folders = [StateFolder(directory / "journal") for directory in directories]
        self._recorded = recorded
        self._known: dict[Path, dict[str, tuple[_Stamp, _Read]]] = {}

    def read(self, container_ids: Collection[str]) -> dict[str, OwnerLimits | str]:
        """Return what the owners of those containers asked for that dl-apply has changed.

        A text says why that cannot be told: of all the containers, where a journal cannot be read.
        Of several entries of a container the first counts: what a later one calls original may be
        ours.
        """
        wanted = {file_name(id_): id_ for id_ in container_ids}
        faults: list[str] = []
        found: dict[str, _Read] = {}
        for folder in self._folders if wanted else ():
            try:
                for name, entry in self._entries(folder, wanted).items():
                    other = found.get(name, entry)
                    found[name] = min(entry, other, key=lambda one: one.since)
            except AccessError as error:
                faults.append(str(error))
        unknown = dict.fromkeys(container_ids, "; ".join(faults)) if faults else {}
        return {**unknown, **{wanted[name]: entry.limits for name, entry in found.items()}}

    def _entries(self, folder: StateFolder, wanted: Collection[str]) -> dict[str, _Read]:
        known = self._known.get(folder.path, {})
        fresh: dict[str, tuple[_Stamp, _Read]] = {}
        for name, stamp in folder.stamps(wanted).items():
            before = known.get(name)
            entry = before[1] if before and before[0] == stamp else self._read(folder, name)
            if entry is not None:
                fresh[name] = stamp, entry
        self._known[folder.path] = fresh
        return {name: entry for name, (_, entry) in fresh.items()}

    def _read(self, folder: StateFolder, name: str) -> _Read | None:
        """Return an entry, None if it is gone."""
        try:
            text = folder.read(name)
            return None if text is None else self._parsed(parse_record(text))
        except (AccessError, DataError) as error:
            return _Read("", str(error))
        except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
            return _Read("", f"{folder.path / name}: damaged journal entry: {error}")

    def _parsed(self, data: Mapping[str, Any]) -> _Read:
        fields, settings, kernel = data["fields"], data["settings"], data["kernel"]
        if not all(isinstance(table, Mapping) for table in (fields, settings, kernel)):
            raise ValueError("a value has the wrong type")
        in_force = _number(settings.get("cpu_weight"))
        shares = _number(self._recorded(fields).weight)
        weight = asked_weight(
            None if shares is None else int(shares),
            DEFAULT_CPU_WEIGHT if in_force is None else in_force,
            is_v2="cpu.weight" in kernel,
        )
        cpuset = settings.get("cpuset")
        if not isinstance(cpuset, str | None):
            raise ValueError("a list of CPUs is no text")
        limits = OwnerLimits(_number(settings.get("cpus")), weight, cpuset or None)
        return _Read(str(data.get("since", "")), limits)


def _number(value: Any) -> float | None:
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < 1e9:
        raise ValueError(f"{value!r} is no limit")
    return float(value)
