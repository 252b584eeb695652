"""The records that dl-apply keeps on disk: a JSON file for each, with the version of its format.

The journal, the notes of turns and migrations are each a kind of `Records`, so that one
codec writes them, reads them, and refuses what is damaged. `StateFolder` sees that a record appears
whole or not at all, and whom it is trusted to.

Values are checked by the types of the record's class: what dl-apply, as root, does to containers
follows from them.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, ClassVar, Generic, Protocol, TypeVar, get_args, get_type_hints, is_typeddict

from dltools.engine.state_folder import StateFolder
from dltools.errors import AccessError, DataError, DltoolsError
from dltools.notation.json_values import parse_json
from dltools.notation.limits import written
from dltools.notation.saved_values import from_json

VERSION = 1
"""Version of the format of all records."""


class ContainerRecord(Protocol):
    """What a record says of a container."""

    __dataclass_fields__: ClassVar[dict[str, Any]]

    @property
    def container_id(self) -> str:
        """Its id."""

    @property
    def container_name(self) -> str:
        """Its name."""


@dataclass(frozen=True, slots=True)
class EngineRecord:
    """What a record says first of a container of an engine."""

    engine: str
    """The ID of the engine."""

    host: str
    """The name of its host, where the container ran."""

    container_id: str
    container_name: str


R = TypeVar("R", bound=ContainerRecord)


class Records(Generic[R]):
    """The records of one kind, all in one directory. A kind is a subclass that says their
    `record_type`, a dataclass, and `what` messages call one."""

    record_type: ClassVar[type]
    what: ClassVar[str]

    def __init__(self, directory: Path) -> None:
        """The directory is made with the first record."""
        self._folder = StateFolder(directory)

    @property
    def home(self) -> Path:
        """The directory above: that of the state."""
        return self._folder.path.parent

    def names(self) -> frozenset[str]:
        """Return the names of the records' files: they change when a record comes or goes."""
        return frozenset(self._folder.names())

    def key(self, record: R) -> str:
        """Return what tells a record from the others of its kind."""
        return record.container_id

    def write(self, record: R) -> None:
        """Write a record in the place of the one with its key. Raises `OutputError`."""
        text = json.dumps({"v": VERSION, **encode(record)})
        self._folder.write(file_name(self.key(record)), text.encode())

    def find(self, key: str) -> R | None:
        """Return the record with a key, None if there is none. Raises `DataError`."""
        return self._read(file_name(key))

    def all(self, *, skip: Sequence[type[DltoolsError]] = ()) -> list[R]:
        """Return the records, by the name of their container; without those that raise an error of
        these types. Raises `DataError` where one is damaged, `AccessError` where one, or the
        directory, cannot be trusted."""
        records: list[R | None] = []
        for name in self._folder.names():
            with suppress(*skip):
                records.append(self._read(name))
        whole = filter(None, records)
        return sorted(whole, key=lambda record: (record.container_name, self.key(record)))

    def readable(self) -> list[R]:
        """Return the records that can be read and trusted."""
        with suppress(AccessError):
            return self.all(skip=(AccessError, DataError))
        return []

    def stamps(self, keys: Collection[str]) -> dict[str, tuple[int, int]]:
        """Return what tells one version of a record from the next, for those of these keys."""
        names = {file_name(key): key for key in keys}
        return {names[name]: stamp for name, stamp in self._folder.stamps(names).items()}

    def remove(self, record: R) -> None:
        """Remove a record, if it is there."""
        self._folder.remove(file_name(self.key(record)))

    def _read(self, name: str) -> R | None:
        text = self._folder.read(name)
        if text is None:
            return None
        try:
            record: R = decode(self.record_type, parse_record(text))
        except (ValueError, TypeError, KeyError, OverflowError, RecursionError) as error:
            where = self._folder.path / name
            advice = "see to its container, then remove the file"
            raise DataError(f"{where}: damaged {self.what}: {error}; {advice}") from error
        return record


def file_name(key: str) -> str:
    """Return the name of a record's file."""
    return f"{key}.json"


def parse_record(text: bytes) -> dict[str, Any]:
    """Return the values of a record's file. Raises ValueError or RecursionError."""
    data = parse_json(text)
    if not isinstance(data, dict):
        raise ValueError("it is not an object")
    if data.pop("v", None) != VERSION:
        raise ValueError("it has another version")
    return data


def encode(record: ContainerRecord) -> dict[str, Any]:
    """Return the fields of a dataclass as JSON values."""
    fields = asdict(record)
    for name, type_ in get_type_hints(type(record)).items():
        if fields[name] and any(map(is_typeddict, (type_, *get_args(type_)))):
            many = not isinstance(fields[name], Mapping)
            fields[name] = list(map(written, fields[name])) if many else written(fields[name])
    return fields


def decode(type_: Any, data: Mapping[str, Any]) -> Any:
    """Return a dataclass with values from JSON, which may lack fields that have a default.

    Raises ValueError, TypeError, KeyError or OverflowError for values of other types than those of
    its fields, and for numbers that are not finite.
    """
    record = from_json(type_, data)
    json.dumps(asdict(record), allow_nan=False)
    return record
