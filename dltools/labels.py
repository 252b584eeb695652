"""The labels by which a container tells the tools about its job; all are optional."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping

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
KNOWN = (METRIC, PATTERN, FILES, ENDPOINT, OBJECTIVE, TARGET, FINAL, QOE, EPOCHS, STEPS,
         CHECKPOINT, ORIGIN, PROTECT)  # fmt: skip


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
        found = json.loads(text) if text else {}
    except (ValueError, RecursionError):
        return {}
    if not isinstance(found, dict):
        return {}
    return {writable(name): writable(value) for name, value in found.items()}


def unknown_labels(names: Iterable[str]) -> list[str]:
    """Return a warning for each label under our prefix that is unknown."""
    unknown = (name for name in sorted(names) if name.startswith(PREFIX) and name not in KNOWN)
    return [f"unknown label {name}{suggestion(name, KNOWN, PREFIX)}" for name in unknown]
