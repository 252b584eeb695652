"""Policy parameters: typed, range-checked fields of frozen dataclasses that describe themselves."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from typing import Any, TypeVar

from dltools.errors import ConfigError

P = TypeVar("P")


Value = float | bool | str


def parameter(
    default: Value,
    help: str,
    *,
    low: float = 0.0,
    high: float = math.inf,
    choices: tuple[str, ...] = (),
    source: str = "ours",
) -> Any:
    """Declare a parameter: a number from `low` to `high`, yes or no, or one of the words `choices`.

    `source` says whose default and meaning it is: code, paper or ours.
    """
    meta = {"low": low, "high": high, "choices": [*choices], "help": help, "source": source}
    return dataclasses.field(default=default, metadata=meta)


def seconds(default: float, help: str, *, low: float = 0.1, source: str = "ours") -> Any:
    """Declare a time of at most a day (s)."""
    return parameter(default, help, low=low, high=86400.0, source=source)


@dataclasses.dataclass(frozen=True, slots=True)
class NoParameters:
    """Those of a policy that has none."""


def build(cls: type[P], given: Mapping[str, object]) -> P:
    """Return the parameters with the given values, which may be text, over the defaults.

    Raises `ConfigError` that names the parameter and what it may be.
    """
    fields = {field.name: field for field in dataclasses.fields(cls)}  # type: ignore[arg-type]
    values: dict[str, Value] = {}
    for name, value in given.items():
        if name not in fields:
            own_names = ", ".join(fields) or "none"
            raise ConfigError(f"unknown parameter {name!r}; this policy has: {own_names}")
        values[name] = _convert(fields[name], value)
    return cls(**values)


def describe(cls: type[Any]) -> list[dict[str, Any]]:
    """Return name, type, range or choices, default, help and source of each parameter."""
    return [
        {"name": field.name, "type": _type(field), "default": field.default, **field.metadata}
        for field in dataclasses.fields(cls)
    ]


def names(cls: type[Any]) -> frozenset[str]:
    """Return the names of the parameters."""
    return frozenset(field.name for field in dataclasses.fields(cls))


def _type(field: dataclasses.Field[Any]) -> str:
    if field.metadata["choices"]:
        return "choice"
    return "bool" if isinstance(field.default, bool) else "number"


def _convert(field: dataclasses.Field[Any], value: object) -> Value:
    if choices := field.metadata["choices"]:
        if value not in choices:
            raise ConfigError(f"{field.name} must be {' or '.join(choices)}, not {value!r}")
        return str(value)
    if isinstance(field.default, bool):
        words = {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}
        word = str(value).lower()
        if word not in words:
            raise ConfigError(f"{field.name} must be true or false, not {value!r}")
        return words[word]
    low, high = field.metadata["low"], field.metadata["high"]
    try:
        number = float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError, OverflowError):
        number = math.nan
    if isinstance(value, bool) or not low <= number <= high or math.isinf(number):
        raise ConfigError(f"{field.name} must be between {low:g} and {high:g}, not {value!r}")
    return number
