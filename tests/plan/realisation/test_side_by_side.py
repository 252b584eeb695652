"""Quotas, weights and CPUs of its own for each job, worked by hand."""

from dataclasses import replace

import pytest
from helpers.shared_hosts import host, job, settings_of
from hypothesis import given
from hypothesis import strategies as st

from dltools.notation.resources import parse_cpus
from dltools.plan.forecast.promise import Due
from dltools.plan.realisation.mode import Mode, ModeChoice
from dltools.plan.realisation.queue import Queue, QueuePosition
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
        made = realise(choice, found, queue=queue, now=now * 1_000_000, dues=dues)
        queue = made.queue
        weights.append(made.settings["b"]["weight"])
    # A turn of 5 s, less a twentieth: from 3 to 7.75 s.
    assert weights == [20, 2028, 2028, 20]


def test_cpu_sets_are_disjoint_and_spare_cpus_go_by_share() -> None:
    jobs = [job("a", 1), job("b", 2), job("c", 1)]
    found = host(*jobs, cpus=8.0, shares={"a": 0.6, "b": 0.3, "c": 0.1})
    assert settings_of(Mode.CORES, found, "0-7") == {
        "a": {"cpuset": "0-4"},
        "b": {"cpuset": "5-6"},
        "c": {"cpuset": "7"},
    }


@pytest.mark.parametrize(
    ("threads", "cpuset", "why"),
    [
        ((2, 1), "0-1", "3 threads on 2 CPUs"),
        ((1, None), "0-1", "threads of b are unknown"),
        ((1, 1), None, "numbers are unknown"),
    ],
)
def test_no_cpu_set_is_smaller_than_a_job_s_threads(threads, cpuset, why) -> None:
    jobs = [job(name, count) for name, count in zip("ab", threads, strict=True)]
    found = realise(ModeChoice(Mode.CORES, ""), host(*jobs, shares={"a": 0.5, "b": 0.5}), cpuset)
    assert all(setting == {"cpuset": None} for setting in found.settings.values())
    assert why in found.note


@given(
    st.lists(st.tuples(st.integers(1, 5), st.floats(0.001, 1)), min_size=1, max_size=6),
    st.integers(1, 12),
)
def test_cpu_sets_are_disjoint_and_hold_the_threads(jobs, cpus) -> None:
    made = [job(str(number), threads) for number, (threads, _) in enumerate(jobs)]
    shares: dict[str, float | None] = {str(number): share for number, (_, share) in enumerate(jobs)}
    found = settings_of(Mode.CORES, host(*made, cpus=cpus, shares=shares), f"0-{cpus - 1}")
    seen: set[int] = set()
    for one in made:
        text = found[one.id]["cpuset"]
        if text is not None:
            own = set(parse_cpus(text))
            assert len(own) >= (one.use.threads or 0)
            assert not own & seen
            seen |= own


def test_one_job_alone_has_all_cpus() -> None:
    found = host(job("a"), shares={"a": 0.5})
    assert settings_of(Mode.CORES, found) == {"a": {"cpuset": None}}


def test_a_spare_cpu_goes_to_the_job_with_the_largest_share_for_each_of_its_cpus() -> None:
    # 4 of 8 CPUs are spare. Shares for each CPU: a 0.3, b 0.7/3 = 0.233; then a 0.15, b 0.233; then
    # a 0.15, b 0.175; then a 0.15, b 0.14: a, b, b, a.
    found = host(job("a", 1), job("b", 3), cpus=8.0, shares={"a": 0.3, "b": 0.7})
    made = settings_of(Mode.CORES, found, "0-7")
    assert [len(parse_cpus(made[key]["cpuset"])) for key in "ab"] == [3, 5]


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
def test_an_order_that_ends_pays_back_whom_it_has_held_back_too_long(
    ordered, due, others, weight, kept
) -> None:
    a, b = job("a"), job("b")
    first, waits = {a.run_id: QueuePosition(True, 0)}, {b.run_id: QueuePosition(False, 0)}
    found = realise(
        ModeChoice(Mode.WEIGHT, "", is_even=True),
        replace(host(a, b, shares={"a": 0.9, "b": 0.1}), others=others),
        queue=Queue(first | waits) if ordered else Queue(),
        dues={a.run_id: Due(99.0, 1.0), b.run_id: due},
    )
    assert found.settings == {"a": {"weight": 1024}, "b": {"weight": weight}}
    assert bool(found.queue.positions) is (kept and ordered)
