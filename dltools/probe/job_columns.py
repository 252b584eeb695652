"""Which job of several containers each container is a member of, as columns."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from dltools.engine.distributed import Membership, membership, variables_in
from dltools.engine.interface import Container
from dltools.labels import JOB
from dltools.observations.table import Row
from dltools.probe.inventory import Watched
from dltools.text import printable

_LONGEST = 200
"""Characters of the name of a job, as labels say it."""


def add_job_columns(rows: Sequence[tuple[Watched, Row]]) -> None:
    """Add the columns of jobs to the rows of a host's containers.

    A label names the job; else the place where the members find each other; else the Swarm service
    of which they are tasks, if they say that they are distributed.
    """
    found = [(one.container, row, _membership(one)) for one, row in rows]
    given = Counter(_meeting(container, member) for container, _, member in found if member)
    for container, row, member in found:
        if said := container.labels.get(JOB, "").strip():
            row["job"] = printable(said)[:_LONGEST]
        elif member is not None and (name := _name(container, member, given)):
            row["job"], row["job_containers"] = name, member.containers


def _membership(watched: Watched) -> Membership | None:
    """Return the job that its processes tell; where these are out of sight, what the variables do
    that it was started with."""
    container, found = watched.container, watched.processes.found
    if watched.cgroup is not None and (found.membership or found.is_readable):
        return found.membership
    variables = variables_in(container.environ)
    return membership(variables, container.command, shares_network=container.network.is_shared)


def _name(container: Container, member: Membership, given: Mapping[str, int]) -> str:
    """Return the name of a member's job, "" for none. `given`: how many containers of this host say
    that they meet at a place."""
    meeting = _meeting(container, member)
    is_own = member.host == container.host_name and given[meeting] == 1
    if not container.service or (member.job and not (member.host and is_own)):
        return meeting
    return printable(f"swarm/{container.service}")[:_LONGEST]


def _meeting(container: Container, member: Membership) -> str:
    """Return where members meet: an address means something else in each network."""
    places = "+".join(container.network.own_names)
    return f"{member.job} on {places}" if member.job and places else member.job
