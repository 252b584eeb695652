"""From shares to settings, worked by hand, with every guard."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dltools.cpus import format_cpus, parse_cpus, widest
from dltools.plans import Op
from dltools.policy.base import Grant, Node
from dltools.policy.history import Series, Track
from dltools.realize import Choice, Chosen, Mode, choose, realize


def job(name: str, threads: int | None = 1, arrived: int = 0, **labels: str) -> Track:
    track = Track(name, name, "h", arrived, threads=threads)
    track.label({key.replace("_", "."): value for key, value in labels.items()})
    track.metrics["loss"] = Series()
    return track


def node(*jobs: Track, cpus: float = 2.0, shares: dict[str, float | None] | None = None) -> Node:
    grants = {name: Grant(share, "-", "") for name, share in (shares or {}).items()}
    return Node("h", cpus, jobs, grants)


def settings(mode: Mode, found: Node, cpuset: str | None = "0-1") -> dict[str, Any]:
    return dict(realize(Chosen(mode, ""), found, cpuset).settings)


def test_quota() -> None:
    found = node(job("a"), job("b"), job("c"), shares={"a": 0.25, "b": 1.0, "c": 0.001})
    assert settings(Mode.QUOTA, found) == {
        "a": {"cpus": 0.5},
        "b": {"cpus": None},
        "c": {"cpus": 0.01},
    }
    assert "sum to 2.51 of 2 CPUs" in realize(Chosen(Mode.QUOTA, ""), found).note


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


def test_among_equals_who_came_first_is_first() -> None:
    jobs = [job("a", 2, arrived=9), job("b", 2, arrived=1)]
    found = settings(Mode.PRIORITY, node(*jobs, shares={"a": 0.5, "b": 0.5}))
    assert found == {"a": {"cpu_weight": 10}, "b": {"cpu_weight": 1024}}


def test_serving_containers_never_stand_in_line() -> None:
    jobs = [job("serves", 2, dltools_qoe="0.1"), job("a", 2), job("b", 2)]
    found = node(*jobs, shares={"serves": 0.1, "a": 0.6, "b": 0.3})
    assert settings(Mode.PRIORITY, found)["serves"] == {"cpu_weight": 1024}
    assert "serves" not in settings(Mode.ROTATE, found)


def test_rotate_packs_groups_and_gives_turns_by_shares() -> None:
    jobs = [job("a", 2), job("b", 1), job("c", 1)]
    found = realize(
        Chosen(Mode.ROTATE, "", 2.0), node(*jobs, shares={"a": 0.75, "b": 0.2, "c": 0.05})
    )
    assert found.op is Op.ROTATE
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
    found = realize(Chosen(Mode.CORES, ""), node(*jobs, shares={"a": 0.5, "b": 0.5}), cpuset)
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
    assert choose(Choice(), node(*jobs, cpus=cpus)).mode is expected


def test_beside_serving_containers_the_default_is_weight() -> None:
    jobs = [job("a", 4), job("b", 4), job("s", 4, dltools_qoe="0.1")]
    assert choose(Choice(), node(*jobs)).mode is Mode.WEIGHT


@pytest.mark.parametrize("mode", Mode)
def test_who_is_granted_nothing_is_set_nothing(mode: Mode) -> None:
    assert settings(mode, node(job("a"), job("b"), shares={"a": None, "b": None})) == {}
    assert settings(mode, node(job("a"), cpus=0.0, shares={"a": 0.5})) == {}


@given(st.sets(st.integers(0, 300), max_size=40))
def test_cpu_lists_survive_a_round_trip(cpus: set[int]) -> None:
    assert parse_cpus(format_cpus(sorted(cpus))) == sorted(cpus)


@pytest.mark.parametrize(
    ("text", "cpus"),
    [("0-3,6", [0, 1, 2, 3, 6]), ("", []), ("x", []), ("3-1", []), ("0-99999", [])],
)
def test_cpu_lists(text: str, cpus: list[int]) -> None:
    assert parse_cpus(text) == cpus


def test_the_widest_list_is_kept() -> None:
    assert widest(None, ["0-1", None, "3"]) == "0-1,3"
    assert widest("0-3", ["1"]) == "0-3"
    assert widest(None, [None]) is None
