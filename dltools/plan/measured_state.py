"""What was measured of paces, contention and shared GPUs, as JSON values."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

from dltools.plan.field_values import field_values
from dltools.plan.policy.gpu_pace import GpuPace
from dltools.plan.policy.pace import Mark, Pace, Place
from dltools.plan.realisation.contention import Contention
from dltools.plan.realisation.gpu_turns import MeasuredSharing
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


def save_gpu_pace(pace: GpuPace) -> dict[str, Any]:
    """Return a pace on GPUs as JSON values."""
    company = None if pace.company is None else list(pace.company)
    return field_values(pace) | {"company": company, "rates": list(pace.rates)}


def load_gpu_pace(saved: Mapping[str, Any]) -> GpuPace:
    """Return the pace that was saved. Raises KeyError, TypeError or ValueError."""
    company = None if saved["company"] is None else tuple(map(str, saved["company"]))
    rates = tuple(map(float, saved["rates"]))
    return GpuPace(**{**saved, "company": company, "rates": rates, "alone": float(saved["alone"])})


def save_sharing(sharing: Mapping[str, MeasuredSharing]) -> dict[str, Any]:
    """Return what was measured of jobs that share GPUs, by queue, as JSON values."""
    return {
        name: field_values(one) | {"runs": list(one.runs)} for name, one in sorted(sharing.items())
    }


def load_sharing(saved: Mapping[str, Any]) -> dict[str, MeasuredSharing]:
    """Return what was saved. Raises KeyError, TypeError or ValueError."""
    return {
        str(name): MeasuredSharing(**{**one, "runs": tuple(map(str, one["runs"]))})
        for name, one in saved.items()
    }
