"""From shares to settings, worked by hand, with every guard."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from dltools.notation.cpu_lists import parse_cpus
from dltools.plan.policy.base import Allocation, HostState
from dltools.plan.policy.container_history import ContainerHistory
from dltools.plan.policy.metric_series import Series
from dltools.plan.realisation.mode import Mode, ModeChoice, RealisationOptions, choose_mode
from dltools.plan.realisation.queue import Queue, patience_s
from dltools.plan.realisation.realise import realise


def job(name: str, threads: int | None = 1, arrived: int = 0, **labels: str) -> ContainerHistory:
    track = ContainerHistory(name, name, "h", arrived, threads=threads)
    track.label({key.replace("_", "."): value for key, value in labels.items()})
    track.metrics["loss"] = Series()
    return track


def node(
    *jobs: ContainerHistory, cpus: float = 2.0, shares: dict[str, float | None] | None = None
) -> HostState:
    allocations = {name: Allocation(share, "-", "") for name, share in (shares or {}).items()}
    return HostState("h", cpus, jobs, allocations)


def settings(mode: Mode, found: HostState, cpuset: str | None = "0-1") -> dict[str, Any]:
    return dict(realise(ModeChoice(mode, ""), found, cpuset).settings)


def test_quota() -> None:
    found = node(job("a"), job("b"), job("c"), shares={"a": 0.25, "b": 1.0, "c": 0.001})
    assert settings(Mode.QUOTA, found) == {
        "a": {"cpus": 0.5},
        "b": {"cpus": None},
        "c": {"cpus": 0.01},
    }
    assert "sum to 2.51 of 2 CPUs" in realise(ModeChoice(Mode.QUOTA, ""), found).note


def test_no_quota_is_zero_on_the_smallest_node() -> None:
    assert settings(Mode.QUOTA, node(job("a"), cpus=0.0005, shares={"a": 0.5})) == {
        "a": {"cpus": None}
    }


def test_weight() -> None:
    found = node(job("a"), job("b"), shares={"a": 0.75, "b": 0.25})
    assert settings(Mode.WEIGHT, found) == {"a": {"cpu_weight": 1536}, "b": {"cpu_weight": 512}}


def test_priority_puts_those_first_that_the_cpus_hold() -> None:
    jobs = [job("a", 2), job("b", 2), job("c", 2), job("d", 2), job("e", 2)]
    shares = {"a": 0.1, "b": 0.4, "c": 0.3, "d": 0.15, "e": 0.05}
    weights = {
        k: v["cpu_weight"] for k, v in settings(Mode.PRIORITY, node(*jobs, shares=shares)).items()
    }
    assert weights == {"b": 1024, "c": 10, "d": 2, "a": 2, "e": 2}
    wide = node(*jobs, cpus=4.0, shares=shares)
    weights = {k: v["cpu_weight"] for k, v in settings(Mode.PRIORITY, wide).items()}
    assert weights == {"b": 1024, "c": 1024, "d": 10, "a": 10, "e": 2}


def test_a_narrow_job_that_has_all_it_can_use_is_not_behind_a_wide_one() -> None:
    # On 8 CPUs: the narrow one has 1/8, all that its thread can use; the wide ones have 6/8 and 1/8
    # of what their 8 threads can.
    jobs = [job("wide", 8), job("next", 8), job("narrow", 1)]
    found = node(*jobs, cpus=8.0, shares={"wide": 0.75, "next": 0.125, "narrow": 0.125})
    weights = {k: v["cpu_weight"] for k, v in settings(Mode.PRIORITY, found, "0-7").items()}
    assert weights == {"narrow": 1024, "wide": 10, "next": 2}


def test_who_fits_beside_the_first_runs_with_them() -> None:
    # a has 3 of 4 CPUs; b of 2 threads waits for a place, and c of 1 thread takes the spare CPU.
    jobs = [job("a", 3), job("b", 2), job("c", 1)]
    found = node(*jobs, cpus=4.0, shares={"a": 0.75, "b": 0.2, "c": 0.05})
    weights = {k: v["cpu_weight"] for k, v in settings(Mode.PRIORITY, found, "0-3").items()}
    assert weights == {"a": 1024, "b": 10, "c": 1024}


def test_equals_take_turns_beginning_with_who_came_first() -> None:
    jobs = [job("a", 2, arrived=9), job("b", 2, arrived=1), job("c", 2, arrived=10)]
    found = node(*jobs, shares=dict.fromkeys("abc", 1 / 3))
    assert list(fronts(found, [0, 2, 5, 7, 10, 15, 20])) == ["b", "b", "a", "a", "c", "b", "a"]


def test_without_a_line_who_has_had_least_is_first_among_equals() -> None:
    jobs = [job("a", 2), job("b", 2, arrived=1), job("c", 2, arrived=2)]
    first = []
    for used in ((9.0, 0.0, 0.0), (9.0, 9.0, 0.0), (9.0, 9.0, 9.0), (18.0, 9.0, 9.0)):
        for one, seconds in zip(jobs, used, strict=True):
            one.samples = [(3, seconds)]
        first += fronts(node(*jobs, shares=dict.fromkeys("abc", 1 / 3)), [0])
    assert first == ["b", "c", "a", "b"]


def fronts(found: HostState, seconds: list[int]) -> Iterator[str]:
    """Yield the names of those at the first level at these times."""
    queue = Queue()
    for now in seconds:
        made = realise(ModeChoice(Mode.PRIORITY, ""), found, queue=queue, now=now * 1_000_000)
        queue = made.queue
        yield "".join(sorted(k for k, v in made.settings.items() if v["cpu_weight"] == 1024))


def test_two_of_three_equals_run_at_a_time_and_each_as_often() -> None:
    jobs = [job(name, 2) for name in "abc"]
    found = node(*jobs, cpus=4.0, shares=dict.fromkeys("abc", 1 / 3))
    first = list(fronts(found, list(range(0, 300, 5))))
    assert all(len(names) == 2 for names in first)
    assert [sum(name in names for names in first) for name in "abc"] == [40, 40, 40]


def test_who_waits_gets_a_turn_within_its_bound() -> None:
    # Three groups: a minute's patience, in steps of 2 s. Without turns a alone would be first.
    jobs = [job(name, 2) for name in "abc"]
    found = node(*jobs, shares={"a": 0.9, "b": 0.06, "c": 0.04})
    seconds = list(range(0, 600, 2))
    first = list(fronts(found, seconds))
    assert first[:29] == ["a"] * 29
    assert first[29:36] == ["b", "b", "b", "c", "c", "c", "a"]
    for name in "bc":
        turns = [at for at, names in zip(seconds, first, strict=True) if name in names]
        assert max(b - a for a, b in pairwise([0, *turns, 600])) <= patience_s(3) + 2 * 5 + 2
    assert first.count("a") > 0.8 * len(first)


@given(
    st.lists(st.tuples(st.integers(1, 4), st.floats(0.001, 1), st.integers(0, 2)),
             min_size=1, max_size=6),
    st.integers(1, 6), st.integers(1, 10),
)  # fmt: skip
@example([(1, 0.125, 0)] * 3, 1, 1)  # all wait: they are three groups, not four
@pytest.mark.parametrize("mode", [Mode.PRIORITY, Mode.WEIGHT, Mode.QUOTA])
def test_nobody_waits_longer_than_the_bound(
    mode: Mode, given_: list[tuple[int, float, int]], cpus: int, every: int
) -> None:
    jobs = tuple(job(str(number), threads) for number, (threads, *_) in enumerate(given_))
    allocations = {
        str(k): Allocation(share, "-", "", rank=rank) for k, (_, share, rank) in enumerate(given_)
    }
    found, queue, waits = (
        HostState("h", float(cpus), jobs, allocations),
        Queue(),
        dict.fromkeys(allocations, 0),
    )
    for now in range(0, 900, every):
        made = realise(ModeChoice(mode, ""), found, queue=queue, now=now * 1_000_000)
        queue = made.queue
        for key in waits:
            place = queue.positions[f"{key}@0"]
            waits[key] = 0 if place.first else waits[key] + every
            assert waits[key] <= patience_s(len(jobs)) + (5 + every) * len(jobs)


def test_free_jobs_take_turns_with_the_first_and_the_converged_stand_behind() -> None:
    jobs = tuple(job(name, 2) for name in ("known", "flat", "new"))
    allocations = {"known": Allocation(0.4, "-", ""), "flat": Allocation(0.6, "-", "", rank=2),
              "new": Allocation(1.0, "-", "", unlimited=True)}  # fmt: skip
    found = HostState("h", 2.0, jobs, allocations)
    assert list(fronts(found, [0, 5, 10, 15])) == ["known", "new", "known", "new"]
    assert settings(Mode.QUOTA, found)["new"] == {"cpus": None}
    assert settings(Mode.WEIGHT, found)["new"] == {"cpu_weight": 1024}
    # An equal share of turns: 2 s * 3 / (0.4 + 0.6 + 1/3) of it.
    turn = pytest.approx(2 * 3 / 3 / (1 + 1 / 3), abs=1e-3)
    assert settings(Mode.ROTATE, found)["new"]["turn_s"] == turn


def test_equal_shares_are_equal_whatever_the_threads() -> None:
    # On 4 CPUs: five equal shares; the wide one is not behind the narrow ones.
    jobs = (*(job(name, 1) for name in "abcd"), job("wide", 2))
    found = node(*jobs, cpus=4.0, shares=dict.fromkeys((*"abcd", "wide"), 0.2))
    first = list(fronts(found, [0, 5, 10, 15]))
    assert any("wide" in names for names in first[:2])


def test_a_low_weight_gets_its_turn_too() -> None:
    jobs = (job("a", 2), job("b", 2))
    found, weights, queue = node(*jobs, shares={"a": 0.99, "b": 0.01}), [], Queue()
    for now in (0, 30, 57, 60, 63):
        made = realise(ModeChoice(Mode.WEIGHT, ""), found, queue=queue, now=now * 1_000_000)
        queue = made.queue
        weights.append(made.settings["b"]["cpu_weight"])
    assert weights == [20, 20, 2028, 2028, 20]


@pytest.mark.parametrize(
    ("mode", "setting"),
    [
        (Mode.QUOTA, {"cpus": None}),
        (Mode.WEIGHT, {"cpu_weight": 1024}),
        (Mode.PRIORITY, {"cpu_weight": 1024}),
        (Mode.CORES, {"cpuset": None}),
        (Mode.ROTATE, None),
    ],
)
def test_a_restarted_container_begins_as_containers_do(
    mode: Mode, setting: dict[str, Any] | None
) -> None:
    again = ContainerHistory("again", "again", "h", 0, managed=True)
    stranger = ContainerHistory("stranger", "stranger", "h", 0, weight=512.0)
    found = realise(ModeChoice(mode, ""), node(job("a"), job("b"), shares={"a": 0.5, "b": 0.5}),
                    "0-1", (again, stranger))  # fmt: skip
    assert found.settings.get("again") == setting
    assert "stranger" not in found.settings
    # Nobody else runs, and it is seen to all the same.
    assert realise(ModeChoice(mode, ""), node(), "0-1", (again,)).settings.get("again") == setting


def test_who_says_nothing_and_has_the_weight_of_a_waiting_job_gets_the_default() -> None:
    left = ContainerHistory("left", "left", "h", 0, weight=2.0)
    acting = node(job("a"), shares={"a": 1.0})
    found = realise(ModeChoice(Mode.PRIORITY, ""), acting, without_progress=(left,))
    assert found.settings["left"] == {"cpu_weight": 1024}
    idle = node(job("a"), shares={"a": None})
    assert realise(ModeChoice(Mode.PRIORITY, ""), idle, without_progress=(left,)).settings == {}


def test_serving_containers_never_stand_in_line() -> None:
    jobs = [job("serves", 2, dltools_qoe="0.1"), job("a", 2), job("b", 2)]
    found = node(*jobs, shares={"serves": 0.1, "a": 0.6, "b": 0.3})
    assert settings(Mode.PRIORITY, found)["serves"] == {"cpu_weight": 1024}
    assert "serves" not in settings(Mode.ROTATE, found)


def test_rotate_packs_groups_and_gives_turns_by_shares() -> None:
    jobs = [job("a", 2), job("b", 1), job("c", 1)]
    found = realise(
        ModeChoice(Mode.ROTATE, "", 2.0), node(*jobs, shares={"a": 0.75, "b": 0.2, "c": 0.05})
    )
    assert found.takes_turns
    assert found.settings == {
        "a": {"group": 0, "turn_s": 3.0}, "b": {"group": 1, "turn_s": 1.0},
        "c": {"group": 1, "turn_s": 1.0},
    }  # fmt: skip


def test_no_turn_is_shorter_than_a_tenth_of_the_quantum() -> None:
    jobs = [job("a", 2), job("b", 2)]
    found = settings(Mode.ROTATE, node(*jobs, shares={"a": 0.999, "b": 0.001}))
    assert found["b"]["turn_s"] == 0.2


def test_nobody_rotates_where_all_fit() -> None:
    assert settings(Mode.ROTATE, node(job("a"), job("b"), shares={"a": 0.5, "b": 0.5})) == {}


def test_cores_are_disjoint_and_spare_ones_go_by_share() -> None:
    jobs = [job("a", 1), job("b", 2), job("c", 1)]
    found = node(*jobs, cpus=8.0, shares={"a": 0.6, "b": 0.3, "c": 0.1})
    assert settings(Mode.CORES, found, "0-7") == {
        "a": {"cpuset": "0-4"}, "b": {"cpuset": "5-6"}, "c": {"cpuset": "7"},
    }  # fmt: skip


@pytest.mark.parametrize(
    ("threads", "cpuset", "why"),
    [
        ((2, 1), "0-1", "3 threads on 2 CPUs"),
        ((1, None), "0-1", "threads of b are unknown"),
        ((1, 1), None, "numbers are unknown"),
    ],
)
def test_no_list_is_below_a_job_s_threads(
    threads: tuple[int | None, ...], cpuset: str | None, why: str
) -> None:
    jobs = [job(name, count) for name, count in zip("ab", threads, strict=True)]
    found = realise(ModeChoice(Mode.CORES, ""), node(*jobs, shares={"a": 0.5, "b": 0.5}), cpuset)
    assert all(setting == {"cpuset": None} for setting in found.settings.values())
    assert why in found.note


@given(
    st.lists(st.tuples(st.integers(1, 5), st.floats(0.001, 1)), min_size=1, max_size=6),
    st.integers(1, 12),
)
def test_lists_are_disjoint_and_hold_the_threads(jobs: list[tuple[int, float]], cpus: int) -> None:
    made = [job(str(number), threads) for number, (threads, _) in enumerate(jobs)]
    shares: dict[str, float | None] = {str(number): share for number, (_, share) in enumerate(jobs)}
    found = settings(Mode.CORES, node(*made, cpus=cpus, shares=shares), f"0-{cpus - 1}")
    seen: set[int] = set()
    for one in made:
        text = found[one.id]["cpuset"]
        if text is not None:
            own = set(parse_cpus(text))
            assert len(own) >= (one.threads or 0)
            assert not own & seen
            seen |= own


@pytest.mark.parametrize(
    ("threads", "cpus", "expected"),
    [
        ((2, 2), 2.0, Mode.PRIORITY),
        ((1, 1, 1), 2.0, Mode.WEIGHT),  # single threads spin for nobody
        ((2, 2), 4.0, Mode.WEIGHT),  # all fit
        ((8,), 2.0, Mode.WEIGHT),  # alone
        ((None, None, None), 2.0, Mode.WEIGHT),
    ],
)
def test_the_default_looks_at_threads_and_cores(
    threads: tuple[int | None, ...], cpus: float, expected: Mode
) -> None:
    jobs = [job(str(number), count) for number, count in enumerate(threads)]
    assert choose_mode(RealisationOptions(), node(*jobs, cpus=cpus)).mode is expected


def test_beside_serving_containers_the_default_is_weight() -> None:
    jobs = [job("a", 4), job("b", 4), job("s", 4, dltools_qoe="0.1")]
    assert choose_mode(RealisationOptions(), node(*jobs)).mode is Mode.WEIGHT


@pytest.mark.parametrize("mode", Mode)
def test_who_is_granted_nothing_is_set_nothing(mode: Mode) -> None:
    assert settings(mode, node(job("a"), job("b"), shares={"a": None, "b": None})) == {}
    assert settings(mode, node(job("a"), cpus=0.0, shares={"a": 0.5})) == {}
