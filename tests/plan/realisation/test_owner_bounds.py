"""What owners asked for: learnt from samples, and kept to, worked by hand and over random hosts."""

import itertools
from functools import partial
from typing import Any

import pytest
from helpers.examples import examples
from helpers.observed_rows import (
    at,
    container,
    decisions_of,
    having_read,
    node,
    plan_in_two,
    planner,
    point,
    sets,
)
from helpers.recorded_hosts import A, begin, new, read
from helpers.shared_hosts import host, job, realised, settings_of
from hypothesis import given
from hypothesis import strategies as st

from dltools.notation.resources import format_cpus, parse_cpus
from dltools.observations.table import Row
from dltools.plan.policy.interface import Allocation, HostState
from dltools.plan.realisation.mode import ModeChoice
from dltools.plan.realisation.options import Mode, QueueParameters
from dltools.plan.realisation.queue_positions import Queue
from dltools.plan.signals.busy_threads import needed_cpus
from dltools.plan.signals.container_history import ContainerHistory
from dltools.plan.signals.in_force import Owner, limits_of

IGNORE = QueueParameters(owners="ignore")


def owned(name: str, threads: int | None = 1, **asked: Any) -> ContainerHistory:
    found = job(name, threads)
    found.owner = Owner(**asked)
    return found


def test_a_quota_is_the_owner_s_at_most() -> None:
    jobs = owned("a", cpus=0.5), owned("b", cpus=0.5), owned("c", cpus=0.5), owned("d")
    found = host(*jobs, shares={"a": 0.6, "b": 0.1, "c": 1.0, "d": 1.0})
    assert settings_of(Mode.QUOTA, found) == {
        "a": {"cpus": 0.5},
        "b": {"cpus": 0.2},
        "c": {"cpus": 0.5},
        "d": {"cpus": None},
    }
    made = realised(ModeChoice(Mode.QUOTA, ""), found)
    assert "sum to 3.2 of 2 CPUs" in made.note
    assert made.notes["c"] == "its owner asked for 0.5 CPUs at most"
    assert not made.notes.get("b")
    free = realised(ModeChoice(Mode.QUOTA, "", queue=IGNORE), found)
    assert [free.settings[name]["cpus"] for name in "abcd"] == [1.2, 0.2, None, None]
    assert "sum to 5.4 of 2 CPUs" in free.note


def test_weights_are_multiplied_by_the_owner_s() -> None:
    jobs = owned("a", ratio=2.0), owned("b", ratio=0.5), owned("c")
    equal = host(*jobs, shares=dict.fromkeys("abc", 1 / 3))
    found = settings_of(Mode.WEIGHT, equal)
    assert found == {"a": {"weight": 2048}, "b": {"weight": 512}, "c": {"weight": 1024}}
    even = realised(ModeChoice(Mode.WEIGHT, "", is_even=True), equal).settings
    assert [even[name]["weight"] for name in "abc"] == [2048, 512, 1024]
    free = realised(ModeChoice(Mode.WEIGHT, "", queue=IGNORE), equal).settings
    assert [free[name]["weight"] for name in "abc"] == [1024, 1024, 1024]


def weights_of(mode: Mode, *jobs: ContainerHistory, **shares: float) -> dict[str, float]:
    made = realised(ModeChoice(mode, ""), host(*jobs, shares={**shares}))
    return {name: one["weight"] for name, one in made.settings.items()}


@pytest.mark.parametrize("mode", [Mode.PRIORITY, Mode.ROTATE, Mode.WEIGHT])
def test_who_asked_for_more_never_waits_behind_who_asked_for_less(mode) -> None:
    """4096 beside 100, whatever the policy says: as under Docker alone."""
    jobs = owned("a", 2, ratio=4.0), owned("b", 2, ratio=100 / 1024)
    assert weights_of(mode, *jobs, a=0.1, b=0.9) == {"a": 4096.0, "b": 100.0}
    made = realised(ModeChoice(mode, ""), host(*jobs, shares={"a": 0.1, "b": 0.9}))
    assert not any("turn_s" in one for one in made.settings.values())
    assert made.note.endswith("a queue for each of 2 weights that owners asked for")
    assert made.notes["a"].endswith("its owner asked for a weight of 4096")


