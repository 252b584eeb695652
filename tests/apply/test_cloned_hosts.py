"""Machines that were cloned share their engine's ID: each keeps to its own containers."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from helpers.fake_engine import HOST, ID, NAME, FakeEngine, action, plan_of
from helpers.journal_entries import journal_entry
from helpers.tools import complaint, records

from dltools.actions.plan_lines import dump_plan
from dltools.actions.plans import Status
from dltools.apply.changed_containers import changed_containers
from dltools.apply.engine_actuator import EngineActuator
from dltools.apply.turns import Rotation
from dltools.apply.undo import Leftover, end_dead_leases, unpause_leftovers
from dltools.engine.docker.engine import DockerEngine, connect
from dltools.engine.journal import Journal
from dltools.engine.registry import host_address
from dltools.engine.runs import ApplyRun
from dltools.engine.turn_notes import TurnNote, TurnNotes

ENDED = ApplyRun(1 << 30, 1)


@pytest.fixture
def clone(tmp_path: Path) -> Iterator[FakeEngine]:
    """An engine with the ID of the fake one on another host, which lacks its container."""
    with FakeEngine(tmp_path / "clone.sock", "clone") as made:
        made.id, made.is_there = "FAKE", False
        yield made


@pytest.fixture
def changed(actuator: EngineActuator, fake_engine: FakeEngine) -> FakeEngine:
    """The fake engine, after a run has died that had limited its container under lease."""
    actuator.lease(True)
    actuator.rotation.run = ENDED
    (result,) = actuator.apply(plan_of(action({"cpus": 1.5})))
    assert result.status is Status.APPLIED
    return fake_engine


def on(fake: FakeEngine) -> DockerEngine:
    return DockerEngine(connect(host_address(fake.url)))


def actuator_on(fake: FakeEngine, tmp_path: Path) -> EngineActuator:
    engine, journal = on(fake), Journal(tmp_path / "journal")
    return EngineActuator(engine, journal, Rotation(engine, tmp_path / "rotation"))


def test_a_clone_drops_no_entry_of_the_other(changed, clone, engine, tmp_path) -> None:
    assert actuator_on(clone, tmp_path).undo() == []
    assert end_dead_leases(on(clone), tmp_path) == []
    assert changed_containers(on(clone), [tmp_path]) == []
    (result,) = actuator_on(changed, tmp_path).undo()
    assert (result.status, changed.host_config["CpuQuota"]) == (Status.APPLIED, -1)
    assert changed_containers(engine, [tmp_path]) == []


def test_a_clone_that_leaves_its_leases_leaves_no_others(changed, clone, engine, tmp_path) -> None:
    assert not actuator_on(clone, tmp_path).leases.leave("2999-01-01T00:00:00Z", None)
    (result,) = end_dead_leases(engine, tmp_path)
    assert (result.status, changed.host_config["CpuQuota"]) == (Status.APPLIED, -1)


def test_a_clone_removes_no_note_of_a_paused_one(fake_engine, clone, engine, tmp_path) -> None:
    folder = tmp_path / "rotation"
    TurnNotes(folder).write(TurnNote("FAKE", HOST, ID, NAME, 0, 2.0, "2026-01-31T12:00:00Z"))
    fake_engine.state = "paused"
    assert list(unpause_leftovers(on(clone), folder)) == []
    assert list(unpause_leftovers(engine, folder)) == [Leftover(NAME)]


def test_a_host_that_was_renamed_keeps_its_containers(changed, tmp_path) -> None:
    changed.host = "renamed"
    (result,) = actuator_on(changed, tmp_path).undo()
    assert (result.status, changed.host_config["CpuQuota"]) == (Status.APPLIED, -1)


def test_what_is_gone_of_a_host_is_its_own(engine, journal, tmp_path) -> None:
    journal.add(journal_entry("0" * 64, "gone"))
    journal.add(journal_entry("1" * 64, "of a clone", host="clone"))
    journal.add(journal_entry("2" * 64, "of another engine", engine="OTHER"))
    (found,) = changed_containers(engine, [tmp_path])
    assert (found.name, found.current) == ("gone", None)


@pytest.mark.parametrize(("same", "what"), [("id", "ID"), ("host", "host name")])
def test_a_run_takes_one_engine_of_an_id_or_name(tool, fake_engine, tmp_path, same, what) -> None:
    with FakeEngine(tmp_path / "other.sock", "other") as other:
        setattr(other, same, getattr(fake_engine, same))
        named = [word for fake in (fake_engine, other) for word in ("--host", fake.url)]
        done = tool("dl-apply", *named, "--undo")
        assert done.returncode == 1
        said = complaint(done.stderr.splitlines()[-1])
        assert f"it has the same {what} as the engine at unix://" in said
        assert said.endswith("leave it out, or change one of them")
        plan = plan_of(action({"cpus": 1.5}), action({"cpus": 1.5}, id=2, host=other.host))
        done = tool("dl-apply", *named, input=dump_plan(plan).encode())
        assert not (fake_engine.updates and other.updates)
        if same == "id":
            assert [one["status"] for one in records(done.stdout)].count("failed") == 1


def test_an_engine_that_is_connected_to_again_is_no_other(tool, fake_engine, tmp_path) -> None:
    with FakeEngine(tmp_path / "other.sock", "other") as other:
        named = [word for fake in (fake_engine, other) for word in ("--host", fake.url)]
        other.faults["POST /update"] = 0  # it hangs up
        plans = [dump_plan(plan_of(action({"cpus": cpus}, host="other"))) for cpus in (1.5, 1.2)]
        done = tool("dl-apply", *named, input="".join(plans).encode())
        assert b"leave one out" not in done.stdout + done.stderr
