"""Turns, also on an engine that refuses to unpause for a while or for good."""

import math
from pathlib import Path

import pytest
from conftest import ReplaceSleep
from helpers.clocks import Clock
from helpers.fake_engine import FakeEngine

from dltools.apply import turns as rotation_module
from dltools.apply.turn_schedule import Turn
from dltools.apply.turns import Rotation
from dltools.apply.undo import Leftover, unpause_leftovers
from dltools.engine import patience
from dltools.engine.docker.engine import DockerEngine
from dltools.engine.parts import Pauses, needed
from dltools.engine.runs import ApplyRun
from dltools.engine.turn_notes import TurnNotes
from dltools.errors import UnavailableError


@pytest.fixture(autouse=True)
def no_waiting(replace_sleep: ReplaceSleep) -> None:
    replace_sleep(rotation_module, lambda _: None)


@pytest.fixture
def rotation(fake: FakeEngine, engine: DockerEngine, tmp_path: Path, clock: Clock) -> Rotation:
    del fake
    run = ApplyRun.of_this_process("dl-apply --restore")
    return Rotation(engine, tmp_path / "rotation", run, clock)


def turns(*names: str, queue: str = "") -> list[Turn]:
    return [Turn(name, name, number, 2.0, queue) for number, name in enumerate(names)]


def noted(tmp_path: Path) -> set[str]:
    return {path.stem for path in (tmp_path / "rotation").glob("*.json")}


def test_a_file_names_each_container_that_takes_turns_and_the_run(rotation, tmp_path) -> None:
    rotation.set_turns(turns("a", "b"))
    assert noted(tmp_path) == {"a", "b"}
    note = TurnNotes(tmp_path / "rotation").find("b")
    assert note
    assert (note.group, note.seconds, note.run.command) == (1, 2.0, "dl-apply --restore")
    assert note.run.is_alive
    since = note.since
    rotation.set_turns([*turns("a"), Turn("b", "b", 1, 3.0)])
    note = TurnNotes(tmp_path / "rotation").find("b")
    assert note
    assert (note.seconds, note.since) == (3.0, since)
    rotation.end()
    assert noted(tmp_path) == set()


def test_an_engine_that_refuses_for_a_while_is_asked_again(rotation, fake, tmp_path) -> None:
    rotation.set_turns(turns("a", "b", "c"))
    fake.containers["b"].refusals = 3
    rotation.end()
    assert set(fake.states.values()) == {"running"}
    assert noted(tmp_path) == set()


def test_who_stays_paused_keeps_its_note_and_is_named(rotation, fake, engine, tmp_path) -> None:
    rotation.set_turns(turns("a", "b", "c"))
    fake.containers["b"].refusals = 10**6
    with pytest.raises(
        UnavailableError, match=r"^cannot unpause b: containerd .*; run .*docker unpause b$"
    ):
        rotation.end()
    assert fake.states == {"a": "running", "b": "paused", "c": "running"}
    assert noted(tmp_path) == {"b"}
    fake.containers["b"].refusals = 0
    assert list(unpause_leftovers(engine, tmp_path / "rotation")) == [Leftover("b")]
    assert fake.states["b"] == "running"


@pytest.mark.parametrize("signal", [KeyboardInterrupt, SystemExit])
def test_a_pause_on_its_way_when_a_signal_comes_is_undone_too(
    rotation, fake, engine, monkeypatch, replace_sleep, signal
) -> None:
    """The engine has read the request, and carries it out after the first unpause."""
    able = needed(engine, Pauses)
    pause, looks = able.pause, []

    def interrupted(_: str) -> None:
        raise signal

    def look(_: float) -> None:
        looks.append(fake.states["b"])
        if len(looks) == 2:
            pause("b")

    monkeypatch.setattr(able, "pause", interrupted)
    replace_sleep(patience, look)
    with pytest.raises(signal):
        rotation.set_turns(turns("a", "b"))
    rotation.end()
    assert looks == ["running", "running"]
    assert fake.states == {"a": "running", "b": "running", "c": "running"}


def test_a_turn_that_was_refused_is_tried_again(rotation, fake, clock) -> None:
    del fake.containers["c"]
    rotation.set_turns(turns("a", "b"))
    fake.containers["b"].refusals = 2
    clock.now += 2.0
    rotation.advance()
    assert fake.states == {"a": "paused", "b": "paused"}
    for _ in range(2):
        clock.now += 0.3
        rotation.advance()
    assert fake.states == {"a": "paused", "b": "running"}


def test_one_that_leaves_and_was_refused_is_tried_again(rotation, fake, clock, tmp_path) -> None:
    rotation.set_turns(turns("a", "b", "c"))
    fake.containers["c"].refusals = 1
    rotation.set_turns(turns("a", "b"))
    assert fake.states["c"] == "paused"
    assert noted(tmp_path) == {"a", "b", "c"}
    clock.now += 0.3
    rotation.advance()
    assert fake.states["c"] == "running"
    assert noted(tmp_path) == {"a", "b"}


