"""What holds for a container: its limits in force, its job's members, what starts its threads."""

from __future__ import annotations

from typing import NamedTuple

from dltools.notation.limits import Limits


class InForce(NamedTuple):
    """A container's limits and state at its newest sample.

    `limits`: those that are known. `turn_s`: the length of its turn (s), None if it takes no turns.
    `state`: in the engine's word, such as running or paused. `cgroup_parent`: the cgroup among
    whose children its weight counts. `cannot`: what its engine cannot do with it: names of limits,
    pause, move.
    """

    limits: Limits = Limits()
    turn_s: float | None = None
    state: str = "running"
    cgroup_parent: str | None = None
    cannot: frozenset[str] = frozenset()


class Member(NamedTuple):
    """One of several containers of a job, without what is the job's."""

    id: str
    name: str
    in_force: InForce = InForce()


class Membership(NamedTuple):
    """Which job a container is a member of, None for none. `members`: the containers of that job
    here, () for a container alone; `job_containers`: how many the job has in all, None if
    unknown."""

    job: str | None = None
    members: tuple[Member, ...] = ()
    job_containers: int | None = None

    @property
    def lacks_members(self) -> bool:
        """Whether the job has containers that are not here."""
        if self.job is None:
            return False
        return max(1, len(self.members)) < (self.job_containers or 2)


class Runtime(NamedTuple):
    """What starts threads in a container, as the columns of these names say; None if unknown."""

    openmp_runtime: str | None = None
    openmp_settings: str | None = None
    thread_pools: str | None = None


NOTHING_KNOWN, ALONE, NO_RUNTIME = InForce(), Membership(), Runtime()
