"""Which containers there are: they start, stop, start again, change their names and vanish."""

from typing import Any

import pytest
from helpers.scripted_engine import ScriptedEngine, event

from dltools.engine.docker.answers import event_of
from dltools.engine.interface import GoneError, Listed
from dltools.probe.inventory import Inventory


def inventory(engine: Any, *, is_followed: bool = False) -> Inventory:
    """What is known of the containers of an engine that has been asked once."""
    found = Inventory(engine, {})
    found.is_followed = is_followed
    found.refresh()
    return found


@pytest.fixture
def followed(engine: ScriptedEngine) -> tuple[str, Inventory]:
    """The one container of an engine that is followed, and what is known of it."""
    id_ = engine.start("job")
    return id_, inventory(engine, is_followed=True)


def names(found: Inventory) -> list[str]:
    return [watched.container.name for watched in found.running.values()]


def test_containers_come_and_go(engine) -> None:
    found = inventory(engine)
    assert names(found) == []
    one, _ = engine.start("one"), engine.start("two")
    found.refresh()
    assert names(found) == ["one", "two"]
    engine.stop(one)
    found.refresh()
    assert names(found) == ["two"]
    assert [watched.container.name for watched in found.take_stopped()] == ["one"]
    assert found.take_stopped() == []


@pytest.mark.parametrize("is_local", [True, False])
def test_a_container_that_vanishes_between_list_and_inspection_is_left_out(
    engine, is_local, monkeypatch
) -> None:
    engine.is_local = is_local
    gone, _ = engine.start("gone"), engine.start("here")
    inspect = engine.inspect

    def vanish(id_: str) -> Any:
        if id_ == gone:
            raise GoneError("No such container")
        return inspect(id_)

    monkeypatch.setattr(engine, "inspect", vanish)
    found = inventory(engine)
    assert names(found) == ["here"]


def test_a_renamed_and_paused_container_is_not_inspected_again(engine, monkeypatch) -> None:
    id_ = engine.start("old")
    found = inventory(engine)
    monkeypatch.setattr(engine, "inspect", lambda _: pytest.fail("inspected again"))
    monkeypatch.setattr(engine, "containers", lambda *_: [Listed(id_, "new", "paused")])
    found.refresh()
    container = found.running[id_].container
    assert (container.name, container.state, container.id) == ("new", "paused", id_)


def test_a_container_that_starts_again_keeps_its_sources(engine, followed) -> None:
    id_, found = followed
    sources = found.running[id_].sources
    engine.start("job", at=60)  # so quickly that no list was without it
    found.note_event("start", id_)
    found.refresh()
    assert found.running[id_].sources is sources
    assert found.running[id_].container == engine.known[id_]
    engine.stop(id_)
    found.expire()
    found.refresh()
    assert [watched.sources for watched in found.all] == [sources]
    engine.start("job", at=120)
    found.expire()
    found.refresh()
    assert found.running[id_].sources is sources
    assert len(list(found.all)) == 1


def test_a_removed_container_is_forgotten(engine, followed) -> None:
    id_, found = followed
    (source,) = found.running[id_].sources.all
    source.read(0.0, 0.0)
    engine.stop(id_)
    found.note_event("remove", id_)
    found.refresh()
    assert list(found.all) == []
    assert engine.flows[id_].ended


def test_a_followed_engine_is_asked_only_after_an_event(engine) -> None:
    found = inventory(engine, is_followed=True)
    for _ in range(2):
        found.refresh()
    assert engine.lists == 1
    for told in ("exec_create: ls", "exec_start: ls", "health_status: healthy", "top"):
        found.note_event(event_of(event(told, "id", "job")).action, "id")
    found.refresh()
    assert engine.lists == 1
    found.note_event("pause", "id")
    found.refresh()
    assert engine.lists == 2


def test_a_container_that_has_exited_is_gone_although_the_engine_still_lists_it(
    engine, followed
) -> None:
    id_, found = followed
    found.note_event("exit", id_)
    found.refresh()
    assert names(found) == []
    engine.start("job", at=60)
    found.note_event("start", id_)
    found.refresh()
    assert names(found) == ["job"]


def test_a_start_is_not_forgotten_while_the_engine_is_away(engine, followed) -> None:
    id_, found = followed
    engine.start("job", at=60)
    found.note_event("start", id_)
    engine.is_away = True
    with pytest.raises(Exception, match="no Docker engine answers"):
        found.refresh()
    engine.is_away = False
    found.expire()
    found.refresh()
    assert found.running[id_].container.started == engine.known[id_].started


def test_what_cannot_be_measured_is_told(engine) -> None:
    id_ = engine.start("job", {"dltools.metrik": "loss", "dltools.pattern": "("})
    found = inventory(engine)
    gaps = found.running[id_].gaps
    assert gaps is not None
    counters, label, pattern = gaps.split("; ", 2)
    assert counters == "counters: its processes are not on this machine"
    assert label == "unknown label dltools.metrik: did you mean dltools.metric?"
    assert pattern.startswith("label dltools.pattern: ")
