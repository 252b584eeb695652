"""Values as JSON, and back by their types: numbers, texts, enumerations, collections, dataclasses.

A dataclass or a named tuple becomes an object with its fields by name. A field that has its default
is left out, and so is one that is computed (`init=False`) or that does not count in comparisons.
"""

from __future__ import annotations

import dataclasses
import math
import types
from collections.abc import Callable, Mapping, Set
from enum import Enum
from functools import cache
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints, is_typeddict

from dltools.notation.json_values import from_json_number, to_json_number
from dltools.notation.limits import known_name

_Read = Callable[[Any], Any]
_NUMBERS = frozenset((int, float))


def to_json(value: Any) -> Any:
    """Return a value as JSON values. Mappings and sets are sorted; NaN and the infinities become
    texts."""
    if isinstance(value, Enum):
        return str(value)
    if value is None or isinstance(value, str | int):
        return value
    if isinstance(value, float):
        return to_json_number(value)
    if isinstance(value, Mapping):
        return {str(key): to_json(part) for key, part in sorted(value.items())}
    if hasattr(value, "_fields") or dataclasses.is_dataclass(value):
        fields = (
            (name, default, getattr(value, name)) for name, default in _fields(value.__class__)
        )
        return {name: to_json(part) for name, default, part in fields if part != default}
    many = sorted(value) if isinstance(value, Set) else value
    if _NUMBERS.issuperset(map(type, many)) and all(map(math.isfinite, many)):
        return list(many)  # as most are, and long
    return [to_json(part) for part in many]


def from_json(kind: Any, value: Any) -> Any:
    """Return the value of a type that `to_json` was given. Raises KeyError, TypeError, ValueError
    or OverflowError for what is no such value."""
    return _reader(kind)(value)


@cache
def _fields(kind: type) -> tuple[tuple[str, Any], ...]:
    """Return the fields that are saved, with their defaults."""
    if not dataclasses.is_dataclass(kind):
        defaults = getattr(kind, "_field_defaults")  # noqa: B009
        return tuple((name, defaults.get(name, ...)) for name in getattr(kind, "_fields"))  # noqa: B009
    return tuple(
        (field.name, ... if field.default is dataclasses.MISSING else field.default)
        if field.default_factory is dataclasses.MISSING
        else (field.name, field.default_factory())
        for field in dataclasses.fields(kind)
        if field.init and field.compare
    )


@cache
def _reader(kind: Any) -> _Read:
    """Return what reads values of a type."""
    origin, args = get_origin(kind), get_args(kind)
    if kind is Any:
        return lambda value: value
    if kind is float:
        return _real
    if origin in (Union, types.UnionType):
        (read,) = (_reader(arg) for arg in args if arg is not types.NoneType)
        return lambda value: None if value is None else read(value)
    if origin is Literal or (isinstance(kind, type) and issubclass(kind, Enum)):
        members = {str(member): member for member in (args or kind)}
        return lambda value: members[value]
    if origin is not None:
        return _reader_of_many(origin, args)
    if kind in (str, int, bool):
        return lambda value: _checked(value, kind)
    return _reader_of_settings(kind) if is_typeddict(kind) else _reader_of_fields(kind)


def _reader_of_many(origin: Any, args: tuple[Any, ...]) -> _Read:
    if issubclass(origin, Mapping):
        key, read = map(_reader, args)
        make = dict if issubclass(dict, origin) else origin
        return lambda value: make(
            (key(name), read(part)) for name, part in _checked(value, dict).items()
        )
    if origin is tuple and args[-1] is not ...:
        readers = [_reader(arg) for arg in args]
        return lambda value: tuple(
            read(part) for read, part in zip(readers, _checked(value, list), strict=True)
        )
    each = _reader(args[0])
    many = tuple if issubclass(tuple, origin) else origin
    return lambda value: many(map(each, _checked(value, list)))


def _reader_of_fields(kind: Any) -> _Read:
    hints, defaults = get_type_hints(kind), dict(_fields(kind))
    readers = {name: _reader(hints[name]) for name in defaults}
    needed = {name for name, default in defaults.items() if default is ...}

    def read(value: Any) -> Any:
        fields = _checked(value, dict)
        if unknown := fields.keys() - readers.keys():
            raise ValueError(f"it has unknown fields: {', '.join(sorted(unknown))}")
        if missing := needed - fields.keys():
            raise ValueError(f"it lacks fields: {', '.join(sorted(missing))}")
        return kind(**{name: readers[name](part) for name, part in fields.items()})

    return read


def _reader_of_settings(kind: Any) -> _Read:
    """Return what reads limits, or settings with them, by the names that they have here or when
    written."""
    readers = {name: _reader(hint) for name, hint in get_type_hints(kind).items()}

    def read(value: Any) -> Any:
        settings = {known_name(name): part for name, part in _checked(value, dict).items()}
        return {name: readers[name](part) for name, part in settings.items()}

    return read


def _real(value: Any) -> float:
    """Return a number; a text stands for one that is not finite."""
    number = from_json_number(value)
    if isinstance(value, str) and math.isfinite(number):
        raise TypeError(f"not a number: {value[:30]!r}")
    return number


def _checked(value: Any, kind: type) -> Any:
    if type(value) is not kind:
        raise TypeError(f"not of type {kind.__name__}: {str(value)[:30]!r}")
    return value
