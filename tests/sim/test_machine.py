"""The machine: shares worked by hand, laws that always hold, and the measured rows."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dltools.sim.contention import (
    CHANGE_OVER_S,
    LEAST,
    Limits,
    allocate,
    beside,
    exponent,
    speed,
    turns,
    useful,
)


def test_equal_weights_share_equally_up_to_what_each_wants() -> None:
    assert allocate([2, 2], [Limits(), Limits()], 2.0) == [1, 1]
    assert allocate([1, 4, 4], [Limits(), Limits(), Limits()], 4.0) == pytest.approx([1, 1.5, 1.5])
    assert allocate([0.5, 2], [Limits(), Limits()], 2.0) == pytest.approx([0.5, 1.5])


def test_weights_quotas_lists_and_pauses() -> None:
    weighted = [Limits(weight=1024), Limits(weight=512)]
    assert allocate([2, 2], weighted, 2.0) == pytest.approx([4 / 3, 2 / 3])
    assert allocate([2, 2], [Limits(cpus=0.5), Limits()], 2.0) == pytest.approx([0.5, 1.5])
    assert allocate([2, 2], [Limits(own=1), Limits()], 2.0) == pytest.approx([1, 1])
    assert allocate([2, 2], [Limits(paused=True), Limits()], 2.0) == pytest.approx([0, 2])


def test_turns_take_their_parts_of_a_cycle_and_who_is_in_none_competes() -> None:
    mine, other, nobody = Limits(group=0, turn_s=3), Limits(group=1, turn_s=1), Limits()
    cycle = turns([mine, other, nobody])
    assert [part for part, _ in cycle] == [0.75, 0.25]
    handed = [allocate([2, 2, 2], limits, 2.0) for _, limits in cycle]
    assert handed == [[1, 0, 1], [0, 1, 1]]
    # What change-overs of 0.16 s take of turns of 3 s.
    assert useful(2.0, mine, 2, 2.0) == pytest.approx(2.0 * (1 - CHANGE_OVER_S / 3))
    assert turns([nobody, nobody]) == [(1.0, [nobody, nobody])]


limits = st.builds(
    Limits,
    cpus=st.none() | st.floats(0.01, 8),
    weight=st.floats(2, 262144),
    paused=st.booleans(),
)


@given(st.lists(st.tuples(st.floats(0, 16), limits), max_size=12), st.floats(0.1, 16))
def test_no_more_is_handed_out_than_there_is_and_nothing_is_left_that_anybody_wants(
    jobs: list[tuple[float, Limits]], cpus: float
) -> None:
    wants, set_ = [want for want, _ in jobs], [limit for _, limit in jobs]
    got = allocate(wants, set_, cpus)
    assert math.fsum(got) <= cpus * (1 + 1e-9)
    caps = [0 if limit.paused else min(want, limit.cpus or cpus, cpus)
            for want, limit in jobs]  # fmt: skip
    for cores, cap in zip(got, caps, strict=True):
        assert -1e-12 <= cores <= cap * (1 + 1e-9) + 1e-12
    assert math.fsum(got) == pytest.approx(min(cpus, math.fsum(caps)), rel=1e-6, abs=1e-9)


@pytest.mark.parametrize("threads", [1, 2, 4, 16])
def test_full_speed_alone_and_never_more(threads: int) -> None:
    assert speed(threads, threads, 16.0) == threads
    assert speed(99, threads, 16.0) == threads
    assert speed(threads / 2, threads, 16.0) <= threads / 2


def test_one_thread_loses_nothing() -> None:
    assert exponent(1) == 1
    assert speed(0.3, 1, 2.0) == pytest.approx(0.3)


def test_threads_that_sleep_at_barriers_lose_nothing() -> None:
    assert speed(1.0, 2, 2.0, spin=0.0) == 1.0
    assert speed(1.0, 2, 2.0, spin=0.5) > speed(1.0, 2, 2.0)


def test_nobody_loses_more_than_was_measured() -> None:
    assert speed(0.1, 4, 4.0) == pytest.approx(0.1 * LEAST)


def test_a_quota_alone_costs_nothing_more_than_it_holds_back() -> None:
    """Measured: a training of two threads on two CPUs takes 13.0 s, with --cpus 1 26.0 s, with
    --cpus 0.5 51.2 s, start-up included."""
    for cores in (1.0, 0.5):
        held = Limits(cpus=cores)
        left = beside(0, [2.0], [held], 2.0)
        assert useful(cores, held, 2, 2.0, beside=left) == cores


def test_quotas_of_half_each_lose_what_free_competition_loses() -> None:
    """Measured: two trainings, quotas of 1.0 each, done after 37 and 36 s; without, 35 and 34."""
    held = [Limits(cpus=1.0), Limits(cpus=1.0)]
    assert beside(0, [2.0, 2.0], held, 2.0) == 1.0
    assert useful(1.0, held[0], 2, 2.0, beside=1.0) == speed(1.0, 2, 2.0)


WORK = 7.1
"""Seconds that each of the two measured trainings takes alone on two CPUs, with two threads."""

MEASURED = {
    "free competition": ((1024, 1024), (35.0, 34.0)),
    "weights 1024 : 300": ((1024, 300), (14.5, 21.9)),
    "weights 1024 : 2": ((1024, 2), (8.4, 16.7)),
}
"""Weights, and when each of the two was done (seconds)."""


def modelled(weights: tuple[int, int]) -> tuple[float, float]:
    wants, set_ = [2.0, 2.0], [Limits(weight=weight) for weight in weights]
    rates = [speed(c, 2, 2.0) / 2 for c in allocate(wants, set_, 2.0)]
    first = WORK / rates[0]
    return first, first + max(0.0, WORK - rates[1] * first)


@pytest.mark.parametrize("name", MEASURED)
def test_the_measured_rows_are_met_within_a_fifth(name: str) -> None:
    """Modelled: 40.2, 40.2 s (measured 35, 34); 13.5, 20.0 (14.5, 21.9); 7.1, 14.2 (8.4, 16.7)."""
    weights, measured = MEASURED[name]
    for ours, theirs in zip(modelled(weights), measured, strict=True):
        assert abs(ours - theirs) / theirs < 1 / 5


def test_turns_are_met_within_a_tenth() -> None:
    """Modelled: 15.4 s each; measured 16.5 and 16.4, in turns of 2 s."""
    turn = Limits(group=0, turn_s=2.0)
    done = WORK * 2 / (0.5 * useful(2.0, turn, 2, 2.0))
    assert done == pytest.approx(15.4, abs=0.05)
    assert abs(done - 16.45) / 16.45 < 0.1
