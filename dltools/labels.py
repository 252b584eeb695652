"""The labels that a container may carry for this toolkit, all of them optional."""

from __future__ import annotations

import json

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
PROTECT = "dltools.protect"  # never touch it


def is_true(label: str | None) -> bool:
    """Tell whether a label's text means yes: present and not 0, false, no or off."""
    return label is not None and label.strip().lower() not in ("0", "false", "no", "off")


def read(text: str | None) -> dict[str, str]:
    """Return the labels of a container row, {} where its text is none."""
    try:
        found = json.loads(text) if text else {}
    except (ValueError, RecursionError):
        return {}
    return {str(k): str(v) for k, v in found.items()} if isinstance(found, dict) else {}