def test_those_who_asked_for_the_same_queue_behind_each_other_alone() -> None:
    """c waits behind b, but no lower than d, who asked for less and is the first of its queue. The
    first of a queue has 0.85 of the weights of all in it, but all together no more than their
    owners asked for, which is 6144: c has more than alone, so b and d less."""
    jobs = [owned(name, 2, ratio=2.0) for name in "bc"] + [owned(name, 2) for name in "de"]
    found = weights_of(Mode.PRIORITY, *jobs, b=0.4, c=0.1, d=0.3, e=0.2)
    assert found == {"b": 2929.0, "c": 1741.0, "d": 1464.0, "e": 10.0}
    heavy = [owned(name, 2, ratio=4.0) for name in "bcd"] + [owned("e", 2, ratio=0.01)]
    found = weights_of(Mode.PRIORITY, *heavy, b=0.4, c=0.3, d=0.2, e=0.1)
    assert found == {"b": 10444.0, "c": 40.0, "d": 10.0, "e": 10.0}


def test_shares_become_weights_among_those_who_asked_for_the_same() -> None:
    jobs = [owned(name, ratio=2.0) for name in "ab"] + [owned(name) for name in "cd"]
    assert weights_of(Mode.WEIGHT, *jobs, a=0.3, b=0.1, c=0.2, d=0.4) == {
        "a": 2836.0,  # 3072, which is 2048 * 0.75 / 0.5, but all have 6144 together
        "b": 1365.0,  # as d would have; its share alone gives 1024
        "c": 683.0,
        "d": 1260.0,
    }


def test_who_asked_for_more_has_the_larger_quota() -> None:
    jobs = owned("a", ratio=4.0), owned("b", ratio=2.0), owned("c")
    found = host(*jobs, shares={"a": 0.1, "b": 0.2, "c": 0.15})
    made = realised(ModeChoice(Mode.QUOTA, ""), found).settings
    assert [made[name]["cpus"] for name in "abc"] == [1.2, 0.6, 0.3]


@pytest.mark.parametrize(
    ("mode", "setting"),
    [
        (Mode.QUOTA, {"cpus": 0.5}),
        (Mode.WEIGHT, {"weight": 2048.0}),
        (Mode.PRIORITY, {"weight": 2048.0}),
    ],
)
@pytest.mark.parametrize("cpus", [2.0, 0.0])
def test_a_restarted_container_gets_back_what_its_owner_asked_for(mode, setting, cpus) -> None:
    again = ContainerHistory("again", "again", 0, managed=True)
    again.owner = Owner(0.5, 2.0, "1")
    found = realised(ModeChoice(mode, ""), host(cpus=cpus), silent=(again,))
    assert found.settings["again"] == setting


def test_turns_go_by_what_owners_let_jobs_use() -> None:
    assert needed_cpus(owned("a", 4, cpus=0.5)) == 0.5
    assert needed_cpus(owned("a", 4, cpuset="0,2")) == 2
    assert needed_cpus(owned("a", 4, cpus=3.0, cpuset="0,2")) == 2
    left = owned("a", 4)
    left.in_force = left.in_force._replace(limits={"cpus": 0.5, "cpuset": "0"})  # ours, perhaps
    assert needed_cpus(left) == 4


def test_a_waiting_job_of_a_heavy_owner_is_not_found_idle() -> None:
    heavy = owned("a", ratio=4.0)
    assert 40.0 <= heavy.owner.waiting_weight < 41.0
    assert owned("a", ratio=0.5).owner.waiting_weight >= 10.24  # the least weight of version 2


owners = st.builds(
    Owner,
    cpus=st.none() | st.floats(0.01, 10),
    ratio=st.floats(2 / 1024, 256),
    cpuset=st.none() | st.sets(st.integers(0, 7), min_size=1).map(sorted).map(format_cpus),
)


@given(
    asked=st.lists(st.tuples(owners, st.integers(1, 4), st.floats(0.001, 1)), max_size=6),
    silent=st.lists(owners, max_size=2),
    cpus=st.integers(1, 8),
    mode=st.sampled_from(Mode),
    is_mild=st.booleans(),
)
def test_no_job_gets_more_than_its_owner_asked_for(asked, silent, cpus, mode, is_mild) -> None:
    jobs = [job(str(at), threads) for at, (_, threads, _) in enumerate(asked)]
    for one, (owner, _, _) in zip(jobs, asked, strict=True):
        one.owner = owner
    others = [ContainerHistory(f"s{at}", "s", 0, managed=True) for at in range(len(silent))]
    for one, owner in zip(others, silent, strict=True):
        one.owner = owner
    shares: dict[str, float | None] = {str(at): share for at, (_, _, share) in enumerate(asked)}
    state: HostState = host(*jobs, cpus=float(cpus), shares=shares)
    choice = ModeChoice(mode, "", is_mild=is_mild)
    found = realised(choice, state, silent=others, competing=others)
    for one in (*jobs, *others):
        setting = found.settings.get(one.id, {})
        if "cpus" in setting and one.owner.cpus is not None:
            assert (cpus if setting["cpus"] is None else setting["cpus"]) <= one.owner.cpus or (
                one.owner.cpus >= cpus and setting["cpus"] is None
            )
        if "cpuset" in setting and one.owner.cpuset is not None:
            assert set(parse_cpus(setting["cpuset"])) <= set(parse_cpus(one.owner.cpuset))
        if "weight" in setting:
            assert 2 <= setting["weight"] <= 262144


