"""Which job of several containers a container is a member of."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from helpers.located_containers import container

from dltools.engine.cgroup import Cgroup
from dltools.engine.distributed import Membership
from dltools.engine.process_search import Processes
from dltools.observations.table import Row
from dltools.probe.inventory import Watched
from dltools.probe.rows import add_job_columns

UNNAMED = Membership("", 2)
SHOWN = Membership("10.0.0.2:29500", 2)


@dataclass
class Given:
    """A container: the job that its processes tell, its labels, its networks, its host name, the
    variables that it was started with, and whether its processes are on this machine."""

    member: Membership | None = None
    labels: dict[str, str] = field(default_factory=dict)
    networks: tuple[str, ...] = ("bridge",)
    host_name: str = ""
    environ: tuple[str, ...] = ()
    is_here: bool = True
    is_readable: bool = True

    def watched(self) -> Watched:
        raw = {
            "Config": {"Hostname": self.host_name, "Env": list(self.environ)},
            "NetworkSettings": {"Networks": {name: {} for name in self.networks}},
        }
        made = container(raw, id="1" * 64, labels=self.labels)
        watched = Watched(made, Cgroup({}, Path()) if self.is_here else None, None)
        if self.is_here:
            watched.processes.found = Processes(
                membership=self.member, is_readable=self.is_readable
            )
        return watched


def task(member: Membership | None, service: str = "trainer", **more: Any) -> Given:
    labels = {"com.docker.swarm.task.id": "t", "com.docker.swarm.service.name": service}
    return Given(member, labels, ("lab_net",), **more)


def jobs(*given: Given) -> list[tuple[str | None, int | None]]:
    rows: list[tuple[Watched, Row]] = [(one.watched(), {}) for one in given]
    add_job_columns(rows)
    return [(row.get("job"), row.get("job_containers")) for _, row in rows]


@pytest.mark.parametrize(
    ("label", "member", "job", "containers"),
    [
        (None, SHOWN, "10.0.0.2:29500", 2),
        (None, UNNAMED, None, None),
        ("run 7", SHOWN, "run 7", None),
        ("evil\x1b[2J" + "x" * 999, None, "evil?[2J" + "x" * 192, None),
        (" ", None, None, None),
    ],
)
def test_a_label_or_else_its_processes_tell_the_job(label, member, job, containers) -> None:
    labels = {} if label is None else {"dltools.job": label}
    assert jobs(Given(member, labels)) == [(job, containers)]


@pytest.mark.parametrize(
    ("networks", "job"),
    [
        (("bridge",), "master:29500"),
        (("lab_default",), "master:29500 on lab_default"),
        (("z", "y", "bridge"), "master:29500 on y+z"),
        (("ingress", "y"), "master:29500 on y"),
    ],
)
def test_an_address_is_of_the_networks_in_which_it_is_known(networks, job) -> None:
    """Two users may both have a host "master"."""
    assert jobs(Given(Membership("master:29500"), networks=networks)) == [(job, None)]


def test_tasks_that_do_not_say_where_they_meet_are_their_service_s_job() -> None:
    found = jobs(task(UNNAMED), task(UNNAMED), task(UNNAMED, "other"))
    assert found == [("swarm/trainer", 2), ("swarm/trainer", 2), ("swarm/other", 2)]


def test_tasks_that_say_where_they_meet_are_that_job_of_whatever_service() -> None:
    master = Membership("master:29500", 3)
    found = jobs(task(master, "master"), task(master, "worker"), task(master, "worker"))
    assert found == [("master:29500 on lab_net", 3)] * 3
    apart = jobs(task(Membership("a:1", 2)), task(Membership("b:1", 2)))
    assert apart == [("a:1 on lab_net", 2), ("b:1 on lab_net", 2)]


def test_a_task_s_own_host_name_tells_its_fellows_nothing_unless_they_say_it_too() -> None:
    """The first rank gives its own name, and the others learn it in their programs."""
    own = task(Membership("3f2a:29500", 2), host_name="3f2a")
    assert jobs(own, task(UNNAMED)) == [("swarm/trainer", 2)] * 2
    told = task(Membership("3f2a:29500", 2), host_name="77cd")
    assert jobs(own, told) == [("3f2a:29500 on lab_net", 2)] * 2
    alone = Given(Membership("3f2a:29500", 2), host_name="3f2a")
    assert jobs(alone) == [("3f2a:29500", 2)]
    mpi = task(Membership("mpi/x@1", 2))
    assert jobs(mpi) == [("mpi/x@1 on lab_net", 2)]


def test_tasks_that_are_not_distributed_are_jobs_of_their_own() -> None:
    assert jobs(task(None), task(None)) == [(None, None)] * 2


def test_a_label_goes_before_the_service() -> None:
    one = task(UNNAMED)
    one.labels["dltools.job"] = "run 7"
    assert jobs(one, task(UNNAMED)) == [("run 7", None), ("swarm/trainer", 2)]


def test_only_a_task_has_a_service_and_its_name_is_printable() -> None:
    labels = {"com.docker.swarm.service.name": "trainer"}
    assert jobs(Given(UNNAMED, labels)) == [(None, None)]
    assert jobs(task(UNNAMED, "evil\x1b[2J" + "x" * 999)) == [("swarm/evil?[2J" + "x" * 186, 2)]


ASKED = ("WORLD_SIZE=4", "SECRET=x")


@pytest.mark.parametrize(
    ("how", "expected"),
    [
        ({"is_here": False}, ("swarm/trainer", 4)),
        ({"is_readable": False}, ("swarm/trainer", 4)),
        ({}, (None, None)),  # its processes say more: they may have ended
    ],
)
def test_what_a_container_was_started_with_counts_where_its_processes_are_out_of_sight(
    how, expected
) -> None:
    assert jobs(task(None, environ=ASKED, **how)) == [expected]
    assert jobs(task(None, **how)) == [(None, None)]
