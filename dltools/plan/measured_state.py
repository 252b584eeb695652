"""What was measured of paces and contention, as JSON values."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

from dltools.plan.field_values import field_values
from dltools.plan.policy.pace import Mark, Pace, Place
from dltools.plan.realisation.contention import Contention
from dltools.plan.realisation.mode import Mode


def save_pace(pace: Pace) -> dict[str, Any]:
    """Return a pace as JSON values."""
    marks = ("newest", "begin", "used")
    found = field_values(pace)
    return found | {name: found[name] and field_values(found[name]) for name in marks}


def load_pace(saved: Mapping[str, Any]) -> Pace:
    """Return the pace that was saved. Raises KeyError, TypeError or ValueError."""
    place = None if saved["place"] is None else Place(saved["place"])
    marks = {name: Mark(**saved[name]) for name in ("newest", "begin", "used") if saved.get(name)}
    return Pace(**{**saved, **marks, "place": place})


def save_contention(contention: Contention) -> dict[str, Any]:
    """Return what was found on a host as JSON values."""
    return dataclasses.asdict(contention)


def load_contention(saved: Mapping[str, Any]) -> Contention:
    """Return what was saved. Raises KeyError, TypeError or ValueError."""
    mode = None if saved["mode"] is None else Mode(saved["mode"])
    return Contention(**{**saved, "mode": mode})