@examples(50)
@given(
    asked=st.lists(
        st.tuples(
            st.sampled_from((2, 100, 512, 1023, 1024, 1500, 4096, 262144)),
            st.integers(1, 4),
            st.floats(0.001, 1),
            st.booleans(),
        ),
        min_size=2,
        max_size=6,
    ),
    cpus=st.integers(1, 8),
    mode=st.sampled_from((Mode.WEIGHT, Mode.PRIORITY, Mode.ROTATE)),
    is_mild=st.booleans(),
    is_even=st.booleans(),
    others=st.sampled_from((None, 0.1)),
    later=st.lists(st.integers(1, 200), max_size=4),
)
def test_weights_keep_owners_in_order(asked, cpus, mode, is_mild, is_even, others, later) -> None:
    """Also while one has waited for too long, and where nothing is known of some."""
    jobs = [job(str(at), threads) for at, (_, threads, _, _) in enumerate(asked)]
    for one, (weight, _, _, _) in zip(jobs, asked, strict=True):
        one.owner = Owner(ratio=weight / 1024)
    shares = {
        str(at): Allocation(share, "-", "", unlimited=unknown)
        for at, (_, _, share, unknown) in enumerate(asked)
    }
    state = HostState("h", float(cpus), tuple(jobs), shares, others=others)
    choice = ModeChoice(mode, "", is_mild=is_mild, is_even=is_even)
    queue, now = Queue(), 0
    for seconds in (0, *later):
        now += seconds * 1_000_000
        found = realised(choice, state, queue=queue, now=now)
        queue = found.queue
        set_ = [found.settings[one.id]["weight"] for one in jobs]
        pairs = itertools.product(zip(asked, set_, strict=True), repeat=2)
        for ((more, *_), weight), ((less, *_), other) in pairs:
            assert weight >= other or more <= less
        takes_turns = any("turn_s" in one for one in found.settings.values())
        assert not takes_turns or len({weight for weight, *_ in asked}) == 1


ASKED = {"owner_cpu_limit_cores": 0.5, "owner_cpu_weight": 2048.0, "owner_cpuset": "1"}
NOTHING = {"owner_cpu_weight": 1024.0}


def wishes(owner: Owner) -> tuple[float | None, float, str | None]:
    return owner.cpus, owner.ratio, owner.cpuset


def owner_after(*changes: dict[str, Any], restarts: bool = False) -> Owner:
    """What is known of an owner after samples with these columns, of a container that plans manage
    where it restarts before each."""
    host = new()
    for number, columns in enumerate(changes):
        more = columns | ({"started_at": at(number * 5)} if restarts else {})
        begin(host, node(number * 5), container(number * 5, "a", number * 2.0, **more))
        read(host, 1)
        host.history.containers[A].managed = restarts
    return host.history.containers[A].owner


def test_the_columns_tell_what_the_owner_asked_for() -> None:
    assert wishes(owner_after(ASKED)) == (0.5, 2.0, "1")
    assert wishes(owner_after({**NOTHING, "cpu_limit_cores": 0.5})) == (None, 1.0, None)
    assert wishes(owner_after(ASKED, NOTHING)) == (None, 1.0, None)
    assert wishes(owner_after(ASKED, {})) == (0.5, 2.0, "1")  # nothing is known at that time


@pytest.mark.parametrize("broken", [-1.0, 0.0, float("inf"), float("nan")])
def test_what_is_no_limit_is_none(broken) -> None:
    found = {"owner_cpu_limit_cores": broken, "owner_cpu_weight": 512.0, "owner_cpuset": "none"}
    assert wishes(owner_after(found)) == (None, 0.5, None)
    assert limits_of(None, broken, "") == {"cpus": None, "weight": 1024.0, "cpuset": None}


def test_without_the_columns_the_first_limits_are_the_owner_s() -> None:
    seen = {"cpu_limit_cores": 0.5, "cpuset": "0", "cpu_weight": 10.0}
    assert wishes(owner_after(seen)) == (0.5, 1.0, "0")
    assert wishes(owner_after({}, seen)) == (None, 1.0, None)
    assert wishes(owner_after({"cpu_limit_cores": 2.0, "cpuset": "0-1"})) == (None, 1.0, None)


def test_a_container_that_restarts_has_the_owner_that_it_had() -> None:
    found = owner_after({"cpu_limit_cores": 0.5}, {"cpu_limit_cores": 0.2}, restarts=True)
    assert wishes(found) == (0.5, 1.0, None)


