"""Jobs and hosts: order, room, targets, and what is refused."""

from __future__ import annotations

import pytest

from dltools.errors import DataError
from dltools.sim.curve import LearningCurve
from dltools.sim.workload import HostSpec, Job, workload_of

HOST = HostSpec("h", 2.0, memory=10, gpus=1)


def test_jobs_are_in_order_of_arrival_then_name() -> None:
    jobs = [Job("c", 5.0), Job("b"), Job("a")]
    assert [job.name for job in workload_of(jobs, [HOST], "t").jobs] == ["a", "b", "c"]


@pytest.mark.parametrize(
    ("jobs", "hosts", "fault"),
    [
        ([], [HOST], "t: no jobs"),
        ([Job("a"), Job("a")], [HOST], "t: two jobs are called 'a'"),
        ([Job("a")], [HOST, HOST], "t: two nodes are called 'h'"),
        ([Job("a", memory=11)], [HOST], "t: job a: no node has its memory and GPUs"),
        ([Job("a", gpus=2)], [HOST], "t: job a: no node has its memory and GPUs"),
        ([Job("a", node="x")], [HOST], "t: job a: no node is called 'x'; known: h"),
        ([Job("a", node="h", gpus=2)], [HOST], "t: job a: its node has not its memory and GPUs"),
    ],
)
def test_what_cannot_run_is_refused(jobs: list[Job], hosts: list[HostSpec], fault: str) -> None:
    with pytest.raises(DataError) as error:
        workload_of(jobs, hosts, "t")
    assert str(error.value) == fault


def test_a_host_without_a_size_of_memory_holds_any_job() -> None:
    assert HostSpec("h", 2.0).holds(Job("a", memory=2**40))
    assert HOST.holds(Job("a", memory=10))
    assert not HOST.holds(Job("a", memory=11))


@pytest.mark.parametrize(
    ("end", "target", "epoch"), [(0.0, 0.5, 5), (2.0, 1.5, 5), (0.0, -1.0, None), (0.0, None, None)]
)
def test_the_epoch_that_meets_a_target(end: float, target: float | None, epoch: int | None) -> None:
    job = Job("a", epochs=10, curve=LearningCurve("m", "linear", 1.0, end))
    assert job.epoch_that_meets(target) == epoch
