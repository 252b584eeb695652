"""Weights a hundred times apart, and the order of jobs, worked by hand."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

from helpers.shared_hosts import first_jobs, host, job, settings_of

from dltools.plan.realisation.mode import Mode
from dltools.plan.realisation.queue import Bound


def test_the_jobs_that_the_cpus_hold_come_first() -> None:
    jobs = [job("a", 2), job("b", 2), job("c", 2), job("d", 2), job("e", 2)]
    shares = {"a": 0.1, "b": 0.4, "c": 0.3, "d": 0.15, "e": 0.05}
    weights = {
        k: v["cpu_weight"]
        for k, v in settings_of(Mode.PRIORITY, host(*jobs, shares=shares)).items()
    }
    assert weights == {"b": 1024, "c": 10, "d": 2, "a": 2, "e": 2}
    wide = host(*jobs, cpus=4.0, shares=shares)
    weights = {k: v["cpu_weight"] for k, v in settings_of(Mode.PRIORITY, wide).items()}
    assert weights == {"b": 1024, "c": 1024, "d": 10, "a": 10, "e": 2}


def test_the_first_have_the_weights_of_all_where_others_compete() -> None:
    jobs = [job("a", 2), job("b", 2), job("c", 2)]
    found = host(*jobs, shares={"a": 0.5, "b": 0.3, "c": 0.2})
    for others, first in ((None, 1024), (0.04, 1024), (0.06, 3072), (0.9, 3072)):
        settings = settings_of(Mode.PRIORITY, replace(found, others=others))
        assert {k: v["cpu_weight"] for k, v in settings.items()} == {"a": first, "b": 10, "c": 2}
    # On four CPUs two are first: each has half of three.
    wide = settings_of(Mode.PRIORITY, replace(found, others=0.5, cpus=4.0))
    assert {k: v["cpu_weight"] for k, v in wide.items()} == {"a": 1536, "b": 1536, "c": 10}


def test_a_narrow_job_that_has_all_it_can_use_is_not_behind_a_wide_one() -> None:
    # On 8 CPUs: the narrow one has 1/8, all that its thread can use; the wide ones have 6/8 and 1/8
    # of what their 8 threads can.
    jobs = [job("wide", 8), job("next", 8), job("narrow", 1)]
    found = host(*jobs, cpus=8.0, shares={"wide": 0.75, "next": 0.125, "narrow": 0.125})
    weights = {k: v["cpu_weight"] for k, v in settings_of(Mode.PRIORITY, found, "0-7").items()}
    assert weights == {"narrow": 1024, "wide": 10, "next": 2}


def test_a_job_that_fits_beside_the_first_runs_with_it() -> None:
    # a has 3 of 4 CPUs; b of 2 threads waits for a position, and c of 1 thread takes the spare CPU.
    jobs = [job("a", 3), job("b", 2), job("c", 1)]
    found = host(*jobs, cpus=4.0, shares={"a": 0.75, "b": 0.2, "c": 0.05})
    weights = {k: v["cpu_weight"] for k, v in settings_of(Mode.PRIORITY, found, "0-3").items()}
    assert weights == {"a": 1024, "b": 10, "c": 1024}


def test_equal_jobs_take_turns_in_order_of_arrival() -> None:
    jobs = [job("a", 2, arrived=9), job("b", 2, arrived=1), job("c", 2, arrived=10)]
    found = host(*jobs, shares=dict.fromkeys("abc", 1 / 3))
    assert list(first_jobs(found, [0, 2, 5, 7, 10, 15, 20])) == ["b", "b", "a", "a", "c", "b", "a"]


def test_without_a_queue_the_equal_job_with_the_least_cpu_is_first() -> None:
    jobs = [job("a", 2), job("b", 2, arrived=1), job("c", 2, arrived=2)]
    first = []
    for used in ((9.0, 0.0, 0.0), (9.0, 9.0, 0.0), (9.0, 9.0, 9.0), (18.0, 9.0, 9.0)):
        for one, seconds in zip(jobs, used, strict=True):
            one.samples = [(3, seconds)]
        first += first_jobs(host(*jobs, shares=dict.fromkeys("abc", 1 / 3)), [0])
    assert first == ["b", "c", "a", "b"]


def test_two_of_three_equal_jobs_run_at_a_time_and_each_as_often() -> None:
    jobs = [job(name, 2) for name in "abc"]
    found = host(*jobs, cpus=4.0, shares=dict.fromkeys("abc", 1 / 3))
    first = list(first_jobs(found, list(range(0, 300, 5))))
    assert all(len(names) == 2 for names in first)
    assert [sum(name in names for names in first) for name in "abc"] == [40, 40, 40]


def test_equal_shares_are_equal_whatever_the_threads() -> None:
    # On 4 CPUs: five equal shares; the wide one is not behind the narrow ones.
    jobs = (*(job(name, 1) for name in "abcd"), job("wide", 2))
    found = host(*jobs, cpus=4.0, shares=dict.fromkeys((*"abcd", "wide"), 0.2))
    first = list(first_jobs(found, [0, 5, 10, 15]))
    assert any("wide" in names for names in first[:2])


def test_serving_containers_never_wait_in_the_queue() -> None:
    jobs = [job("serves", 2, dltools_qoe="0.1"), job("a", 2), job("b", 2)]
    found = host(*jobs, shares={"serves": 0.1, "a": 0.6, "b": 0.3})
    assert settings_of(Mode.PRIORITY, found)["serves"] == {"cpu_weight": 1024}
    assert "serves" not in settings_of(Mode.ROTATE, found)


def test_a_waiting_job_gets_a_turn_within_its_bound() -> None:
    # Three groups: 80 s of patience and turns of 20 s, less a twentieth, in steps of 2 s. Without
    # turns a alone would be first.
    jobs = [job(name, 2) for name in "abc"]
    found = host(*jobs, shares={"a": 0.9, "b": 0.06, "c": 0.04})
    seconds = list(range(0, 600, 2))
    first = list(first_jobs(found, seconds))
    assert first[:59] == [*"a" * 38, *"b" * 10, *"c" * 10, "a"]
    for name in "bc":
        turns = [at for at, names in zip(seconds, first, strict=True) if name in names]
        assert max(b - a for a, b in pairwise([0, *turns, 600])) <= Bound(3).patience_s + 2 * 20 + 2
    assert first.count("a") > 0.55 * len(first)
