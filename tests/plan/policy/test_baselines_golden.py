"""las, srtf, slaq and the ways to hand a node out, worked by hand."""

from __future__ import annotations

import math

import pytest
from helpers.observing import container, fold, node, point, verdicts
from hypothesis import given
from hypothesis import strategies as st

from dltools.observations.table import Row
from dltools.plan.policy import las, slaq, srtf
from dltools.plan.policy.container_history import ContainerHistory
from dltools.plan.policy.shares import beta_floor, in_line, in_proportion
from dltools.plan.realisation.mode import Mode


def job(name: str, threads: int | None = None) -> ContainerHistory:
    return ContainerHistory(name, name, "h", arrived=0, threads=threads)


# Handing out


def test_in_line_gives_in_order_what_threads_can_use() -> None:
    # Four CPUs: floors of 0.05; a can use 1/4 of the node, b 1/2, c the rest of it.
    order = [job("a", 1), job("b", 2), job("c", 4)]
    assert in_line(order, 4.0, 0.05) == pytest.approx({"a": 0.25, "b": 0.5, "c": 0.25})
    assert in_line([job("a"), job("b")], 4.0, 0.05) == pytest.approx({"a": 0.95, "b": 0.05})


def test_who_all_have_what_they_can_use_are_not_limited() -> None:
    assert in_line([job("a", 1), job("b", 1)], 4.0, 0.05) == pytest.approx({"a": 0.75, "b": 0.75})


def test_in_proportion_lifts_to_the_floor_at_the_others_cost() -> None:
    # 8 : 1 : 1 of 1 would be 0.8, 0.1, 0.1; with a floor of 0.2 the first has 0.6.
    assert in_proportion({"a": 8, "b": 1, "c": 1}, 1.0, 0.2) == pytest.approx(
        {"a": 0.6, "b": 0.2, "c": 0.2}
    )
    assert in_proportion({"a": 1, "b": 3}, 0.1, 0.2) == {"a": 0.05, "b": 0.05}
    assert in_proportion({"a": 0, "b": 0}, 1.0, 0.0) == {"a": 0.5, "b": 0.5}


@given(
    st.dictionaries(st.text(max_size=2), st.floats(0, 1e9), min_size=1, max_size=9),
    st.floats(1e-3, 1), st.floats(0, 0.3),
)  # fmt: skip
def test_in_proportion_sums_to_the_total_above_the_floor(
    weights: dict[str, float], total: float, floor: float
) -> None:
    found = in_proportion(weights, total, floor)
    assert math.fsum(found.values()) == pytest.approx(total)
    assert min(found.values()) >= min(floor, total / len(weights)) * (1 - 1e-9)


def test_flowcon_s_floor() -> None:
    assert beta_floor(3) == pytest.approx(1 / ((1 + 1 / 3) * 3))


# Least attained service


@pytest.mark.parametrize(
    ("attained", "queue"), [(0, 1), (59.9, 1), (60, 2), (599, 2), (600, 3), (1e9, 3)]
)
def test_queues_of_attained_service(attained: float, queue: int) -> None:
    assert las.queue(attained, las.Parameters()) == queue


def test_who_has_had_least_goes_first_and_within_a_queue_too() -> None:
    made: list[Row] = []
    used = {"old": (700, 700), "mid": (80, 80), "early": (10, 10), "late": (None, 1)}
    for tick in (0, 1):
        made.append(node(10 * tick))
        for name, seconds in used.items():
            if seconds[tick] is not None:
                made.append(container(10 * tick, name, seconds[tick]))
                made.append(point(10 * tick, name, 1.0))
    found = verdicts(fold(made, las.LAS, Mode.WEIGHT))
    order = sorted(found, key=lambda name: found[name].reason.partition(",")[2])
    assert order == ["late", "early", "mid", "old"]
    floor = 0.02 / 4
    assert found["late"].allocation.share == pytest.approx(1 - 3 * floor)
    assert found["old"].allocation.share == pytest.approx(floor)
    assert [found[name].job_class for name in order] == ["Q1", "Q1", "Q2", "Q3"]


# Shortest remaining time first


def trained(name: str, epochs: int, of: int, seconds: float) -> list[Row]:
    label = f'{{"dltools.epochs": "{of}"}}'
    return [container(10, name, seconds, labels=label), point(10, name, 0.5, epoch=float(epochs))]


