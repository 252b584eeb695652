"""Quotas, weights and CPUs of its own for each job, worked by hand."""

from dataclasses import replace

import pytest
from helpers.shared_hosts import host, job, realised, settings_of

from dltools.plan.forecast.docker_alone import Due
from dltools.plan.realisation.mode import ModeChoice
from dltools.plan.realisation.options import Mode
from dltools.plan.realisation.queue_positions import Queue, QueuePosition


def test_a_share_becomes_a_quota_and_a_share_of_1_none() -> None:
    found = host(job("a"), job("b"), job("c"), shares={"a": 0.25, "b": 1.0, "c": 0.001})
    settings = settings_of(Mode.QUOTA, found)
    assert settings == {"a": {"cpus": 0.5}, "b": {"cpus": None}, "c": {"cpus": 0.01}}
    assert "sum to 2.51 of 2 CPUs" in realised(ModeChoice(Mode.QUOTA, ""), found).note


def test_no_quota_is_zero_on_the_smallest_host() -> None:
    found = settings_of(Mode.QUOTA, host(job("a"), cpus=0.0005, shares={"a": 0.5}))
    assert found == {"a": {"cpus": None}}


def test_an_average_share_has_the_default_weight() -> None:
    found = host(job("a"), job("b"), shares={"a": 0.75, "b": 0.25})
    assert settings_of(Mode.WEIGHT, found) == {"a": {"weight": 1536}, "b": {"weight": 512}}


def test_a_job_of_low_weight_gets_a_turn_too() -> None:
    jobs = (job("a", 2), job("b", 2))
    found, weights, queue = host(*jobs, shares={"a": 0.99, "b": 0.01}), [], Queue()
    for now, wait_s in ((0, 3.0), (3, 0.0), (5, 9.0), (8, 6.0)):
        dues = {jobs[1].run_id: Due(wait_s, 0.5)}
        choice = ModeChoice(Mode.WEIGHT, "")
        made = realised(choice, found, queue=queue, now=now * 1_000_000, dues=dues)
        queue = made.queue
        weights.append(made.settings["b"]["weight"])
    # A turn of 5 s, less a twentieth: from 3 to 7.75 s.
    assert weights == [20, 2028, 2028, 20]


@pytest.mark.parametrize(
    ("ordered", "due", "others", "weight", "kept"),
    [
        (True, Due(-1.0, 0.5), 0.01, 4096, True),
        (True, Due(-1.0, 0.5), 0.2, 1024, True),
        (True, Due(9.0, 0.5), None, 1024, True),
        (True, Due(9.0, 0.95), None, 1024, False),
        (False, Due(-1.0, 0.5), None, 1024, True),
    ],
)
def test_an_order_that_ends_pays_back_whom_it_held_back(ordered, due, others, weight, kept) -> None:
    a, b = job("a"), job("b")
    first, waits = {a.run_id: QueuePosition(True, 0)}, {b.run_id: QueuePosition(False, 0)}
    found = realised(
        ModeChoice(Mode.WEIGHT, "", is_even=True),
        replace(host(a, b, shares={"a": 0.9, "b": 0.1}), others=others),
        queue=Queue(first | waits) if ordered else Queue(),
        dues={a.run_id: Due(99.0, 1.0), b.run_id: due},
    )
    assert found.settings == {"a": {"weight": 1024}, "b": {"weight": weight}}
    assert bool(found.queue.positions) is (kept and ordered)
