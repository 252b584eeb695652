"""Quotas and weights, worked by hand."""

from __future__ import annotations

from helpers.shared_hosts import host, job, settings_of

from dltools.plan.realisation.mode import Mode, ModeChoice
from dltools.plan.realisation.queue import Queue
from dltools.plan.realisation.realise import realise


def test_a_share_becomes_a_quota_and_a_share_of_1_none() -> None:
    found = host(job("a"), job("b"), job("c"), shares={"a": 0.25, "b": 1.0, "c": 0.001})
    assert settings_of(Mode.QUOTA, found) == {
        "a": {"cpus": 0.5},
        "b": {"cpus": None},
        "c": {"cpus": 0.01},
    }
    assert "sum to 2.51 of 2 CPUs" in realise(ModeChoice(Mode.QUOTA, ""), found).note


def test_no_quota_is_zero_on_the_smallest_host() -> None:
    assert settings_of(Mode.QUOTA, host(job("a"), cpus=0.0005, shares={"a": 0.5})) == {
        "a": {"cpus": None}
    }


def test_an_average_share_has_the_default_weight() -> None:
    found = host(job("a"), job("b"), shares={"a": 0.75, "b": 0.25})
    assert settings_of(Mode.WEIGHT, found) == {"a": {"cpu_weight": 1536}, "b": {"cpu_weight": 512}}


def test_a_job_of_low_weight_gets_a_turn_too() -> None:
    jobs = (job("a", 2), job("b", 2))
    found, weights, queue = host(*jobs, shares={"a": 0.99, "b": 0.01}), [], Queue()
    for now in (0, 60, 66, 67, 95, 96):
        made = realise(ModeChoice(Mode.WEIGHT, ""), found, queue=queue, now=now * 1_000_000)
        queue = made.queue
        weights.append(made.settings["b"]["cpu_weight"])
    # 70 s of patience and a turn of 30 s, less a twentieth: from 66.5 to 95.5 s.
    assert weights == [20, 20, 20, 2028, 2028, 20]
