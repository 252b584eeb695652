"""Containers with their cgroups on this machine."""

from __future__ import annotations

from dataclasses import dataclass

from dltools.engine import cgroup, host
from dltools.engine.cgroup import Cgroup, Directory
from dltools.engine.containers import Container, Engine
from dltools.notation.resources import format_cpus


@dataclass(frozen=True, slots=True)
class LocatedContainer:
    """A container, its cgroup on this machine (None: not visible here), and the CPUs that
    containers can use there: how many, and which (0-3)."""

    container: Container
    cgroup: Cgroup | None
    usable_cpus: float
    usable_cpu_list: str

    def controller(self, name: str) -> Directory | None:
        """Return a controller's directory, None if it is not visible."""
        return self.cgroup.directory(name) if self.cgroup else None

    @property
    def cgroup_version(self) -> int:
        """The cgroup version that holds the CPU settings, 1 if the cgroup is not visible."""
        found = self.controller("cpu")
        return found.version if found else 1


class Locator:
    """Finds the cgroups of one engine's containers."""

    def __init__(self, engine: Engine) -> None:
        """Read where cgroups are mounted."""
        self._engine = engine
        self._mounts = cgroup.mounts()

    def find(self, container_id: str) -> LocatedContainer:
        """Inspect a container and locate it. Raises `GoneError` or `RefusedError`."""
        return self.locate(self._engine.inspect(container_id))

    def locate(self, container: Container) -> LocatedContainer:
        """Find a container's cgroup, which exists while the container runs on this machine."""
        found = None
        if container.pid and cgroup.belongs_to(container.pid, container.id):
            found = cgroup.of_process(container.pid, self._mounts, container_id=container.id)
        every_cpu = format_cpus(range(max(1, self._engine.cpus)))
        if found is None:
            return LocatedContainer(container, None, float(self._engine.cpus), every_cpu)
        bounds = host.bounds([found], self._mounts)
        usable = host.usable_cpus(bounds) or float(self._engine.cpus)
        cpu_lists = (directory.cpuset() for directory in bounds.cpuset)
        return LocatedContainer(
            container, found, usable, next((text for text in cpu_lists if text), every_cpu)
        )
