"""Containers and their cgroups as tests of dl-apply make them up."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from dltools.engine.cgroup import Cgroup
from dltools.engine.docker.answers import container_of
from dltools.engine.interface import Container, LocatedContainer

CPUS = 4
EVERY_CPU = f"0-{CPUS - 1}"


def container(raw: Mapping[str, Any] | None = None, **changes: Any) -> Container:
    """Return a container of which Docker's inspection says so much more, then changed."""
    told = {"Id": "c" * 64, "Name": "/job", "State": {"Status": "running"}, **(raw or {})}
    told["Config"] = {"Labels": changes.get("labels"), **(told.get("Config") or {})}
    return replace(container_of(told), **changes)


def located(cgroup: Cgroup | None = None, **host_config: Any) -> LocatedContainer:
    """Return a container with these fields of the engine on a host of 4 CPUs."""
    return LocatedContainer(container({"HostConfig": host_config}), cgroup, float(CPUS), EVERY_CPU)


def on_version_1(directory: Path, **host_config: Any) -> LocatedContainer:
    """Return a container whose files of cgroup version 1 are in one directory."""
    return located(Cgroup({"cpu": directory, "cpuset": directory}, None), **host_config)


def on_version_2(directory: Path, **host_config: Any) -> LocatedContainer:
    """Return a container whose files of cgroup version 2 are in a directory."""
    return located(Cgroup({}, directory), **host_config)
