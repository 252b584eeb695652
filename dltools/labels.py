"""The labels by which a container tells the tools about its job; all are optional."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping
from enum import StrEnum

from dltools.notation.times import parse_duration
from dltools.text import suggestion, writable

PREFIX = "dltools."
METRIC = "dltools.metric"  # the evaluation metric
PATTERN = "dltools.pattern"  # regular expression that finds progress in its log
FILES = "dltools.files"  # paths inside it that hold progress, separated by commas
ENDPOINT = "dltools.endpoint"  # port and path, or URL, of its Prometheus metrics
OBJECTIVE = "dltools.objective"  # min or max
TARGET = "dltools.target"  # value of the metric at which the model can be delivered
FINAL = "dltools.target.final"  # value of the metric at which training is done
QOE = "dltools.qoe"  # response time to keep, in seconds
EPOCHS = "dltools.epochs"  # how many epochs it will train
STEPS = "dltools.steps"  # how many steps it will train
CHECKPOINT = "dltools.checkpoint"  # path inside it of its model: a file or a folder
ORIGIN = "dltools.origin"  # id of its first container, if dl-apply has moved it
PROTECT = "dltools.protect"  # never touch it
PLACED = "dltools.placed"  # of a service: the constraint that dl-apply has given it
JOB = "dltools.job"  # the name of a job that has several containers
ROLE = "dltools.role"  # training, server, interactive or other
USER = "dltools.user"  # whose job it is
PRIORITY = "dltools.priority"  # its part among the jobs of its user, 1 without it
MAY_PAUSE = "dltools.pause"  # allow: it may be paused although others look whether it answers
LONGEST_PAUSE = "dltools.longest_pause"  # the longest time for which it may be paused, 0: never
OF_TARGETS = (METRIC, OBJECTIVE, TARGET, FINAL, QOE, EPOCHS, STEPS, PROTECT, USER, PRIORITY)
"""Labels that a targets file may give."""
KNOWN = (
    *OF_TARGETS,
    PATTERN,
    FILES,
    ENDPOINT,
    CHECKPOINT,
    ORIGIN,
    PLACED,
    JOB,
    ROLE,
    MAY_PAUSE,
    LONGEST_PAUSE,
)


class Role(StrEnum):
    """What a container does, as its label dltools.role says."""

    TRAINING = "training"
    SERVER = "server"
    INTERACTIVE = "interactive"
    OTHER = "other"


def role(labels: Mapping[str, str]) -> Role | None:
    """Return the role that labels give, None where they give no known one."""
    word = labels.get(ROLE, "").strip().lower()
    return Role(word) if word in list(Role) else None


LEAST_PRIORITY, MOST_PRIORITY = 0.01, 100.0
"""Bounds of a job's priority, by which its share among the jobs of its user is weighed."""


def priority(labels: Mapping[str, str]) -> float | None:
    """Return the priority that labels say, None where they say none that is within the bounds."""
    try:
        number = float(labels[PRIORITY])
    except (KeyError, ValueError):
        return None
    return number if LEAST_PRIORITY <= number <= MOST_PRIORITY else None


def response_time_s(text: str) -> float | None:
    """Return the seconds of a response time such as 0.2 or 200ms, None where it is none."""
    try:
        seconds = parse_duration(text, ("s", "ms"))
    except ValueError:
        return None
    return seconds if 0 < seconds < math.inf else None


def longest_pause_s(labels: Mapping[str, str]) -> float:
    """Return for how many seconds a container may be paused in one stretch: 0 for never, infinity
    where no label says. One that bears less than 2 s is never paused, as a pause takes 0.16 s to
    begin and to end; nor is one whose label is no duration."""
    if LONGEST_PAUSE not in labels:
        return math.inf
    try:
        seconds = parse_duration(labels[LONGEST_PAUSE])
    except ValueError:
        return 0.0
    return seconds if seconds >= 2 else 0.0


def is_true(label: str | None) -> bool:
    """Tell whether a label means yes: it is there, and its text is not 0, false, no or off."""
    return label is not None and label.strip().lower() not in ("0", "false", "no", "off")


def has_labels(present: Mapping[str, str], wanted: Iterable[str]) -> bool:
    """Tell whether labels are there: each wanted one is KEY, or KEY=VALUE."""
    for label in wanted:
        key, equals, value = label.partition("=")
        if key not in present or (equals and present[key] != value):
            return False
    return True


def parse_labels(text: str | None) -> dict[str, str]:
    """Return the labels of a container row, which are a JSON object; {} where its text is none."""
    try:
        labels = json.loads(text) if text else {}
    except (ValueError, RecursionError):
        return {}
    if not isinstance(labels, dict):
        return {}
    return {writable(name): writable(value) for name, value in labels.items()}


def unknown_labels(labels: Mapping[str, str]) -> list[str]:
    """Return a warning for each label under our prefix that is unknown, and for a role, a priority
    and a pause that are none."""
    unknown = (name for name in sorted(labels) if name.startswith(PREFIX) and name not in KNOWN)
    texts = [f"unknown label {name}{suggestion(name, KNOWN, PREFIX)}" for name in unknown]
    if ROLE in labels and role(labels) is None:
        word = labels[ROLE]
        texts.append(f"unknown role {word!r} in the label {ROLE}{suggestion(word, list(Role))}")
    if longest_pause_s(labels) == 0 and labels[LONGEST_PAUSE].strip(" 0.smh"):
        said = f"{LONGEST_PAUSE} is a duration of 2s or more, or 0 for never"
        texts.append(f"{said}, not {labels[LONGEST_PAUSE]!r}; 0 is used")
    if PRIORITY in labels and priority(labels) is None:
        bounds = f"{LEAST_PRIORITY:g} to {MOST_PRIORITY:g}"
        texts.append(f"{PRIORITY} is a number from {bounds}, not {labels[PRIORITY]!r}; 1 is used")
    return texts
