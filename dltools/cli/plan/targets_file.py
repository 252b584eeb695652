"""Targets of containers whose labels have none, from a TOML file.

A table is named as a container is, or by a pattern as in a shell, such as "bert-*":

    [mlp]
    metric = "val_accuracy"
    target = 0.9
    final = 0.95

The keys are the last parts of the labels' names.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dltools import labels as known_labels
from dltools.errors import ConfigError
from dltools.observations.targets import parse
from dltools.text import suggestion

_KEYS = {label.rpartition(".")[2]: label for label in known_labels.OF_TARGETS}
"""The keys of a targets file: labels by the last part of their names."""

GivenLabels = list[tuple[str, dict[str, str]]]
"""Pairs of a pattern of container names, and the labels that such containers get; later pairs
win."""


def read_targets_file(text: str, name: str) -> GivenLabels:
    """Read a targets file. Raises `ConfigError` with the file, the container and the error."""
    import tomllib  # only where there is a file

    try:
        tables = tomllib.loads(text)
    except (ValueError, RecursionError) as error:
        raise ConfigError(f"{name}: {error}") from error
    return [
        (pattern, _labels_of(table, f"{name}: [{pattern}]")) for pattern, table in tables.items()
    ]


def _labels_of(table: Any, where: str) -> dict[str, str]:
    if not isinstance(table, Mapping):
        raise ConfigError(f"{where}: not a table: write [name], then its targets")
    labels = {}
    for key, value in table.items():
        if key not in _KEYS:
            raise ConfigError(f"{where}: unknown key {key!r}{suggestion(key, _KEYS)}")
        if not isinstance(value, str | int | float):
            raise ConfigError(f"{where}: {key} is a number or text, not {value!r}")
        labels[_KEYS[key]] = str(value)
    if known_labels.PRIORITY in labels and known_labels.priority(labels) is None:
        raise ConfigError(f"{where}: priority is a number from 0.01 to 100")
    if faults := parse(labels).faults:
        raise ConfigError(f"{where}: {faults[0]}")
    return labels
