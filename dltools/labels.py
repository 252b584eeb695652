"""The labels that a container may carry for this toolkit, all of them optional."""

from __future__ import annotations

import json
from collections.abc import Iterable

from dltools.text import writable

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
KNOWN = (METRIC, PATTERN, FILES, ENDPOINT, OBJECTIVE, TARGET, FINAL, QOE, EPOCHS, STEPS, PROTECT)


def is_true(label: str | None) -> bool:
    """Tell whether a label's text means yes: present and not 0, false, no or off."""
    return label is not None and label.strip().lower() not in ("0", "false", "no", "off")


def read(text: str | None) -> dict[str, str]:
    """Return the labels of a container row, {} where its text is none."""
    try:
        found = json.loads(text) if text else {}
    except (ValueError, RecursionError):
        return {}
    if not isinstance(found, dict):
        return {}
    return {writable(name): writable(value) for name, value in found.items()}


def doubts(names: Iterable[str]) -> list[str]:
    """Return what there is to say of labels under our prefix that nobody knows, a line each."""
    unknown = (name for name in sorted(names) if name.startswith(PREFIX) and name not in KNOWN)
    return [f"unknown label {name}{meant(name, KNOWN, PREFIX)}" for name in unknown]


def meant(word: str, known: Iterable[str], prefix: str = "") -> str:
    """Return the end of a complaint about a word: the known one that it is probably meant to be, or
    all of them. What all begin with, the `prefix`, makes none of them more probable."""
    from difflib import get_close_matches

    rests = {name.removeprefix(prefix).lower(): name for name in known}
    near = get_close_matches(word.removeprefix(prefix).lower(), rests, 1)
    return f": did you mean {rests[near[0]]}?" if near else f"; known: {', '.join(rests.values())}"
