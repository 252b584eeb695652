"""Modes in which jobs run in order, worked by hand: the order, weights far apart, and turns."""

from collections.abc import Mapping
from dataclasses import replace

import pytest
from helpers.shared_hosts import first_jobs, host, job, played, realised, settings_of
from hypothesis import given
from hypothesis import strategies as st

from dltools.actions.settings import Settings
from dltools.labels import LONGEST_PAUSE, Role
from dltools.notation.times import MICRO
from dltools.observations.roles import Judgement
from dltools.plan.forecast.docker_alone import Due
from dltools.plan.policy.interface import Allocation, HostState
from dltools.plan.realisation.mode import ModeChoice
from dltools.plan.realisation.options import Mode
from dltools.plan.realisation.order import (
    groups_that_fit,
    in_order,
    runs_in_no_order,
    standing,
    standings,
)
from dltools.plan.realisation.queue_positions import Queue
from dltools.plan.realisation.shared_host import SharedHost
from dltools.plan.signals.container_history import ContainerHistory
from dltools.plan.signals.in_force import Member, Membership, Owner
from dltools.plan.signals.resource_use import CpuDemand, Use


def turns(settings: Mapping[str, Settings]) -> dict[str, tuple[int, float]]:
    """The group of each that takes turns, and the length of its turn."""
    return {key: (one["group"], one["turn_s"]) for key, one in settings.items()}


def weights(found: HostState) -> dict[str, float]:
    """The weights of jobs in order."""
    made = settings_of(Mode.PRIORITY, found)
    return {key: one["weight"] for key, one in made.items()}


def case(
    *jobs: ContainerHistory, cpus: float = 4.0, **allocations: Allocation | float | None
) -> SharedHost:
    """A case of jobs with an allocation, or just a share, by name."""
    found = {
        name: one if isinstance(one, Allocation) else Allocation(one, "-", "")
        for name, one in allocations.items()
    }
    choice = ModeChoice(Mode.PRIORITY, "as asked")
    return SharedHost(choice, list(jobs), found, cpus, (), Queue(), 0)


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
def test_a_job_with_all_it_can_use_stands_before_larger_shares(threads, share, expected) -> None:
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
    silent.progress.reports, silent.use.samples = 1, [(0, 12.0)]
    rare.use.samples, new.use.samples = [(0, 60.0)], [(0, 12.0)]
    everyone = dict.fromkeys(("silent", "rare", "new"), unlimited())
    found = case(silent, rare, new, known, **everyone, known=Allocation(0.6, "-", "", rank=2))
    assert runs_in_no_order(found, found.jobs) == {silent.run_id, rare.run_id}
    assert [one.name for one in in_order(found, standings(found))][:2] == ["new", "known"]


def test_a_job_that_explores_is_not_yet_one_that_is_not_understood() -> None:
    silent = job("silent", 4)
    silent.progress.reports = 0
    found = replace(case(silent, silent=unlimited()), exploring=frozenset({"silent"}))
    assert runs_in_no_order(found, found.jobs) == frozenset()


def test_a_job_joins_the_first_group_with_room() -> None:
    threads = {"a": 3, "b": 2, "c": 1, "d": 9, "e": 2}
    jobs = [job(name, count) for name, count in threads.items()]
    assert [names(group) for group in groups_that_fit(jobs, 4.0)] == ["ac", "be", "d"]
    assert groups_that_fit([], 4.0) == []


def test_a_wide_job_that_is_late_is_not_passed_by_small_ones() -> None:
    jobs = [job(name, count) for name, count in {"a": 1, "wide": 4, "b": 1}.items()]
    assert [names(group) for group in groups_that_fit(jobs, 2.0)] == ["ab", "wide"]
    late = {jobs[1].run_id}
    assert [names(group) for group in groups_that_fit(jobs, 2.0, late=late)] == ["awide", "b"]
    assert names(groups_that_fit(jobs, 1.0, late=late)[0]) == "a"  # it leaves no CPU idle


