"""Tables of a workload file: known keys, with values of the right type."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

from dltools.errors import DataError

MOST = 1_000_000
_LARGEST_NUMBER = 1e300
_NOT_FOR_FILES = ("curve", "table", "seed", "container", "phases")
"""Fields of the classes that no file sets."""


@dataclasses.dataclass(frozen=True, slots=True)
class Table:
    """A table of a workload file; `where` names the file and the table in errors."""

    where: str
    data: Mapping[str, Any]

    def error(self, text: str) -> DataError:
        """Return an error that names the table."""
        return DataError(f"{self.where}: {text}")

    def without(self, *keys: str) -> Table:
        """Return the table without some keys."""
        rest = {key: value for key, value in self.data.items() if key not in keys}
        return Table(self.where, rest)

    def fields(self, cls: type[Any]) -> dict[str, Any]:
        """Return its values as the fields of a class. Raises `DataError` for unknown keys and
        values of another type."""
        known = {
            field.name: str(field.type)
            for field in dataclasses.fields(cls)
            if field.name not in _NOT_FOR_FILES
        }
        found = {}
        for key, value in self.data.items():
            if key not in known:
                raise self.error(f"unknown key {key!r}; known: {', '.join(known)}")
            found[key] = _value(value, known[key], f"{self.where}: {key}")
        return found


def tables(data: Mapping[str, Any], key: str, name: str) -> list[Table]:
    """Return the tables [[key]] of a file, each with its name or number in `where`."""
    found = data.get(key, [])
    if not isinstance(found, list) or not all(isinstance(table, dict) for table in found):
        raise DataError(f"{name}: write [[{key}]] once for each {key}")
    return [
        Table(f"{name}: {key} {table.get('name', number)}", table)
        for number, table in enumerate(found, 1)
    ]


def _value(value: Any, type_: str, where: str) -> Any:
    if type_ == "str":
        if not isinstance(value, str) or not value:
            raise DataError(f"{where} must be text, not {value!r}")
        return value
    if type_ == "bool":
        if not isinstance(value, bool):
            raise DataError(f"{where} must be true or false, not {value!r}")
        return value
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise DataError(f"{where} must be a number, not {value!r}")
    if not abs(value) < _LARGEST_NUMBER:
        raise DataError(f"{where} must be between -1e300 and 1e300, not {str(value)[:20]}")
    if type_ != "int":
        return float(value)
    if value != int(value):
        raise DataError(f"{where} must be a whole number, not {value!r}")
    return int(value)
