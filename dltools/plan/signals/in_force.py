"""What holds for a container: its limits in force, what its owner asked for, its job's members, and
what starts its threads.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

from dltools.actions.settings import Settings
from dltools.notation.limits import CPU_LIMITS, DEFAULTS, V2_STEP, Limits, differs, most_cpus, only
from dltools.notation.resources import count_cpus, parse_cpus


class InForce(NamedTuple):
    """A container's limits and state at its newest sample."""

    limits: Limits = Limits()
    """Those that are known."""

    turn_s: float | None = None
    """The length of its turn (s), None if it takes no turns."""

    state: str = "running"
    """In the engine's word, such as running or paused."""

    cgroup_parent: str | None = None
    """The cgroup among whose children its weight counts, None if unknown."""

    cannot: frozenset[str] = frozenset()
    """What its engine cannot do with it: names of limits, pause, move."""


class Member(NamedTuple):
    """One of several containers of a job, without what is the job's."""

    id: str
    """The engine's id."""

    name: str
    """The name of the container."""

    in_force: InForce = InForce()
    """Its own limits and state."""


class Membership(NamedTuple):
    """Which job a container is a member of."""

    job: str | None = None
    """The name of the job, None for none."""

    members: tuple[Member, ...] = ()
    """The containers of that job here, () for a container alone."""

    job_containers: int | None = None
    """How many containers the job has in all, None if unknown."""

    @property
    def lacks_members(self) -> bool:
        """Whether the job has containers that are not here."""
        if self.job is None:
            return False
        return max(1, len(self.members)) < (self.job_containers or 2)

    def is_spread(self, jobs_elsewhere: Collection[str]) -> bool:
        """Tell whether the job waits for containers that are on none or another host."""
        return self.lacks_members or self.job in jobs_elsewhere


class Runtime(NamedTuple):
    """What starts threads in a container, as the columns of these names say."""

    openmp_runtime: str | None = None
    """Its OpenMP runtimes, None if unknown."""

    openmp_settings: str | None = None
    """The variables that are set for them, None if unknown."""

    thread_pools: str | None = None
    """What starts threads beside OpenMP, None if unknown."""


_REMEMBERED = 6
"""Values of a setting that are remembered: a plan may be applied when the next ones are made."""


@dataclass(frozen=True, slots=True)
class Owner:
    """The limits that the owner of a container set at its start, as far as samples tell them.

    Whose limits are in force is not always known. dl-probe knows it where it can read dl-apply's
    journal; elsewhere it takes the limits in force for the owner's. So what plans have set is
    remembered, and does not count as the owner's when it is seen in force. All of this is ours.
    """

    cpus: float | None = None
    """The quota in cores, None for no limit."""

    ratio: float = 1.0
    """The weight as a multiple of the default."""

    cpuset: str | None = None
    """The CPU list, None for no limit."""

    planned: Mapping[str, tuple[Any, ...]] = field(default_factory=dict)
    """The last values that plans have set, by setting."""

    is_known: bool = False
    """Whether a sample has shown the limits."""

    @property
    def most_cpus(self) -> float:
        """The most CPUs that the owner lets it use, infinity for no bound."""
        is_bound = self.cpus or self.cpuset  # seldom, and it is asked for often
        return most_cpus({"cpus": self.cpus, "cpuset": self.cpuset}) if is_bound else math.inf

    def after_sample(self, said: Limits, present: Limits) -> Owner:
        """Return what is known of an owner after a sample.

        `said`: what dl-probe takes for the owner's; `present`: what is in force. A limit in force
        that plans have set lately tells nothing of the owner.
        """
        wish: Limits = {
            "cpus": self.cpus,
            "weight": self.ratio * DEFAULTS["weight"],
            "cpuset": self.cpuset,
        }
        if said == wish and self.is_known:
            return self
        for name in CPU_LIMITS:
            limits = only(said, (name,))
            ours = ({str(name): value} for value in self.planned.get(name, ()))
            is_in_force = said[name] is not None and not differs(limits, present, math.inf)
            if not is_in_force or all(differs(planned, present, math.inf) for planned in ours):
                wish |= limits
        ratio = wish["weight"] / DEFAULTS["weight"]
        return Owner(wish["cpus"], ratio, wish["cpuset"], self.planned, is_known=True)

    def when_first_seen(self, present: Limits, cpus: float) -> Owner:
        """Return the owner of a container when it is first seen on a host of so many CPUs, and
        nothing tells whose its limits are: its quota and its CPU list are taken for the owner's."""
        quota, cpuset = present["cpus"], present["cpuset"]
        own_quota = quota if quota is not None and quota < cpus else None
        own_list = cpuset if cpuset is not None and count_cpus(cpuset) < cpus else None
        return replace(self, cpus=own_quota, cpuset=own_list, is_known=True)

    def after_plan(self, setting: Mapping[str, Any]) -> Owner:
        """Return what is known of an owner after a plan has set this."""
        planned = self.planned
        for name in CPU_LIMITS:
            values = planned.get(name, ())
            if name in setting and setting[name] not in values[-1:]:
                others = tuple(value for value in values if value != setting[name])
                planned = {**planned, name: (*others, setting[name])[-_REMEMBERED:]}
        return self if planned is self.planned else replace(self, planned=planned)

    @property
    def waiting_weight(self) -> float:
        """The weight up to which it may be idle because it waits in the queue: the second one of
        the mode `priority` is 10 in cgroup v1, and the least possible one in cgroup v2."""
        return V2_STEP * max(1.0, self.ratio)

    def waits_up_to(self, turn_s: float | None) -> float:
        """Return the weight up to which it may be idle because it waits, infinity if it takes
        turns."""
        return self.waiting_weight if turn_s is None else math.inf


def limits_of(cpus: float | None, weight: float | None, cpuset: str | None) -> Limits:
    """Return the limits of a recorded row, with defaults for what is not a limit."""
    return {
        "cpus": cpus if cpus is not None and 0 < cpus < math.inf else None,
        "weight": weight if weight is not None and 0 < weight < math.inf else DEFAULTS["weight"],
        "cpuset": cpuset if cpuset and parse_cpus(cpuset) else None,
    }


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
