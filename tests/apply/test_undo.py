"""Undoing: containers become what the journal says, and their entries are removed."""

from __future__ import annotations

import pytest
from helpers.fake_engine import ID, NAME, FakeEngine, action, plan_of

from dltools.apply.actuator import Actuator
from dltools.apply.journal import Entry, Journal
from dltools.apply.undo import undo
from dltools.engine.interface import Engine
from dltools.plan.records import Op, Result, Status


@pytest.fixture
def changed(actuator: Actuator, fake_engine: FakeEngine) -> FakeEngine:
    """The engine after a quota was applied."""
    (result,) = actuator.apply(plan_of(action({"cpus": 1.5})))
    assert result.status is Status.APPLIED
    return fake_engine


def undone(engine: Engine, journal: Journal, **how: bool) -> list[Result]:
    told: list[Result] = []
    assert undo(engine, journal, told.append, **how) == told
    return told


def test_a_changed_container_is_restored(
    changed: FakeEngine, engine: Engine, journal: Journal
) -> None:
    (result,) = undone(engine, journal)
    assert (result.status, result.container_name) == ("applied", NAME)
    assert (result.before["cpus"], result.after["cpus"]) == (1.5, None)
    assert changed.host_config["CpuQuota"] == -1
    assert undone(engine, journal) == []


def test_a_container_that_is_as_it_was_is_left_alone(
    changed: FakeEngine, engine: Engine, journal: Journal
) -> None:
    changed.host_config["CpuQuota"] = -1
    changed.updates.clear()
    (result,) = undone(engine, journal)
    assert result.status is Status.UNCHANGED
    assert changed.updates == []
    assert journal.entries("FAKE") == []


def test_a_container_that_is_gone_is_forgotten(engine: Engine, journal: Journal) -> None:
    journal.add(Entry("FAKE", "0" * 64, "gone", {}, {}, {}))
    assert undone(engine, journal, dry_run=True) == []
    assert len(journal.entries("FAKE")) == 1
    assert undone(engine, journal) == []
    assert journal.entries("FAKE") == []


def test_a_refusal_keeps_the_entry(changed: FakeEngine, engine: Engine, journal: Journal) -> None:
    changed.faults["POST /update"] = 500
    (result,) = undone(engine, journal)
    assert (result.status, result.error) == ("failed", "status 500 on demand")
    assert len(journal.entries("FAKE")) == 1


def test_an_engine_that_changes_nothing_keeps_the_entry(
    changed: FakeEngine, engine: Engine, journal: Journal
) -> None:
    changed.ignores_updates = True
    (result,) = undone(engine, journal)
    assert result.status is Status.FAILED
    assert result.error == "the engine accepted the change, but other settings are in force"
    assert len(journal.entries("FAKE")) == 1


def test_a_dry_run_changes_nothing(changed: FakeEngine, engine: Engine, journal: Journal) -> None:
    (result,) = undone(engine, journal, dry_run=True)
    assert (result.status, result.after["cpus"]) == ("planned", None)
    assert changed.host_config["CpuQuota"] == 150_000
    assert len(journal.entries("FAKE")) == 1


@pytest.mark.usefixtures("changed")
def test_only_some_containers_are_restored(engine: Engine, journal: Journal) -> None:
    journal.add(Entry("FAKE", "0" * 64, "gone", {}, {}, {}))
    results = undo(engine, journal, lambda _: None, only=[ID])
    assert [result.container_id for result in results] == [ID]
    assert [entry.container_name for entry in journal.entries("FAKE")] == ["gone"]


# States


def test_a_pause_is_undone(
    actuator: Actuator, fake_engine: FakeEngine, engine: Engine, journal: Journal
) -> None:
    actuator.apply(plan_of(action({}, Op.PAUSE)))
    assert [one.status for one in undone(engine, journal, dry_run=True)] == ["planned"]
    assert fake_engine.state == "paused"
    assert [one.status for one in undone(engine, journal)] == ["applied"]
    assert fake_engine.state == "running"


def test_a_container_that_was_paused_is_paused_again(
    actuator: Actuator, fake_engine: FakeEngine, engine: Engine, journal: Journal
) -> None:
    fake_engine.state = "paused"
    actuator.apply(plan_of(action({}, Op.UNPAUSE)))
    assert fake_engine.state == "running"
    undone(engine, journal)
    assert fake_engine.state == "paused"


def test_a_container_that_was_started_again_is_not_paused(
    actuator: Actuator, fake_engine: FakeEngine, engine: Engine, journal: Journal
) -> None:
    """Whoever started it meant it to run."""
    fake_engine.state = "paused"
    actuator.apply(plan_of(action({}, Op.UNPAUSE)))
    fake_engine.started = "2020-01-02T00:00:00Z"
    assert [one.status for one in undone(engine, journal)] == ["unchanged"]
    assert fake_engine.state == "running"


def test_a_pause_after_a_new_start_is_undone(
    actuator: Actuator, fake_engine: FakeEngine, engine: Engine, journal: Journal
) -> None:
    fake_engine.state = "paused"
    actuator.apply(plan_of(action({}, Op.UNPAUSE)))
    fake_engine.started = "2020-01-02T00:00:00Z"
    actuator.apply(plan_of(action({}, Op.PAUSE)))
    assert fake_engine.state == "paused"
    assert [one.status for one in undone(engine, journal)] == ["applied"]
    assert fake_engine.state == "running"


def test_an_ended_container_is_not_paused(
    actuator: Actuator, fake_engine: FakeEngine, engine: Engine, journal: Journal
) -> None:
    fake_engine.state = "paused"
    actuator.apply(plan_of(action({}, Op.UNPAUSE)))
    fake_engine.state = "exited"
    assert [one.status for one in undone(engine, journal)] == ["unchanged"]
    assert fake_engine.state == "exited"


def test_a_later_pause_by_its_owner_is_left_alone(
    changed: FakeEngine, engine: Engine, journal: Journal
) -> None:
    changed.state = "paused"
    assert [one.status for one in undone(engine, journal)] == ["applied"]
    assert changed.state == "paused"
