"""Hands on containers that take turns, told by events and states; no engine is needed."""

from pathlib import Path

import pytest
from helpers.clocks import Clock
from helpers.fake_engine import FakeEngine
from helpers.scripted_engine import event

from dltools.apply.turn_schedule import Turn
from dltools.apply.turns import PAUSED, RESUMED, Rotation
from dltools.apply.undo import Leftover, unpause_leftovers
from dltools.engine.docker.answers import event_of
from dltools.engine.docker.engine import DockerEngine
from dltools.engine.interface import Event
from dltools.engine.turn_notes import TurnNotes

NAMES = ("a", "b", "c")
TURNS = [Turn(name, name, number, 2.0) for number, name in enumerate(NAMES)]


@pytest.fixture
def told() -> list[tuple[str, str]]:
    return []


@pytest.fixture
def rotation(
    fake: FakeEngine,
    engine: DockerEngine,
    tmp_path: Path,
    clock: Clock,
    told: list[tuple[str, str]],
) -> Rotation:
    """The turns of three containers; it is the turn of the first."""
    del fake
    made = Rotation(engine, tmp_path / "rotation", clock=clock)
    made.on_hand = lambda turn, why: told.append((turn.name, why))
    made.set_turns(TURNS)
    return made


def happened(name: str, action: str) -> Event:
    return event_of(event(action, name, name))


def test_our_own_pauses_are_nobody_else_s(rotation, clock, told) -> None:
    rotation.note_event(happened("b", "pause"))
    rotation.note_event(happened("c", "pause"))
    clock.now = 2.1
    rotation.advance()
    rotation.note_event(happened("a", "pause"))
    rotation.note_event(happened("b", "unpause"))
    assert told == []


@pytest.mark.parametrize("has_event", [True, False])
def test_somebody_s_pause_stays(rotation, fake, clock, told, has_event) -> None:
    fake.containers["a"].state = "paused"
    if has_event:
        rotation.note_event(happened("a", "pause"))
    else:
        clock.now = 0.3
        rotation.advance()
    assert told == [("a", PAUSED)]
    clock.now = 2.3
    rotation.advance()
    rotation.end()
    assert fake.states == {"a": "paused", "b": "running", "c": "running"}


def test_somebody_s_end_of_a_pause_stays(rotation, fake, clock, told) -> None:
    fake.containers["c"].state = "running"
    clock.now = 0.3
    rotation.advance()
    assert told == [("c", RESUMED)]
    fake.containers["c"].state = "paused"
    rotation.end()
    assert fake.states == {"a": "running", "b": "running", "c": "paused"}


def test_a_pause_that_comes_before_ours_is_not_ours(rotation, fake, told) -> None:
    """Since the last look: the engine refuses ours."""
    fake.containers["a"].state = "paused"
    rotation.set_turns([Turn("d", "d", 0, 2.0), *TURNS[1:], Turn("a", "a", 3, 2.0)])
    assert ("a", PAUSED) in told
    assert fake.states["a"] == "paused"


def test_who_leaves_for_somebody_s_sake_goes_on(rotation, fake, tmp_path, told) -> None:
    rotation.drop("b", "why")
    assert told == [("b", "why")]
    assert fake.states == {"a": "running", "b": "running", "c": "paused"}
    assert TurnNotes(tmp_path / "rotation").find("b") is None


def test_who_is_attended_runs_whosever_turn_it_is(rotation, fake, clock) -> None:
    rotation.attended = ("c",)
    clock.now = 0.3
    rotation.advance()
    assert fake.states == {"a": "running", "b": "paused", "c": "running"}
    rotation.attended = ()
    rotation.look()
    rotation.advance()
    assert fake.states == {"a": "running", "b": "paused", "c": "paused"}


def test_who_was_touched_a_moment_ago_is_not_paused(rotation, fake, clock) -> None:
    rotation.touched.add("a")
    clock.now = 2.1
    rotation.advance()
    assert fake.states == {"a": "running", "b": "running", "c": "paused"}
    rotation.touched.clear()
    rotation.look()
    rotation.advance()
    assert fake.states == {"a": "paused", "b": "running", "c": "paused"}


def test_a_crash_leaves_a_note_of_whose_a_pause_is(rotation, fake, engine, tmp_path) -> None:
    assert rotation.has_turns
    fake.containers["a"].state = "paused"  # after the crash
    found = list(unpause_leftovers(engine, tmp_path / "rotation"))
    assert found == [Leftover("b"), Leftover("c")]
    assert fake.states == {"a": "paused", "b": "running", "c": "running"}
