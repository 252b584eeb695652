"""Pausing and unpausing, whatever state a container is in."""

import pytest
from helpers.fake_engine import ID

from dltools.engine.interface import GoneError, RefusedError
from dltools.engine.pauses import set_state, unpause


@pytest.mark.parametrize("before", ["running", "paused"])
@pytest.mark.parametrize("after", ["running", "paused"])
def test_a_state_is_set_unless_it_is_so(engine, fake_engine, before, after) -> None:
    fake_engine.state = before
    set_state(engine, ID, after)
    assert fake_engine.state == after


def test_an_ended_container_cannot_be_paused(engine, fake_engine) -> None:
    fake_engine.state = "exited"
    with pytest.raises(RefusedError, match="is not running"):
        set_state(engine, ID, "paused")
    with pytest.raises(GoneError):
        set_state(engine, "0", "paused")


@pytest.mark.parametrize(
    ("before", "was_paused"), [("paused", True), ("running", False), ("exited", False)]
)
def test_unpausing_tells_whether_it_was_paused(engine, fake_engine, before, was_paused) -> None:
    fake_engine.state = before
    assert unpause(engine, ID) is was_paused
    assert fake_engine.state == ("running" if was_paused else before)


def test_a_container_that_is_gone_was_not_paused(engine) -> None:
    assert not unpause(engine, "0")


def test_a_container_that_stays_paused_is_an_error(engine, fake_engine) -> None:
    fake_engine.state = "paused"
    fake_engine.faults["POST /unpause"] = 500
    with pytest.raises(RefusedError, match="status 500 on demand"):
        unpause(engine, ID)
