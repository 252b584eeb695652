"""How CPUs are shared: worked by hand, and laws that always hold."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dltools.sim.cpu_sharing import Limits, Turn, allocate, turns


def test_equal_weights_share_equally_up_to_what_each_can_use() -> None:
    assert allocate([2, 2], [Limits(), Limits()], 2.0) == [1, 1]
    assert allocate([1, 4, 4], [Limits(), Limits(), Limits()], 4.0) == pytest.approx([1, 1.5, 1.5])
    assert allocate([0.5, 2], [Limits(), Limits()], 2.0) == pytest.approx([0.5, 1.5])


def test_weights_quotas_lists_and_pauses() -> None:
    weighted = [Limits(weight=1024), Limits(weight=512)]
    assert allocate([2, 2], weighted, 2.0) == pytest.approx([4 / 3, 2 / 3])
    assert allocate([2, 2], [Limits(cpus=0.5), Limits()], 2.0) == pytest.approx([0.5, 1.5])
    assert allocate([2, 2], [Limits(listed=1), Limits()], 2.0) == pytest.approx([1, 1])
    assert allocate([2, 2], [Limits(is_paused=True), Limits()], 2.0) == pytest.approx([0, 2])


def test_turns_take_their_shares_of_a_cycle_and_jobs_in_no_group_compete() -> None:
    mine, other, neither = Limits(group=0, turn_s=3), Limits(group=1, turn_s=1), Limits()
    cycle = turns([mine, other, neither])
    assert [turn.share for turn in cycle] == [0.75, 0.25]
    assert [allocate([2, 2, 2], turn.limits, 2.0) for turn in cycle] == [[1, 0, 1], [0, 1, 1]]
    assert turns([neither, neither]) == [Turn(1.0, [neither, neither])]


limits = st.builds(
    Limits,
    cpus=st.none() | st.floats(0.01, 8),
    weight=st.floats(2, 262144),
    is_paused=st.booleans(),
)


@given(st.lists(st.tuples(st.floats(0, 16), limits), max_size=12), st.floats(0.1, 16))
def test_no_more_is_handed_out_than_there_is_and_nothing_is_left_that_a_job_can_use(
    jobs: list[tuple[float, Limits]], cpus: float
) -> None:
    wants, set_ = [want for want, _ in jobs], [limit for _, limit in jobs]
    got = allocate(wants, set_, cpus)
    assert math.fsum(got) <= cpus * (1 + 1e-9)
    caps = [0 if limit.is_paused else min(want, limit.cpus or cpus, cpus)
            for want, limit in jobs]  # fmt: skip
    for cores, cap in zip(got, caps, strict=True):
        assert -1e-12 <= cores <= cap * (1 + 1e-9) + 1e-12
    assert math.fsum(got) == pytest.approx(min(cpus, math.fsum(caps)), rel=1e-6, abs=1e-9)
