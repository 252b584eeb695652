"""What an epoch takes, worked by hand."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from dltools.plan.policy.epoch_cost import EpochCost


def test_the_start_up_is_not_part_of_an_epoch() -> None:
    # 9 CPU seconds to the first report, start-up and all; then 2 for each epoch.
    cost = EpochCost(1, 9.0)
    assert cost.left(10, 1, 9.0) is None
    cost = cost.after(2, 11.0)
    assert cost.left(10, 2, 11.0) == 16.0
    assert cost.left(10, 2, 12.5) == 14.5  # 1.5 of the next epoch's 2
    assert cost.left(10, 2, 99.0) == 14.0  # one epoch at most: the job competes


def test_time_lost_by_competing_does_not_count() -> None:
    cost = EpochCost(1, 9.0).after(2, 11.0).after(3, 31.0)
    assert cost.left(10, 3, 31.0) == 14.0


def test_quick_steps_count_together() -> None:
    cost = EpochCost(10, 1.0)
    for step in range(11, 31):
        cost = cost.after(step, 1.0 + (step - 10) * 0.1)
    assert cost.position == 30
    assert cost.left(40, 30, 3.0) is not None
    assert abs((cost.left(40, 30, 3.0) or 0) - 1.0) < 1e-9


def test_an_epoch_that_becomes_longer_is_noticed() -> None:
    cost = EpochCost(1, 0.0).after(2, 1.0)
    for epoch in range(3, 11):
        cost = cost.after(epoch, cost.work + 4.0)
    assert cost.left(20, 10, cost.work) == 40.0


def test_training_that_begins_anew_has_no_pace() -> None:
    cost = EpochCost(8, 0.0).after(9, 1.0).after(1, 5.0)
    assert cost == EpochCost(1, 5.0)


@given(st.lists(st.tuples(st.floats(0, 1e6), st.floats(0, 1e3)), max_size=30),
       st.floats(0, 1e6), st.floats(0, 1e6))  # fmt: skip
def test_what_is_left_is_never_negative(
    reports: list[tuple[float, float]], total: float, attained: float
) -> None:
    cost, work = EpochCost(0.0, 0.0), 0.0
    for position, more in reports:
        work += more
        cost = cost.after(position, work)
        left = cost.left(total, position, attained)
        assert left is None or left >= 0