@given(st.lists(st.integers(1, 9), max_size=9), st.integers(1, 8))
def test_each_job_is_in_one_group_that_fits(threads, cpus) -> None:
    jobs = [job(str(number), count) for number, count in enumerate(threads)]
    groups = groups_that_fit(jobs, float(cpus))
    assert sorted(one.id for group in groups for one in group) == sorted(one.id for one in jobs)
    for group in groups:
        assert len(group) == 1 or sum(one.use.threads or 0 for one in group) <= cpus


def test_jobs_are_grouped_by_the_cpus_that_they_can_use() -> None:
    pool, quota, pinned, sleepy = job("pool", 31), job("quota", 4), job("pinned", 8), job("x", 4)
    pool.use.cpu, sleepy.use.cpu = CpuDemand(demands=(2.1,)), CpuDemand(demands=(0.3,))
    quota.owner, pinned.owner = Owner(cpus=0.5), Owner(cpuset="3")
    jobs = [job("wide", 4), pool, quota, pinned, sleepy]
    assert [names(group) for group in groups_that_fit(jobs, 4.0)] == ["wide", "poolquotapinnedx"]


def test_the_jobs_that_the_cpus_hold_come_first() -> None:
    jobs = [job("a", 2), job("b", 2), job("c", 2), job("d", 2), job("e", 2)]
    shares = {"a": 0.1, "b": 0.4, "c": 0.3, "d": 0.15, "e": 0.05}
    assert weights(host(*jobs, shares=shares)) == {"b": 1024, "c": 10, "d": 2, "a": 2, "e": 2}
    wide = weights(host(*jobs, cpus=4.0, shares=shares))
    assert wide == {"b": 1024, "c": 1024, "d": 10, "a": 10, "e": 2}


def test_the_next_runs_beside_a_first_job_that_leaves_cpus_idle_where_others_compete() -> None:
    """A job that needs one of four CPUs goes first: of 0.85 of four weights it would have a fifth,
    and has one, the default; the next has the other 2.4. Without others the next has what the first
    leaves, whatever its weight."""
    jobs = [job("narrow", 1), *(job(name, 4) for name in "abc")]
    found = host(*jobs, cpus=4.0, shares={"narrow": 0.5, "a": 0.2, "b": 0.2, "c": 0.1})
    assert weights(found) == {"narrow": 1024, "a": 10, "b": 2, "c": 2}
    assert weights(replace(found, others=0.5)) == {"narrow": 1024, "a": 2458, "b": 10, "c": 2}


def test_the_containers_of_a_job_share_its_weight_where_others_compete() -> None:
    pair, other = job("pair", 2), job("other", 2)
    pair.membership = Membership(members=tuple(Member(name, name) for name in ("x", "y")))
    found = host(pair, other, shares={"pair": 0.7, "other": 0.3})
    assert weights(replace(found, others=0.5)) == {"pair": 1306, "other": 10}


def test_a_turn_has_the_weights_of_all_where_others_compete() -> None:
    """Two groups of two jobs on four CPUs: each job has 0.85 of two weights in its turn."""
    found = host(*(job(name, 2) for name in "abcd"), cpus=4.0, shares=dict.fromkeys("abcd", 0.25))
    for others, weight in ((None, 1024), (0.04, 1024), (0.5, 1741)):
        settings = settings_of(Mode.ROTATE, replace(found, others=others))
        assert {one["weight"] for one in settings.values()} == {weight}
        assert sorted(one["group"] for one in settings.values()) == [0, 0, 1, 1]


def test_the_first_have_the_weights_of_all_where_others_compete() -> None:
    jobs = [job("a", 2), job("b", 2), job("c", 2)]
    found = host(*jobs, shares={"a": 0.5, "b": 0.3, "c": 0.2})
    for others, first in ((None, 1024), (0.04, 1024), (0.06, 2611), (0.9, 2611)):
        assert weights(replace(found, others=others)) == {"a": first, "b": 10, "c": 2}
    # On four CPUs two are first: each has half of 0.85 of three.
    assert weights(replace(found, others=0.5, cpus=4.0)) == {"a": 1306, "b": 1306, "c": 10}


