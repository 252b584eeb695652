"""What tests wait for comes, or they fail and say what did not."""

import pytest
from helpers.containers import eventually


def test_what_comes_is_returned() -> None:
    counted = iter(range(5))
    assert eventually(lambda: next(counted), lambda number: number > 2, seconds=60) == 3


def test_what_does_not_come_is_a_failure_that_says_what_was_last_seen() -> None:
    state = "created"
    with pytest.raises(AssertionError, match=r'state == "paused".*; last seen: \'created\'$'):
        eventually(lambda: state, lambda state: state == "paused", seconds=0)
    with pytest.raises(AssertionError, match=r"str.isdigit; last seen: False$"):
        eventually(state.isdigit, seconds=0)
