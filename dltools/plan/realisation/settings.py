"""Engine settings of a container: what they are, and whether two differ."""

from __future__ import annotations

from collections.abc import Container, Mapping
from typing import Any, Literal, TypedDict, TypeVar, cast

from dltools.notation.cpu_weights import is_step_of_v2

CPU_SETTINGS: tuple[Literal["cpus", "cpu_weight", "cpuset"], ...] = ("cpus", "cpu_weight", "cpuset")
"""Names of the limits on CPUs."""

SETTINGS = (*CPU_SETTINGS, "memory")
"""Names of all limits; other settings belong to a turn."""


class Limits(TypedDict, total=False):
    """Limits of a container: its quota in cores (None: no quota), its weight in Docker's shares
    (1024 is the default), a list of CPUs (None: all), and memory in bytes (None: no limit)."""

    cpus: float | None
    cpu_weight: float
    cpuset: str | None
    memory: float | None


class Turn(TypedDict, total=False):
    """The turn of a container: the number of the group that runs together, from 0 in order of the
    turns, and its length (s). Where turns are on GPUs, `queue` is the name of the queue; where
    they are shares of the time, `period_s` is the period in which it runs for so long, `asked` the
    number of GPUs that it shall have, such as 0.3, and `had` what it had before."""

    group: int
    turn_s: float
    queue: str
    period_s: float
    asked: float
    had: float


class Settings(Limits, Turn, total=False):
    """What a plan wants of a container. What is absent stays as it is."""


class FoundSettings(Settings, total=False):
    """What a container has before or after an action, or at a sample.

    `state`: the engine's word, such as running. A migration gives the `host` of the container, and
    the id of the new `container`; a delivery the directory of the copy, `delivered`, its `size`
    (bytes) and `sha256`, and `hook`, "running", while its hook runs.
    """

    state: str
    host: str
    container: str
    delivered: str
    size: int
    sha256: str
    hook: str


_Settings = TypeVar("_Settings", bound=Mapping[str, object])


def only(settings: _Settings, names: Container[str]) -> _Settings:
    """Return those settings that have one of these names."""
    found = {name: value for name, value in settings.items() if name in names}
    return cast(_Settings, found)


def as_found(settings: Mapping[str, object]) -> FoundSettings:
    """Return a copy of settings as those of a container: an engine's answer, what a plan expects,
    or what a dry run would set."""
    return cast(FoundSettings, {**settings})


SHORTEST_TURN = 0.1
"""Shortest turn, as a part of the mean one."""

LEAST_CPUS = 0.01
"""Smallest quota in cores: the kernel's least quota of 1 ms in a period of 100 ms."""


def differs(wanted: Mapping[str, Any], present: Mapping[str, Any], cpus: float) -> bool:
    """Tell whether settings differ by more than the engine's precision and read-back rounding.

    No quota and a quota of the host's `cpus` or more have the same effect; an unknown present
    setting differs from any.
    """
    for name, value in wanted.items():
        if name not in present:
            return True
        have = present[name]
        if name == "cpus":
            value, have = (cpus if v is None else min(v, cpus) for v in (value, have))
        if isinstance(value, int | float) and isinstance(have, int | float):
            is_near = abs(value - have) <= max(0.002, 0.01 * value)
            if not is_near and not (name == "cpu_weight" and is_step_of_v2(value, have)):
                return True
        elif value != have:
            return True
    return False
