"""Disjoint CPU sets, worked by hand."""

from __future__ import annotations

import pytest
from helpers.shared_hosts import host, job, settings_of
from hypothesis import given
from hypothesis import strategies as st

from dltools.notation.resources import parse_cpus
from dltools.plan.realisation.mode import Mode, ModeChoice
from dltools.plan.realisation.realise import realise


def test_cpu_sets_are_disjoint_and_spare_cpus_go_by_share() -> None:
    jobs = [job("a", 1), job("b", 2), job("c", 1)]
    found = host(*jobs, cpus=8.0, shares={"a": 0.6, "b": 0.3, "c": 0.1})
    assert settings_of(Mode.CORES, found, "0-7") == {
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
def test_no_cpu_set_is_smaller_than_a_job_s_threads(
    threads: tuple[int | None, ...], cpuset: str | None, why: str
) -> None:
    jobs = [job(name, count) for name, count in zip("ab", threads, strict=True)]
    found = realise(ModeChoice(Mode.CORES, ""), host(*jobs, shares={"a": 0.5, "b": 0.5}), cpuset)
    assert all(setting == {"cpuset": None} for setting in found.settings.values())
    assert why in found.note


@given(
    st.lists(st.tuples(st.integers(1, 5), st.floats(0.001, 1)), min_size=1, max_size=6),
    st.integers(1, 12),
)
def test_cpu_sets_are_disjoint_and_hold_the_threads(
    jobs: list[tuple[int, float]], cpus: int
) -> None:
    made = [job(str(number), threads) for number, (threads, _) in enumerate(jobs)]
    shares: dict[str, float | None] = {str(number): share for number, (_, share) in enumerate(jobs)}
    found = settings_of(Mode.CORES, host(*made, cpus=cpus, shares=shares), f"0-{cpus - 1}")
    seen: set[int] = set()
    for one in made:
        text = found[one.id]["cpuset"]
        if text is not None:
            own = set(parse_cpus(text))
            assert len(own) >= (one.threads or 0)
            assert not own & seen
            seen |= own


def test_threads_that_just_fit_are_pinned() -> None:
    found = host(job("a"), job("b"), shares={"a": 0.5, "b": 0.5})
    assert settings_of(Mode.CORES, found) == {"a": {"cpuset": "0"}, "b": {"cpuset": "1"}}


def test_one_job_alone_has_all_cpus() -> None:
    found = host(job("a"), shares={"a": 0.5})
    assert settings_of(Mode.CORES, found) == {"a": {"cpuset": None}}


def test_a_spare_cpu_goes_to_the_job_with_the_largest_share_for_each_of_its_cpus() -> None:
    # 4 of 8 CPUs are spare. Shares for each CPU: a 0.3, b 0.7/3 = 0.233; then a 0.15, b 0.233; then
    # a 0.15, b 0.175; then a 0.15, b 0.14: a, b, b, a.
    found = host(job("a", 1), job("b", 3), cpus=8.0, shares={"a": 0.3, "b": 0.7})
    counts = {key: len(parse_cpus(one["cpuset"]))
              for key, one in settings_of(Mode.CORES, found, "0-7").items()}  # fmt: skip
    assert counts == {"a": 3, "b": 5}
