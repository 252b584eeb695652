"""How a workload file says that a job is started as a real container."""

from __future__ import annotations

from typing import Any

from dltools.sim.workload import ContainerSpec
from dltools.sim.workload_file.values import Table

KEYS = ("image", "command", "labels", "docker")


def read_container(table: Table, model: ContainerSpec) -> ContainerSpec:
    """Return the container of a job's table; `model` is that of its kind, for keys that the table
    does not have. Raises `DataError`."""
    image = table.data.get("image", model.image)
    if not isinstance(image, str) or (not image and "image" in table.data):
        raise table.error(f"image must be text, not {image!r}")
    command = _texts(table, "command", model.command, '["--epochs", "40"]')
    docker = _texts(table, "docker", model.docker, '["--cpuset-cpus", "0"]')
    return ContainerSpec(image, command, _labels(table, model), docker)


def _texts(table: Table, key: str, usual: tuple[str, ...], example: str) -> tuple[str, ...]:
    found = table.data.get(key, usual)
    if not isinstance(found, list | tuple) or not all(isinstance(one, str) for one in found):
        raise table.error(f"{key} must be a list of text, such as {example}")
    return tuple(found)


def _labels(table: Table, model: ContainerSpec) -> dict[str, str]:
    labels: Any = table.data.get("labels", model.labels)
    if not isinstance(labels, dict) or not all(isinstance(one, str) for one in labels.values()):
        raise table.error('labels must be a table of text, such as { "dltools.epochs" = "40" }')
    if "" in labels:
        raise table.error("a label needs a name")
    return labels
