"""Targets for containers that were started without labels, from a TOML file.

[mlp]                       # a container's name, or a pattern as in a shell: "bert-*"
metric = "val_accuracy"
target = 0.9
final = 0.95
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from typing import Any

from dltools.errors import ConfigError
from dltools.labels import EPOCHS, FINAL, METRIC, OBJECTIVE, PROTECT, QOE, STEPS, TARGET
from dltools.plan.policy.targets import parse
from dltools.text import suggestion

_KEYS = {
    "metric": METRIC,
    "objective": OBJECTIVE,
    "target": TARGET,
    "final": FINAL,
    "qoe": QOE,
    "epochs": EPOCHS,
    "steps": STEPS,
    "protect": PROTECT,
}

Given = list[tuple[str, dict[str, str]]]
"""Patterns of names and the labels that such containers get; later ones win."""


def read(text: str, name: str) -> Given:
    """Read a targets file. Raises `ConfigError` with the file, the container and the fault."""
    try:
        tables = tomllib.loads(text)
    except (ValueError, RecursionError) as error:
        raise ConfigError(f"{name}: {error}") from error
    return [(pattern, _labels(table, f"{name}: [{pattern}]")) for pattern, table in tables.items()]


def _labels(table: Any, where: str) -> dict[str, str]:
    if not isinstance(table, Mapping):
        raise ConfigError(f"{where}: not a table: write [name], then its targets")
    labels = {}
    for key, value in table.items():
        if key not in _KEYS:
            raise ConfigError(f"{where}: unknown key {key!r}{suggestion(key, _KEYS)}")
        if not isinstance(value, str | int | float):
            raise ConfigError(f"{where}: {key} is a number or text, not {value!r}")
        labels[_KEYS[key]] = str(value)
    if faults := parse(labels).faults:
        raise ConfigError(f"{where}: {faults[0]}")
    return labels