def test_a_narrow_job_that_has_all_it_can_use_is_not_behind_a_wide_one() -> None:
    # On 8 CPUs: the narrow one has 1/8, all that its thread can use; the wide ones have 6/8 and 1/8
    # of what their 8 threads can.
    jobs = [job("wide", 8), job("next", 8), job("narrow", 1)]
    found = host(*jobs, cpus=8.0, shares={"wide": 0.75, "next": 0.125, "narrow": 0.125})
    assert weights(found) == {"narrow": 1024, "wide": 10, "next": 2}


def test_equal_jobs_take_turns_in_order_of_arrival() -> None:
    jobs = [job("a", 2, arrived=9), job("b", 2, arrived=1), job("c", 2, arrived=10)]
    found = host(*jobs, shares=dict.fromkeys("abc", 1 / 3))
    assert list(first_jobs(found, [0, 2, 5, 7, 10, 15, 20])) == ["b", "b", "a", "a", "c", "b", "a"]


def test_without_a_queue_the_equal_job_with_the_least_cpu_is_first() -> None:
    jobs = [job("a", 2), job("b", 2, arrived=1), job("c", 2, arrived=2)]
    first = []
    for used in ((9.0, 0.0, 0.0), (9.0, 9.0, 0.0), (9.0, 9.0, 9.0), (18.0, 9.0, 9.0)):
        for one, seconds in zip(jobs, used, strict=True):
            one.use.samples = [(3, seconds)]
        first += first_jobs(host(*jobs, shares=dict.fromkeys("abc", 1 / 3)), [0])
    assert first == ["b", "c", "a", "b"]


def test_two_of_three_equal_jobs_run_at_a_time_and_each_as_often() -> None:
    jobs = [job(name, 2) for name in "abc"]
    found = host(*jobs, cpus=4.0, shares=dict.fromkeys("abc", 1 / 3))
    first = list(first_jobs(found, list(range(0, 300, 5))))
    assert all(len(names) == 2 for names in first)
    assert [sum(name in names for names in first) for name in "abc"] == [40, 40, 40]


def test_serving_containers_never_wait_in_the_queue() -> None:
    jobs = [job("serves", 2, dltools_qoe="0.1"), job("a", 2), job("b", 2)]
    found = host(*jobs, shares={"serves": 0.1, "a": 0.6, "b": 0.3})
    assert settings_of(Mode.PRIORITY, found)["serves"] == {"weight": 1024}
    assert "serves" not in settings_of(Mode.ROTATE, found)


def test_a_waiting_job_has_by_any_time_most_of_what_docker_alone_would_give_it() -> None:
    """Without turns a alone would be first. In 600 s of two CPUs an equal part is 400 CPU s."""
    had = played([job(name, 2) for name in "abc"], {"a": 0.9, "b": 0.06, "c": 0.04}, seconds=600)
    assert had["b"] >= 400 / 1.2 - 20
    assert had["c"] >= 400 / 1.2 - 20
    assert had["a"] >= 1.25 * 400


def test_who_bears_no_long_wait_says_so() -> None:
    bears = job("b", 2)
    bears.label({LONGEST_PAUSE: "20s"})
    found = host(job("a", 2), bears, shares={"a": 0.9, "b": 0.1})
    assert list(first_jobs(found, [0, 19, 20, 24, 25])) == ["a", "a", "b", "b", "a"]


def test_rotate_packs_groups_and_gives_turns_by_shares() -> None:
    jobs = [job("a", 2), job("b", 1), job("c", 1)]
    shares = {"a": 0.75, "b": 0.2, "c": 0.05}
    found = realised(ModeChoice(Mode.ROTATE, "", 2.0), host(*jobs, shares=shares))
    assert turns(found.settings) == {"a": (0, 3.0), "b": (1, 1.0), "c": (1, 1.0)}
    assert {one["weight"] for one in found.settings.values()} == {1024}


def lasting(name: str, epochs: int) -> ContainerHistory:
    """A job that has made ten epochs in 100 CPU s, of as many as this."""
    made = job(name, 2)
    made.use.samples = [(0, 100.0)]
    made.progress.epoch, made.progress.epoch_count = 10, epochs
    return made


