"""A target that a job has met: what its metric was when it did."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class TargetMet:
    """The first point of a metric that met a target: its value and its time (RFC 3339).

    `objective` is "max" where larger is better, else "min".
    """

    metric: str
    objective: str
    target: float
    value: float
    time: str