def test_the_shortest_by_its_epochs_goes_first() -> None:
    # a: 50 CPU s for 5 of 10 epochs, 50 left; b: 90 for 9, 10 left; c: 20 for 1 of 3, 40 left.
    made = [node(10), *trained("a", 5, 10, 50), *trained("b", 9, 10, 90), *trained("c", 1, 3, 20)]
    found = fold(made, srtf.SRTF, Mode.WEIGHT)
    reasons = {name: v.reason for name, v in verdicts(found).items()}
    assert reasons == {
        "a": "3. of 3: epoch 5 of 10: 50 CPU s left",
        "b": "1. of 3: epoch 9 of 10: 10 CPU s left",
        "c": "2. of 3: epoch 1 of 3: 40 CPU s left",
    }
    # Two CPUs: 10, 50 and 100 CPU s one after the other; in equal shares 15, 45 and 50 s.
    assert found.plan({}).gain == (
        "mean completion of 3 jobs in 26.7 s, 36.7 s in equal shares (predicted)"
    )


def test_who_is_first_stays_so_unless_another_is_shorter_by_a_fifth() -> None:
    begin = [node(10), *trained("a", 5, 10, 50), *trained("b", 4, 10, 40)]  # 50 and 60 left
    later = [row | {"time": row["time"].replace(minute=1)} for row in begin]
    for row, epoch in ((later[2], 5.0), (later[4], 5.1)):
        row["epoch"] = epoch
    later[3]["cpu_seconds"] = 49.0  # 47 left for b: shorter than 50, but not by a fifth
    found = verdicts(fold([*begin, *later], srtf.SRTF, Mode.WEIGHT))
    assert found["a"].reason.startswith("1. of 2")
    found = verdicts(fold([*begin, *later], srtf.SRTF, Mode.WEIGHT, hysteresis=0.0))
    assert found["b"].reason.startswith("1. of 2")


def test_the_unknown_is_explored_first_and_then_taken_to_need_what_it_has_had() -> None:
    made = [node(10), *trained("known", 9, 10, 90), container(10, "new", 5), point(10, "new", 1.0),
            container(10, "opaque", 50), point(10, "opaque", 1.0)]  # fmt: skip
    found = verdicts(fold(made, srtf.SRTF, Mode.WEIGHT))
    assert [found[name].job_class for name in ("new", "known", "opaque")] == [
        "new", "known", "guessed",
    ]  # fmt: skip
    assert [found[name].reason[0] for name in ("new", "known", "opaque")] == ["1", "2", "3"]
    assert "taken to need the 50 CPU s that it has had once more" in found["opaque"].reason


def test_a_guess_is_not_behind_a_longer_job() -> None:
    # opaque has had 50 CPU s; known has 450 left.
    made = [node(10), *trained("known", 1, 10, 50), container(10, "opaque", 50),
            point(10, "opaque", 1.0)]  # fmt: skip
    found = verdicts(fold(made, srtf.SRTF, Mode.WEIGHT))
    assert found["opaque"].reason[0] == "1"


# SLAQ


def test_the_steeper_curve_gets_more_and_all_get_the_floor() -> None:
    made: list[Row] = []
    for tick in range(12):
        now = 5 * tick
        made.append(node(now))
        for name, value in (("steep", 1.0 - 0.05 * tick), ("flat", 0.5 + 0.5 * 0.1**tick)):
            made += [container(now, name, now), point(now, name, value)]
    found = verdicts(fold(made, slaq.SLAQ, Mode.WEIGHT))
    steep, flat = found["steep"].allocation.share or 0, found["flat"].allocation.share or 0
    assert steep + flat == pytest.approx(1)
    assert flat == pytest.approx(0.1 / 2)


def test_a_job_of_unknown_curve_has_an_equal_share() -> None:
    made: list[Row] = []
    for tick in range(12):
        made += [node(5 * tick), container(5 * tick, "known", 5 * tick),
                 point(5 * tick, "known", 1.0 - 0.05 * tick)]  # fmt: skip
    made += [container(55, "new", 1), point(55, "new", 1.0)]
    found = verdicts(fold(made, slaq.SLAQ, Mode.WEIGHT))
    assert found["new"].allocation.share == pytest.approx(0.5)
    assert found["known"].allocation.share == pytest.approx(0.5)