def test_what_a_plan_has_set_is_no_wish_of_the_owner() -> None:
    """Where dl-probe cannot read the journal, it takes what is in force for the owner's."""
    owner = Owner().after_sample(limits_of(1.5, 1024, None), limits_of(1.5, 1024, None))
    for cpus in (0.4, 0.8):
        owner = owner.after_plan({"cpus": cpus})
    for ours in (0.4, 0.8):  # also the one before the last, while that is being applied
        seen = limits_of(ours, 1024, None)
        assert wishes(owner.after_sample(seen, seen)) == (1.5, 1.0, None)
    theirs = limits_of(0.6, 2048, None)
    assert wishes(owner.after_sample(theirs, theirs)) == (0.6, 2.0, None)
    none = limits_of(None, 1024, None)
    assert wishes(owner.after_plan({"cpus": None}).after_sample(none, none)) == (None, 1.0, None)
    # The journal says it: it is not what is in force.
    told = owner.after_sample(limits_of(0.4, 1024, None), limits_of(0.8, 1024, None))
    assert wishes(told) == (0.4, 1.0, None)


def test_few_values_are_remembered() -> None:
    owner = Owner()
    for number in range(20):
        owner = owner.after_plan({"cpus": number / 10, "turn_s": 5.0})
    assert owner.planned == {"cpus": (1.4, 1.5, 1.6, 1.7, 1.8, 1.9)}
    assert owner.after_plan({"cpus": 1.9}) is owner
    assert owner.when_first_seen(limits_of(None, None, None), 2.0).planned == owner.planned


def rows(**columns: Any) -> list[Row]:
    """Two jobs that report, sampled three times; the first has these columns."""
    found = []
    for number in range(3):
        now = number * 10.0
        found += [
            node(now),
            container(now, "a", now, thread_count=1, **{"cpuset": "0-1"} | columns),
            container(now, "b", now, thread_count=1, cpuset="0-1", **NOTHING),
            *(point(now, name, 1 / (number + 1), step=number) for name in "ab"),
        ]
    return found


def settings(found: list[Row], mode: Mode, owners: str = "respect") -> dict[str, Any]:
    return sets(having_read(planner("fair", mode, owners=owners), found).plan({}))


IN_FORCE = {"cpu_limit_cores": 0.5, "cpu_weight": 2048.0, "cpuset": "1"}


@pytest.mark.parametrize("mode", [Mode.QUOTA, Mode.WEIGHT, Mode.PRIORITY])
def test_what_the_owner_has_is_no_action(mode) -> None:
    made = settings(rows(**IN_FORCE, **ASKED), mode)
    assert "a" not in made
    assert made.get("b") == {Mode.QUOTA: {"cpus": 1.0}}.get(mode)


@pytest.mark.parametrize(
    ("mode", "ignored"), [(Mode.QUOTA, {"cpus": 1.0}), (Mode.WEIGHT, {"weight": 1024.0})]
)
def test_owners_can_be_ignored(mode, ignored) -> None:
    assert settings(rows(**IN_FORCE, **ASKED), mode, "ignore")["a"] == ignored


def test_ours_in_force_is_taken_back_to_the_owner_s() -> None:
    ours = {"cpu_limit_cores": 0.1, "cpu_weight": 10.0, "cpuset": "0"}
    found = rows(**ours, **ASKED)
    assert settings(found, Mode.QUOTA)["a"] == {"cpus": 0.5}
    assert settings(found, Mode.WEIGHT)["a"] == {"weight": 2048.0}


def test_a_quota_of_an_unknown_owner_is_not_raised() -> None:
    found = rows(cpu_limit_cores=0.5)
    assert "a" not in settings(found, Mode.QUOTA)
    assert settings(found, Mode.QUOTA, "ignore")["a"] == {"cpus": 1.0}
    made = having_read(planner("fair", Mode.QUOTA), found)
    assert "its owner asked for 0.5 CPUs at most" in decisions_of(made)["a"].reason


def test_the_state_hands_on_what_the_owner_asked_for() -> None:
    found = rows(**IN_FORCE, **ASKED)
    later = [
        node(30.0),
        container(30.0, "a", 30.0, thread_count=1, cpu_limit_cores=0.1, cpuset="1"),
        container(30.0, "b", 30.0, thread_count=1, cpuset="0-1", cpu_limit_cores=1.0),
        *(point(30.0, name, 0.2, step=4) for name in "ab"),
    ]
    plan = plan_in_two(partial(planner, "fair", Mode.QUOTA), [*found, *later], len(found))
    assert sets(plan) == {"a": {"cpus": 0.5}}
