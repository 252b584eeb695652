"""Jobs and hosts: order, room, targets, curves, labels, and what is refused."""

import json
import math
import statistics

import pytest

from dltools.errors import DataError
from dltools.observations.targets import Targets, parse
from dltools.sim.workload import HostSpec, Job, LearningCurve, labels_of, labels_text, workload_of

HOST = HostSpec("h", 2.0, memory=10, gpus=1)
LACKS = "lacks the memory or GPUs that it needs"
NO_NODE = "t: job a: no node has the memory and GPUs that it needs"


def test_jobs_are_in_order_of_arrival_then_name() -> None:
    jobs = [Job("c", 5.0), Job("b"), Job("a")]
    assert [job.name for job in workload_of(jobs, [HOST], "t").jobs] == ["a", "b", "c"]


@pytest.mark.parametrize(
    ("jobs", "hosts", "fault"),
    [
        ([], [HOST], "t: no jobs"),
        ([Job("a"), Job("a")], [HOST], "t: two jobs are called 'a'"),
        ([Job("a")], [HOST, HOST], "t: two nodes are called 'h'"),
        ([Job("a", memory=11)], [HOST], NO_NODE),
        ([Job("a", gpus=2)], [HOST], NO_NODE),
        ([Job("a", gpus=1, gpu_list="0")], [HOST], NO_NODE),  # one of its own, and one by name
        ([Job("a", node="x")], [HOST], "t: job a: no node is called 'x'; known: h"),
        ([Job("a", node="h", gpus=2)], [HOST], f"t: job a: its node {LACKS}"),
    ],
)
def test_what_cannot_run_is_refused(jobs, hosts, fault) -> None:
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
def test_the_epoch_that_meets_a_target(end, target, epoch) -> None:
    job = Job("a", epochs=10, curve=LearningCurve("m", "linear", 1.0, end))
    assert job.epoch_that_meets(target) == epoch


@pytest.mark.parametrize(
    ("curve", "halfway"),
    [
        (LearningCurve("loss", "exponential", 3.0, 1.0, 2.0), 1 + 2 * math.exp(-1)),
        (LearningCurve("loss", "power", 3.0, 1.0, 2.0), 1 + 2 / 2),
        (LearningCurve("loss", "linear", 3.0, 1.0), 2.0),
        (LearningCurve("loss", "points", table=((0.0, 5.0), (0.4, 3.0), (0.6, 1.0))), 2.0),
    ],
)
def test_the_value_halfway(curve, halfway) -> None:
    assert curve.value(0.5) == pytest.approx(halfway)
    assert curve.falls


def test_points_hold_before_the_first_and_after_the_last() -> None:
    curve = LearningCurve("acc", "points", table=((0.2, 0.1), (0.8, 0.9)))
    assert (curve.value(0.0), curve.value(1.0), curve.falls) == (0.1, 0.9, False)


def test_noise_is_the_same_for_a_name_and_number_and_as_large_as_asked() -> None:
    curve = LearningCurve("loss", "linear", 3.0, 1.0, noise=0.1)
    values = [curve.reported(0.5, "a", number) for number in range(2000)]
    assert values == [curve.reported(0.5, "a", number) for number in range(2000)]
    assert statistics.mean(values) == pytest.approx(2.0, abs=0.02)
    assert statistics.stdev(values) == pytest.approx(0.2, rel=0.1)
    assert curve.reported(0.5, "a", 1) != curve.reported(0.5, "b", 1)


def test_a_training_says_its_targets_and_which_way_is_better() -> None:
    rising = LearningCurve("score", "linear", 0.0, 1.0)
    found = parse(labels_of(Job("a", curve=rising, first=0.5, final=0.9)))
    assert found == Targets("score", "max", 0.5, 0.9)
    assert parse(labels_of(Job("a", first=0.5))) == Targets("loss", "min", 0.5)


def test_its_length_is_known_to_the_clairvoyant_alone() -> None:
    job = Job("a", epochs=7)
    assert labels_of(job) == {}
    assert parse(labels_of(job, clairvoyant=True)).epochs == 7


def test_a_serving_job_says_its_response_time() -> None:
    job = Job("s", request=0.1, duration=9.0, qoe=0.2)
    assert parse(labels_of(job, clairvoyant=True)).qoe_s == 0.2
    assert json.loads(labels_text(job) or "") == labels_of(job)
    assert labels_text(Job("s", request=0.1)) is None
