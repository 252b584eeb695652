"""What the contract tests need of an engine that they run over, and which engines there are.

An adapter is a module of this folder with a function `subject`, which gives an engine by its name.
`tests/contract/run` starts engines, and names in the environment variable DLTOOLS_CONTRACT the one
that must be tried; without it Docker is tried, if it answers.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from importlib import import_module
from typing import Protocol

from dltools.engine.interface import Capabilities, Engine

_MODULES = {
    "docker": "contract.docker_api",
    "podman-4.3": "contract.docker_api",
    "podman-5.4": "contract.docker_api",
    "bare-v1": "contract.bare_cgroups",
    "bare-v2": "contract.bare_cgroups",
    "slurm": "contract.slurm_jobs",
    "containerd-1.6": "contract.cri_node",
    "containerd-1.7": "contract.cri_node",
    "kubernetes": "contract.kubelet_node",
}
"""The adapter of each engine, by the engine's name."""


MEANT = [name for name in os.environ.get("DLTOOLS_CONTRACT", "").split(",") if name]
"""The engines that this run tries."""


class Job(Protocol):
    """A container of a test, seen from outside dltools."""

    @property
    def id(self) -> str:
        """What the engine calls it."""

    @property
    def name(self) -> str:
        """Its name in observations and plans."""

    def kernel(self) -> dict[str, str]:
        """The texts of the kernel's files that an action can change, by name."""

    def record(self) -> Mapping[str, object]:
        """What the engine's record says of its limits and of restarts, {} where it has none."""

    @property
    def is_frozen(self) -> bool:
        """Whether the kernel has frozen its processes."""

    def pause(self) -> None:
        """Freeze it as the engine's own client does."""

    def unpause(self) -> None:
        """Thaw it as the engine's own client does."""

    def change_weight(self, weight: int) -> None:
        """Set its weight as somebody else would."""

    def kill(self) -> None:
        """Kill its first process, whatever its state."""

    def restart(self) -> None:
        """Start it again, under the same id."""


@dataclass(frozen=True)
class Traits:
    """What a test may expect of an engine, as its documentation promises it.

    `can` is what the engine must say of itself. `restarts`: a container can be started again.
    `tells_past`: events from before. `is_relayed`: requests can be counted and cut off.
    `tells_exit_codes`: with what a container has ended. `stamps_lines`: each line of a log has a
    time of its own. `weights_compare`: the containers of a test are under one cgroup.
    `records`: limits that are set are on the engine's record, if it has one.
    """

    can: Capabilities
    restarts: bool = True
    tells_past: bool = False
    is_relayed: bool = False
    tells_exit_codes: bool = True
    stamps_lines: bool = True
    weights_compare: bool = True
    records: bool = True


class Subject(Protocol):
    """An engine under test, and the containers of one test on it."""

    name: str
    traits: Traits
    url: str
    """What --host takes."""

    engine: Engine
    only: Sequence[str]
    """The options that make dl-probe see the containers of this test alone."""

    def start(self, script: str, name: str = "job", *, keeps_on: bool = False) -> Job:
        """Start a shell script (of busybox) in a container. `keeps_on`: the engine starts it again
        when it has failed, where it can."""

    def relay(self) -> AbstractContextManager[Relay]:
        """Put a relay between the tools and the engine, where `is_relayed`."""


class Relay(Protocol):
    url: str
    changes: list[str]
    """The requests that change something, in order: method and path."""

    swallows: Callable[[str], bool]
    """Tells of a request that changes something whether its answer gets lost."""


def open_subject(name: str) -> AbstractContextManager[Subject]:
    """Give the engine of a name until the block ends; then its containers are removed. Raises
    `LookupError` with the reason where it is not there."""
    found: AbstractContextManager[Subject] = import_module(_MODULES[name]).subject(name)
    return found
