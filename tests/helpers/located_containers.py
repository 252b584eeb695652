"""Containers and their cgroups as tests of dl-apply make them up."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from dltools.apply.located import LocatedContainer
from dltools.engine.cgroup import Cgroup
from dltools.engine.containers import Container

CPUS = 4
EVERY_CPU = f"0-{CPUS - 1}"


def container(**changes: Any) -> Container:
    values: dict[str, Any] = {"id": "c" * 64, "name": "job", "image": "", "state": "running",
                              "pid": 0, "started": None, "tty": False, "labels": {},
                              "host_config": {}, "raw": {}}  # fmt: skip
    return Container(**(values | changes))


def located(cgroup: Cgroup | None = None, **host_config: Any) -> LocatedContainer:
    """Return a container with these fields of the engine on a host of 4 CPUs."""
    return LocatedContainer(container(host_config=host_config), cgroup, float(CPUS), EVERY_CPU)


def on_version_1(directory: Path, **host_config: Any) -> LocatedContainer:
    """Return a container whose files of cgroup version 1 are in one directory."""
    return located(Cgroup({"cpu": directory, "cpuset": directory}, None), **host_config)


def on_version_2(directory: Path, **host_config: Any) -> LocatedContainer:
    """Return a container whose files of cgroup version 2 are in a directory."""
    return located(Cgroup({}, directory), **host_config)