def test_one_that_stays_paused_keeps_no_other_paused(rotation, fake, engine, tmp_path) -> None:
    rotation.set_turns(turns("a", "b", "c"))
    fake.containers["b"].refusals = 10**6
    found = list(unpause_leftovers(engine, tmp_path / "rotation"))
    assert found == [Leftover("b", "containerd is stopping"), Leftover("c")]
    assert fake.states["c"] == "running"
    assert noted(tmp_path) == {"b"}


def test_an_error_names_a_few_containers(fake, engine, tmp_path) -> None:
    fake.containers.clear()
    fake.add(*(f"job{n}" for n in range(12)))
    rotation = Rotation(engine, tmp_path / "rotation")
    rotation.set_turns(turns(*fake.states))
    for one in fake.containers.values():
        one.refusals = 10**6
    with pytest.raises(UnavailableError, match="and 1 more: containerd is stopping"):
        rotation.end()


def test_a_new_first_group_runs_at_once(fake, rotation, clock) -> None:
    rotation.set_turns(turns("a", "b"))
    clock.now = 0.5
    rotation.set_turns(turns("c", "a", "b"))
    assert fake.states == {"a": "paused", "b": "paused", "c": "running"}
    clock.now = 1.0
    rotation.set_turns(turns("c", "b", "a"))  # c goes on
    assert fake.states == {"a": "paused", "b": "paused", "c": "running"}


def test_a_turn_that_has_become_shorter_ends_earlier(fake, rotation, clock) -> None:
    rotation.set_turns([Turn("a", "a", 0, 10.0), Turn("b", "b", 1, 8.0)])
    clock.now = 5.0
    rotation.set_turns([Turn("b", "b", 0, 8.0), Turn("a", "a", 1, 8.0)])
    clock.now = 7.9
    rotation.advance()
    assert fake.states["a"] == "running"
    clock.now = 8.0
    rotation.advance()
    assert (fake.states["a"], fake.states["b"]) == ("paused", "running")


# Several queues


def test_each_queue_runs_one_group(fake, rotation, clock) -> None:
    fake.add("d", "e")
    rotation.set_turns([*turns("a", "b"), *turns("c", "d", "e", queue="GPU-1")])
    ran = []
    for step in range(25):
        clock.now = step / 4
        rotation.advance()
        ran.append("".join(key for key, state in fake.states.items() if state == "running"))
    assert list(dict.fromkeys(ran)) == ["ac", "bd", "ae", "bc"]


def test_a_queue_ends_when_nobody_waits_and_others_go_on(fake, rotation, clock, tmp_path) -> None:
    fake.add("d")
    rotation.set_turns([*turns("a", "b"), *turns("c", "d", queue="GPU-1")])
    del fake.containers["c"]
    fake.containers["d"].refusals = 1
    for clock.now in (0.3, 0.6, 0.9):
        rotation.advance()
    assert fake.states == {"a": "running", "b": "paused", "d": "running"}
    assert noted(tmp_path) == {"a", "b"}
    del fake.containers["a"]
    for clock.now in (1.2, 1.5):
        rotation.advance()
    assert not rotation.has_turns
    assert set(fake.states.values()) == {"running"}
    assert noted(tmp_path) == set()


def test_all_queues_end_together(fake, rotation, tmp_path) -> None:
    fake.add("d")
    rotation.set_turns([*turns("a", "b", queue="GPU-1"), *turns("c", "d", queue="GPU-2")])
    assert list(fake.states.values()).count("paused") == 2
    assert sorted(rotation.paused_names()) == ["b", "d"]
    note = TurnNotes(tmp_path / "rotation").find("d")
    assert note
    assert (note.group, note.queue) == (1, "GPU-2")
    rotation.end()
    assert set(fake.states.values()) == {"running"}
    assert noted(tmp_path) == set()


def test_a_container_changes_its_queue(fake, rotation, clock) -> None:
    rotation.set_turns(turns("a", "b", "c"))
    clock.now = 0.5
    rotation.set_turns([*turns("a"), *turns("b", "c", queue="GPU-1")])
    assert fake.states == {"a": "running", "b": "running", "c": "paused"}
    assert (rotation.turn_of("c") or turns("c")[0]).queue == "GPU-1"


def test_turns_that_are_shares_of_a_second(fake, rotation, clock) -> None:
    """Two of three run at any time; the one whose turn begins does so before another is paused."""
    own = [Turn(key, key, n, 2 / 3, "GPU-1", math.inf, 1.0) for n, key in enumerate("abc")]
    rotation.set_turns(own)
    ran, fewest = dict.fromkeys("abc", 0), 3
    for step in range(300):
        clock.now = step / 100 + 0.005
        rotation.advance()
        running = [key for key, state in fake.states.items() if state == "running"]
        fewest = min(fewest, len(running))
        for key in running:
            ran[key] += 1
    assert fewest == 2
    assert all(abs(count / 300 - 2 / 3) < 0.02 for count in ran.values())
    rotation.end()
    assert set(fake.states.values()) == {"running"}
