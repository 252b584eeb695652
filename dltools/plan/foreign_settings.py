"""Settings that somebody else has changed: `docker update` by hand beside dl-apply.

dl-apply leaves such a container alone, so the planner must not give it a place in the order. What
plans have asked for is remembered for each container. A value that comes into force later is
somebody else's, if it is none of these, nor what was in force before, nor what containers begin
with, nor the weight of a job that waits. All of this is ours.

It is judged only where plans are followed: the newest change that was asked for has come into
force. Otherwise, as in a dry run beside another pipe, nothing tells whose settings these are.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Literal

from dltools.notation.cpu_weights import DEFAULT_CPU_WEIGHT
from dltools.notation.limits import differs
from dltools.plan.realisation.settings import Settings
from dltools.plan.signals.container_history import WAITING_WEIGHT, ContainerHistory, Member

Name = Literal["weight", "cpus"]
"""A setting that is watched."""

Value = float | None
"""A weight in Docker's shares, or a quota in cores, None for no quota."""

_REMEMBERED = 3
"""Values asked for that are remembered (ours): a plan may still be on its way."""

_CERTAIN = 2
"""Samples in a row at which a value of somebody else must be in force (ours)."""

DEFAULTS: Mapping[Name, Value] = {"weight": DEFAULT_CPU_WEIGHT, "cpus": None}
"""The settings that are watched, and what containers begin with."""

_SAYS: Mapping[Name, str] = {
    "weight": "its weight was set to {:g}",
    "cpus": "its quota was set to {:g} CPUs",
}


@dataclass(frozen=True, slots=True)
class Watched:
    """One setting of a container: what plans have asked for, and what came of it.

    `asked`: the last values asked for, the newest last. `origin`: what was in force when the first
    was asked for. `present`: what is in force. `is_followed`: whether what was asked for comes into
    force. `strange`: at how many samples in a row somebody else's value is in force, up to
    `_CERTAIN`.
    """

    origin: Value
    present: Value
    asked: tuple[Value, ...] = ()
    is_followed: bool = False
    strange: int = 0

    @property
    def is_suspect(self) -> bool:
        """Whether the next sample shows if somebody else has changed it."""
        return 0 < self.strange < _CERTAIN

    @property
    def is_foreign(self) -> bool:
        """Whether somebody else has changed it."""
        return self.strange >= _CERTAIN

    def ask(self, name: Name, value: Value, cpus: float) -> Watched:
        """Return the setting after a plan has asked for a value."""
        if self.asked and self.asked[-1] == value:
            return self
        asked = (*(one for one in self.asked if one != value), value)[-_REMEMBERED:]
        if self.strange:
            is_ours = not _differ(name, value, self.present, cpus)
            return replace(self, asked=asked, strange=0 if is_ours else self.strange)
        is_missed = bool(self.asked) and _differ(name, self.asked[-1], self.present, cpus)
        return replace(self, asked=asked, is_followed=self.is_followed and not is_missed)

    def see(self, name: Name, value: Value, cpus: float) -> Watched:
        """Return the setting after a sample at which a value was in force.

        A value that was not somebody else's stays so for as long as it is in force, whatever is
        asked for meanwhile.
        """
        if value == self.present:
            is_certain = not self.is_suspect
            return self if is_certain else replace(self, strange=self.strange + 1)
        is_asked = any(not _differ(name, one, value, cpus) for one in self.asked)
        is_origin = not _differ(name, self.origin, value, cpus)
        is_followed = self.is_followed or (is_asked and not is_origin)
        is_known = is_asked or is_origin or _is_of_dltools(name, value, cpus)
        strange = 0 if is_known or not is_followed else min(_CERTAIN, self.strange + 1)
        return replace(self, present=value, is_followed=is_followed, strange=strange)


WatchedSettings = Mapping[Name, Watched]
"""The settings of one container that are watched, by name."""


def in_force(container: ContainerHistory | Member, cpus: float) -> Settings:
    """Return the weight and the quota of a container on a host of so many CPUs, as far as they are
    known. A quota of all CPUs is none."""
    found: Settings = {}
    if container.cpus is not None and container.cpus > 0:
        found["cpus"] = None if container.cpus >= cpus else container.cpus
    if container.weight is not None and container.weight > 0:
        found["weight"] = container.weight
    return found


def after_request(
    watched: WatchedSettings, setting: Settings, present: Settings, cpus: float
) -> WatchedSettings:
    """Return what is watched after a plan has asked for a setting, on a host of so many CPUs.

    `present`: what was in force. A setting that is not in it is watched only if it was before.
    """
    found = dict(watched)
    for name in DEFAULTS.keys() & setting.keys() & (watched.keys() | present.keys()):
        before = watched.get(name) or Watched(present[name], present[name])
        found[name] = before.ask(name, setting[name], cpus)
    return found


def after_sample(watched: WatchedSettings, present: Settings, cpus: float) -> WatchedSettings:
    """Return what is watched after a sample; what is unknown there says nothing."""
    return {
        name: one.see(name, present[name], cpus) if name in present else one
        for name, one in watched.items()
    }


def foreign_in_words(watched: WatchedSettings) -> str:
    """Return in words what somebody else has set, "" for nothing."""
    found = [
        said.format(watched[name].present)
        for name, said in _SAYS.items()
        if name in watched and watched[name].is_foreign
    ]
    return f"{' and '.join(found)} by somebody else" if found else ""


def _is_of_dltools(name: Name, value: Value, cpus: float) -> bool:
    """Tell whether it is what containers begin with, or the weight of a job that waits."""
    is_low = name == "weight" and value is not None and value <= WAITING_WEIGHT
    return is_low or not _differ(name, DEFAULTS[name], value, cpus)


def _differ(name: Name, wanted: Value, present: Value, cpus: float) -> bool:
    return differs({name: wanted}, {name: present}, cpus)