def test_a_job_that_ends_in_time_waits_for_shorter_ones() -> None:
    jobs = [lasting("a", 20), lasting("b", 100)]
    found = host(*jobs, shares={"a": 0.999, "b": 0.001})
    dues = {jobs[1].run_id: Due(1_545.0, 0.5), jobs[0].run_id: Due(2_945.0, 0.5)}
    given = realised(ModeChoice(Mode.ROTATE, ""), found, dues=dues)
    assert given.settings["b"]["turn_s"] == 0.8
    assert given.queue.due == pytest.approx(1_545 * MICRO, rel=1e-3)
    dues[jobs[1].run_id] = Due(0.0, 0.5)
    late = realised(ModeChoice(Mode.ROTATE, ""), found, dues=dues)
    assert [late.settings[name]["turn_s"] for name in "ab"] == [0.8, 16.0]


def test_no_job_takes_turns_where_all_fit() -> None:
    found = settings_of(Mode.ROTATE, host(job("a"), job("b"), shares={"a": 0.5, "b": 0.5}))
    assert found == {key: {"weight": 1024} for key in "ab"}


def test_turns_are_in_proportion_to_the_shares_of_those_that_take_turns() -> None:
    # 0.3 of 0.5 of two turns of 8 s.
    jobs = [job("a", 2), job("b", 2)]
    found = settings_of(Mode.ROTATE, host(*jobs, shares={"a": 0.3, "b": 0.2}))
    assert [found[name]["turn_s"] for name in "ab"] == [9.6, 6.4]


def test_a_new_job_comes_first_until_it_has_reported_twice() -> None:
    jobs = [job("a", 2), job("b", 2, arrived=1)]
    jobs[1].progress.reports = 1
    found = host(*jobs, shares={"a": 0.5, "b": 0.5})
    assert turns(settings_of(Mode.ROTATE, found)) == {"b": (0, 10.0), "a": (1, 8.0)}
    jobs[1].use.samples = [(0, 10.0)]  # it has had its CPU seconds
    assert turns(settings_of(Mode.ROTATE, found))["b"] == (1, 8.0)


def silent(name: str, arrived: int = 0, had_s: float = 10.0) -> ContainerHistory:
    """A training that has reported nothing, and has had its time to explore."""
    made = ContainerHistory(name, name, arrived, use=Use(threads=2))
    made.observe(Judgement(Role.TRAINING, "libtorch in its processes, silent"))
    made.use.samples = [(0, had_s)]
    return made


def test_silent_trainings_queue_by_weights_beside_the_turns() -> None:
    # Two groups take turns. Three silent ones: one at a time beside them, as much as all had.
    known = host(job("a", 2), job("b", 2), shares={"a": 0.5, "b": 0.5})
    three = [silent(name) for name in ("s", "t", "u")]
    found = realised(ModeChoice(Mode.ROTATE, ""), known, silent=three, competing=three)
    assert [found.settings[key]["weight"] for key in "stu"] == [1024.0, 10.0, 2.0]
    assert [found.settings[key]["group"] for key in "ab"] == [0, 1]
    assert found.notes["t"].startswith("competes all the same; never paused before it reports")
    # Later each of them is the first one.
    first = set()
    for seconds in range(0, 40, 5):
        choice, now = ModeChoice(Mode.ROTATE, ""), seconds * MICRO
        found = realised(choice, known, silent=three, competing=three, queue=found.queue, now=now)
        first |= {key for key in "stu" if found.settings[key]["weight"] == 1024.0}
    assert first == {"s", "t", "u"}


def test_a_single_silent_training_gets_an_equal_part_beside_the_turns() -> None:
    known = host(job("a", 2), job("b", 2), shares={"a": 0.5, "b": 0.5})
    one = [silent("s")]
    found = realised(ModeChoice(Mode.ROTATE, ""), known, silent=one, competing=one)
    assert found.settings["s"] == {"weight": 512.0}


def test_a_job_that_waited_by_weights_gets_its_weight_back_for_its_turn() -> None:
    jobs = [job("a", 2), job("b", 2)]
    for one, weight in zip(jobs, (1024.0, 2.0), strict=True):
        one.in_force = one.in_force._replace(limits={"weight": weight})
    found = realised(ModeChoice(Mode.ROTATE, ""), host(*jobs, shares={"a": 0.5, "b": 0.5}))
    assert found.settings["b"] == {"weight": 1024, "group": 1, "turn_s": 8.0}
