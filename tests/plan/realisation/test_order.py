"""The order of jobs that cannot all run at once, and the groups that can, worked by hand."""

from __future__ import annotations

from dataclasses import replace

import pytest
from helpers.shared_hosts import job
from hypothesis import given
from hypothesis import strategies as st

from dltools.plan.policy.base import Allocation
from dltools.plan.policy.container_history import ContainerHistory
from dltools.plan.policy.owner import Owner
from dltools.plan.realisation.base import Case
from dltools.plan.realisation.mode import Mode, ModeChoice
from dltools.plan.realisation.order import groups_that_fit, in_order, standing, standings, unknown
from dltools.plan.realisation.queue import Queue


def case(
    *jobs: ContainerHistory, cpus: float = 4.0, **allocations: Allocation | float | None
) -> Case:
    """A case of jobs with an allocation, or just a share, by name."""
    found = {name: one if isinstance(one, Allocation) else Allocation(one, "-", "")
             for name, one in allocations.items()}  # fmt: skip
    choice = ModeChoice(Mode.PRIORITY, "as asked")
    return Case(choice, list(jobs), found, cpus, "0-3", Queue(), 0)


def unlimited(rank: int = 0) -> Allocation:
    return Allocation(0.01, "-", "", unlimited=True, rank=rank)


def names(jobs: list[ContainerHistory]) -> str:
    return "".join(one.name for one in jobs)


def test_an_unlimited_job_and_one_without_a_share_have_the_mean_share() -> None:
    found = case(job("a"), job("b"), job("c"), job("d"), a=0.9, b=unlimited(), c=None, d=0.1)
    assert [found.share(one) for one in found.jobs] == [0.9, 0.5, 0.5, 0.1]
    assert [found.is_unlimited(one) for one in found.jobs] == [False, True, False, False]


@pytest.mark.parametrize(
    ("threads", "share", "expected"),
    [
        (1, 0.25, (0, False, 0.0)),  # one of four CPUs: all that its thread can use
        (1, 0.9, (0, False, 0.0)),
        (2, 0.25, (0, True, -0.25)),
        (8, 1.0, (0, False, 0.0)),  # it can use all CPUs, and has them
        (8, 0.9, (0, True, -0.9)),
        (None, 0.25, (0, False, 0.0)),  # unknown threads count as one
    ],
)
def test_a_job_that_has_all_it_can_use_stands_before_larger_shares(
    threads: int | None, share: float, expected: object
) -> None:
    a = job("a", threads)
    assert standing(case(a, a=share), a) == expected


def test_jobs_are_in_order_of_rank_use_share_and_arrival() -> None:
    jobs = [job("a", 4), job("b", 4), job("c", 1), job("d", 4, arrived=1), job("e", 4)]
    found = case(*jobs, a=0.2, b=0.3, c=0.25, d=0.2, e=Allocation(0.9, "-", "", rank=1))
    assert names(in_order(found, standings(found))) == "cbade"


def test_serving_jobs_have_no_standing() -> None:
    found = case(job("a", 4), job("s", 4, dltools_qoe="0.1"), a=0.2, s=0.8)
    assert set(standings(found)) == {"a"}
    assert names(in_order(found, standings(found))) == "a"


def test_an_unlimited_job_is_equal_to_the_first() -> None:
    jobs = (job("a", 4), job("b", 4), job("c", 4))
    found = standings(case(*jobs, a=0.6, b=0.4, c=unlimited(rank=1)))
    assert found["c"] == found["a"] == (0, True, -0.6)


def test_unlimited_jobs_stand_before_jobs_that_have_all_converged() -> None:
    flat = Allocation(0.6, "-", "", rank=2)
    found = standings(case(job("a", 4), job("b", 4), a=flat, b=unlimited()))
    assert found == {"a": (2, True, -0.6), "b": (0, False, 0.0)}
    assert set(standings(case(job("b", 4), b=unlimited())).values()) == {(0, False, 0.0)}


def test_a_job_that_is_not_understood_for_long_stands_behind_all() -> None:
    silent, rare, new, known = (job(name, 4) for name in ("silent", "rare", "new", "known"))
    silent.reports, silent.samples = 1, [(0, 12.0)]
    rare.samples, new.samples = [(0, 60.0)], [(0, 12.0)]
    everyone = dict.fromkeys(("silent", "rare", "new"), unlimited())
    found = case(silent, rare, new, known, **everyone, known=Allocation(0.6, "-", "", rank=2))
    assert unknown(found, found.jobs) == {silent.run_id, rare.run_id}
    assert [one.name for one in in_order(found, standings(found))][:2] == ["new", "known"]


def test_a_job_that_explores_is_not_yet_one_that_is_not_understood() -> None:
    silent = job("silent", 4)
    silent.reports = 0
    found = replace(case(silent, silent=unlimited()), exploring=frozenset({"silent"}))
    assert unknown(found, found.jobs) == frozenset()


def test_a_job_joins_the_first_group_with_room() -> None:
    threads = {"a": 3, "b": 2, "c": 1, "d": 9, "e": 2}
    jobs = [job(name, count) for name, count in threads.items()]
    assert [names(group) for group in groups_that_fit(jobs, 4.0)] == ["ac", "be", "d"]
    assert groups_that_fit([], 4.0) == []


@given(st.lists(st.integers(1, 9), max_size=9), st.integers(1, 8))
def test_each_job_is_in_one_group_that_fits(threads: list[int], cpus: int) -> None:
    jobs = [job(str(number), count) for number, count in enumerate(threads)]
    groups = groups_that_fit(jobs, float(cpus))
    assert sorted(one.id for group in groups for one in group) == sorted(one.id for one in jobs)
    for group in groups:
        assert len(group) == 1 or sum(one.threads or 0 for one in group) <= cpus


def test_jobs_are_grouped_by_the_cpus_that_they_can_use() -> None:
    pool, quota, pinned, sleepy = job("pool", 31), job("quota", 4), job("pinned", 8), job("x", 4)
    pool.demands, sleepy.demands = (2.1,), (0.3,)
    quota.owner, pinned.owner = Owner(cpus=0.5), Owner(cpuset="3")
    jobs = [job("wide", 4), pool, quota, pinned, sleepy]
    assert [names(group) for group in groups_that_fit(jobs, 4.0)] == [
        "wide", "poolquotapinnedx"
    ]  # fmt: skip
