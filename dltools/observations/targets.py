"""A job's targets: two values of a metric, a response time, or a number of epochs or steps.

They come from labels. `TargetMet` describes a met target in plans and deliveries.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

from dltools import labels as known_labels
from dltools.labels import EPOCHS, FINAL, METRIC, OBJECTIVE, QOE, STEPS, TARGET
from dltools.observations import metric_names


@dataclass(frozen=True, slots=True)
class Targets:
    """A job's targets; None for those that it does not have."""

    metric: str | None = None
    """The metric of `first` and `final`."""

    objective: str = "min"
    """"max" if larger is better, "min" if smaller is."""

    first: float | None = None
    """The value that is to be met first."""

    final: float | None = None
    """The value that is to be met at last, no worse than `first`."""

    qoe_s: float | None = None
    """A response time (s)."""

    epochs: float | None = None
    """How many epochs it is to train."""

    steps: float | None = None
    """How many steps it is to train."""

    faults: tuple[str, ...] = ()
    """The errors in its labels, a line each; a target with an error is left out."""

    def meets(self, value: float, target: float) -> bool:
        """Tell whether a value meets a target; NaN never does."""
        return value >= target if self.objective == "max" else value <= target

    @property
    def lengths(self) -> tuple[Length, ...]:
        """How long it is to train: in epochs, in steps, or in both."""
        return lengths(self.epochs, self.steps)


NONE = Targets()

EPOCH, STEP = "epoch", "step"


class Length(NamedTuple):
    """How long a job trains."""

    total: float
    """So many epochs or steps."""

    unit: str
    """Which of these: epoch or step."""


@lru_cache(maxsize=1 << 12)
def lengths(epochs: float | None, steps: float | None) -> tuple[Length, ...]:
    """Return how long a job trains, by what is said of it: first in epochs, then in steps."""
    said = ((epochs, EPOCH), (steps, STEP))
    return tuple(Length(total, unit) for total, unit in said if total is not None)


def parse(labels: Mapping[str, str]) -> Targets:
    """Read a job's targets from its labels. Never raises: errors are in `faults`."""
    if not any(name in labels for name in (TARGET, FINAL, QOE, EPOCHS, STEPS)):
        return NONE
    faults: list[str] = []
    metric = labels.get(METRIC, "").strip() or None
    word = labels.get(OBJECTIVE, "").strip().lower()
    if word not in ("", "min", "max"):
        faults.append(f"{OBJECTIVE} is min or max, not {word!r}")
    objective = word if word in ("min", "max") else metric_names.objective(metric or "")
    aim = Targets(metric, objective)
    first, final = (_number(labels, name, faults) for name in (TARGET, FINAL))
    if (first is not None or final is not None) and metric is None:
        faults.append(f"{TARGET} without a metric: set {METRIC} too")
        first = final = None
    elif final is not None and first is None:
        faults.append(f"{FINAL} without {TARGET}")
        final = None
    elif first is not None and final is not None and not aim.meets(final, first):
        better = "larger" if objective == "max" else "smaller"
        what = f"{metric} is better when {better}"
        faults.append(f"{FINAL} {final:g} is worse than {TARGET} {first:g}: {what}")
        final = None
    qoe_s = _duration(labels, faults)
    epochs, steps = (_count(labels, name, faults) for name in (EPOCHS, STEPS))
    return Targets(metric, objective, first, final, qoe_s, epochs, steps, tuple(faults))


def _number(labels: Mapping[str, str], name: str, faults: list[str]) -> float | None:
    text = labels.get(name, "").strip()
    if not text:
        return None
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if not math.isfinite(number):
        percent = "; write 0.9 for 90 %" if text.endswith("%") else ""
        faults.append(f"{name} is a number, not {text!r}{percent}")
        return None
    return number


def _count(labels: Mapping[str, str], name: str, faults: list[str]) -> float | None:
    number = _number(labels, name, faults)
    if number is not None and number <= 0:
        faults.append(f"{name} is more than 0, not {number:g}")
        return None
    return number


def _duration(labels: Mapping[str, str], faults: list[str]) -> float | None:
    text = labels.get(QOE, "").strip()
    seconds = known_labels.response_time_s(text) if text else None
    if text and seconds is None:
        faults.append(f"{QOE} is a response time in seconds such as 0.2 or 200ms, not {text!r}")
    return seconds


@dataclass(frozen=True, slots=True)
class TargetMet:
    """The first point of a metric that met a target."""

    metric: str
    """The name of the metric."""

    objective: str
    """"max" where larger is better, else "min"."""

    target: float
    """The value that was to be met."""

    value: float
    """The value of the point."""

    time: str
    """When the job reported it (RFC 3339)."""
