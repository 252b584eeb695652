"""Engine settings of a container: its limits, and its turn."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypedDict, cast

from dltools.notation.limits import Limits
from dltools.notation.resources import parse_cpus
from dltools.plan.signals.in_force import InForce


class Turn(TypedDict, total=False):
    """The turn of a container: the number of the group that runs together, from 0 in order of the
    turns, and its length (s). Where turns are of another resource than the CPUs, `queue` names it;
    where they are shares of the time, `period_s` is the period in which it runs for so long,
    `asked` how much of the resource it shall have, such as 0.3, and `had` what it had before."""

    group: int
    turn_s: float
    queue: str
    period_s: float
    asked: float
    had: float


class Settings(Limits, Turn, total=False):
    """What a plan wants of a container: its limits and its turn; or what it has, before or after an
    action or at a sample. What is absent stays as it is, or is not known.

    `state`: the engine's word, such as running. A migration gives the `host` of the container, and
    the id of the new `container`; a delivery the directory of the copy, `delivered`, its `size`
    (bytes) and `sha256`.
    """

    state: str
    host: str
    container: str
    delivered: str
    size: int
    sha256: str


def as_found(settings: Mapping[str, object]) -> Settings:
    """Return a copy of settings as those of a container: an engine's answer, what a plan expects,
    or what a dry run would set."""
    return cast(Settings, {**settings})


def present_settings(now: InForce, cpus: float, cpuset: str | None) -> Settings:
    """Return the settings in force, on a host of so many `cpus` whose containers may have the CPUs
    `cpuset`; what is unknown is left out. A quota of all CPUs is none."""
    present: Settings = {}
    quota, listed = now.limits.get("cpus"), now.limits.get("cpuset")
    if quota is not None and quota > 0:
        present["cpus"] = None if quota >= cpus else quota
    if (weight := now.limits.get("weight", 0)) > 0:
        present["weight"] = weight
    if listed:
        every = listed == cpuset and len(parse_cpus(listed)) >= cpus
        present["cpuset"] = None if every else listed
    if now.turn_s is not None:
        present["turn_s"] = now.turn_s
    if now.state == "paused":
        present["state"] = now.state
    return present


SHORTEST_TURN = 0.1
"""Shortest turn, as a part of the mean one."""

LEAST_CPUS = 0.01
"""Smallest quota in cores: the kernel's least quota of 1 ms in a period of 100 ms."""
