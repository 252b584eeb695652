"""The formats in which observations are written and read: a line for each."""

from __future__ import annotations

from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from dltools.observations.formats.base import Format

_MODULES = {
    "parquet": "parquet",
    "arrow": "arrow",
    "jsonl": "jsonl",
    "csv": "csv",
    "prom": "prometheus",
}
"""The module of each format by its name; it is imported when the format is used. Its constant
FORMAT is the format."""

NAMES = tuple(_MODULES)


def get_format(name: str) -> Format:
    """Return the format of a name."""
    return formats()[name]


@cache
def formats() -> dict[str, Format]:
    """Return every format by its name."""
    return {
        name: import_module(f"dltools.observations.formats.{module}").FORMAT
        for name, module in _MODULES.items()
    }
