"""Weights among limits: whole ones within bounds, and steps of version 2 of cgroups."""

import pytest

from dltools.notation.limits import is_step_of_v2, whole_weight


def test_a_weight_is_whole_and_within_bounds() -> None:
    assert [whole_weight(weight) for weight in (0.3, 2.4, 341.3, 1e9)] == [2, 2, 341, 262144]
    assert whole_weight(3000.0, 512.0, 2048.0) == 2048


@pytest.mark.parametrize(
    ("wanted", "present", "expected"),
    [
        (10.0, 10.24, True),
        (2.0, 10.24, True),
        (300.0, 296.96, True),
        (300.0, 307.2, False),
        (1024.0, 1024.0, False),  # whole: not known to be of version 2
    ],
)
def test_a_weight_in_force_is_the_nearest_step(wanted, present, expected) -> None:
    assert is_step_of_v2(wanted, present) is expected
