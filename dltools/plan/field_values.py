"""The fields of dataclasses by name, without the copies that dataclasses.asdict makes."""

from __future__ import annotations

import dataclasses
from functools import cache
from typing import Any


def field_values(value: Any) -> dict[str, Any]:
    """Return a dataclass's fields by name, the values as they are."""
    return {name: getattr(value, name) for name in _names(value.__class__)}


@cache
def _names(kind: type) -> tuple[str, ...]:
    return tuple(field.name for field in dataclasses.fields(kind))
