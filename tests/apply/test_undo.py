"""Undoing: containers become what the journal says, and their entries are removed.

Containers that a killed run has left paused are unpaused.
"""

from pathlib import Path

import pytest
from helpers.fake_engine import HOST, ID, NAME, FakeEngine, action, plan_of
from helpers.journal_entries import journal_entry

from dltools.actions.plans import Op, Result, Status
from dltools.apply.engine_actuator import EngineActuator
from dltools.apply.undo import Leftover, end_dead_leases, undo, unpause_leftovers
from dltools.engine.interface import Engine
from dltools.engine.journal import Journal
from dltools.engine.runs import ApplyRun
from dltools.engine.turn_notes import TurnNote, TurnNotes
from dltools.errors import DataError


@pytest.fixture
def changed(actuator: EngineActuator, fake_engine: FakeEngine) -> FakeEngine:
    """The engine after a quota was applied."""
    (result,) = actuator.apply(plan_of(action({"cpus": 1.5})))
    assert result.status is Status.APPLIED
    return fake_engine


def undone(engine: Engine, journal: Journal, **how: bool) -> list[Result]:
    told: list[Result] = []
    assert undo(engine, journal, told.append, **how) == told
    return told


def test_a_changed_container_is_restored(changed, engine, journal) -> None:
    (result,) = undone(engine, journal)
    assert (result.status, result.container_name) == ("applied", NAME)
    assert (result.before["cpus"], result.after["cpus"]) == (1.5, None)
    assert changed.host_config["CpuQuota"] == -1
    assert undone(engine, journal) == []


def test_a_container_that_is_as_it_was_is_left_alone(changed, engine, journal) -> None:
    changed.host_config["CpuQuota"] = -1
    changed.updates.clear()
    (result,) = undone(engine, journal)
    assert result.status is Status.UNCHANGED
    assert changed.updates == []
    assert journal.all() == []


def test_one_that_has_ended_gets_what_its_record_had(fake_engine, engine, journal) -> None:
    """Its own quota was as much as that of the cgroup above it, as of a pod's only container: so it
    counted as none."""
    original = {"NanoCpus": 0, "CpuQuota": 30_000, "CpuPeriod": 100_000, "CpuShares": 102}
    journal.add(
        journal_entry(
            fields=original,
            settings={"cpus": None, "weight": 102.0},
            kernel={"cpu.cfs_quota_us": "30000", "cpu.shares": "102"},
        )
    )
    fake_engine.state = "exited"
    fake_engine.host_config.update({**original, "CpuQuota": 20_000})
    (result,) = undone(engine, journal)
    assert (result.status, result.error) == ("applied", None)
    assert result.after["cpus"] == 0.3
    assert journal.all() == []


def test_a_container_that_is_gone_is_forgotten(engine, journal) -> None:
    journal.add(journal_entry("0" * 64, "gone"))
    assert undone(engine, journal, dry_run=True) == []
    assert len(journal.all()) == 1
    assert undone(engine, journal) == []
    assert journal.all() == []


def test_a_refusal_keeps_the_entry(changed, engine, journal) -> None:
    changed.faults["POST /update"] = 500
    (result,) = undone(engine, journal)
    assert (result.status, result.error) == ("failed", "status 500 on demand")
    assert len(journal.all()) == 1


def test_an_engine_that_changes_nothing_keeps_the_entry(changed, engine, journal) -> None:
    changed.ignores_updates = True
    (result,) = undone(engine, journal)
    assert result.status is Status.FAILED
    assert result.error == "the engine accepted the change, but other settings are in force"
    assert len(journal.all()) == 1


def test_a_damaged_entry_keeps_no_other_from_being_undone(changed, engine, journal) -> None:
    (journal.home / "journal" / "x.json").write_text("junk")
    with pytest.raises(DataError, match=r"x\.json: damaged journal entry"):
        undone(engine, journal)
    assert changed.host_config["CpuQuota"] == -1
    assert journal.readable() == []
    assert end_dead_leases(engine, journal.home) == []


def test_a_dry_run_changes_nothing(changed, engine, journal) -> None:
    (result,) = undone(engine, journal, dry_run=True)
    assert (result.status, result.after["cpus"]) == ("planned", None)
    assert changed.host_config["CpuQuota"] == 150_000
    assert len(journal.all()) == 1


@pytest.mark.usefixtures("changed")
def test_only_some_containers_are_restored(engine, journal) -> None:
    journal.add(journal_entry("0" * 64, "gone"))
    results = undo(engine, journal, lambda _: None, only=[ID])
    assert [result.container_id for result in results] == [ID]
    assert [entry.container_name for entry in journal.all()] == ["gone"]


# States


def test_the_lease_of_a_run_is_over_where_another_has_its_number(changed, engine, journal) -> None:
    """As in a container that starts again, where dl-apply is always process 1."""
    journal.lease(journal.all(), ApplyRun(1, 100, "dl-apply"))
    assert end_dead_leases(engine, journal.home, ApplyRun(1, 100, "dl-apply", "fair")) == []
    (result,) = end_dead_leases(engine, journal.home, ApplyRun(1, 200, "dl-apply"))
    assert (result.status, changed.host_config["CpuQuota"]) == (Status.APPLIED, -1)


def test_a_pause_is_undone(actuator, fake_engine, engine, journal) -> None:
    actuator.apply(plan_of(action({}, Op.PAUSE)))
    assert [one.status for one in undone(engine, journal, dry_run=True)] == ["planned"]
    assert fake_engine.state == "paused"
    assert [one.status for one in undone(engine, journal)] == ["applied"]
    assert fake_engine.state == "running"


AGAIN = {"started": "2020-01-02T00:00:00Z"}
"""It was started again, by somebody who meant it to run."""


@pytest.mark.parametrize(
    ("since", "then", "status", "state"),
    [
        pytest.param({}, [], "applied", "paused", id="it was paused"),
        pytest.param(AGAIN, [], "unchanged", "running", id="it was started again"),
        pytest.param(AGAIN, [Op.PAUSE], "applied", "running", id="and paused by us"),
        pytest.param({"state": "exited"}, [], "unchanged", "exited", id="it has ended"),
    ],
)
def test_a_container_that_was_paused_is_paused_again_unless_it_is_another_run(
    actuator, fake_engine, engine, journal, since, then, status, state
) -> None:
    fake_engine.state = "paused"
    actuator.apply(plan_of(action({}, Op.UNPAUSE)))
    assert fake_engine.state == "running"
    for name, value in since.items():
        setattr(fake_engine, name, value)
    for op in then:
        actuator.apply(plan_of(action({}, op)))
    assert [one.status for one in undone(engine, journal)] == [status]
    assert fake_engine.state == state


def test_a_later_pause_by_its_owner_is_left_alone(changed, engine, journal) -> None:
    changed.state = "paused"
    assert [one.status for one in undone(engine, journal)] == ["applied"]
    assert changed.state == "paused"


def note(engine_id: str) -> TurnNote:
    return TurnNote(engine_id, HOST, ID, NAME, 0, 2.0, "2026-01-31T12:00:00Z")


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    return tmp_path / "rotation"


@pytest.fixture
def noted(engine: Engine, directory: Path) -> Path:
    """The file of a container that takes turns."""
    TurnNotes(directory).write(note(engine.id))
    return directory / f"{ID}.json"


@pytest.mark.parametrize(
    ("state", "faults", "told", "then"),
    [
        ("paused", {}, [Leftover(NAME)], "running"),
        ("running", {}, [], "running"),
        ("exited", {}, [], "exited"),
        ("paused", {"POST /unpause": 500}, [Leftover(NAME, "status 500 on demand")], "paused"),
    ],
    ids=["paused", "running", "exited", "refused"],
)
def test_who_is_paused_is_unpaused(engine, fake_engine, noted, state, faults, told, then) -> None:
    """The file stays where the engine refuses."""
    fake_engine.state, fake_engine.faults = state, faults
    assert list(unpause_leftovers(engine, noted.parent)) == told
    assert (fake_engine.state, noted.exists()) == (then, bool(faults))


def test_files_of_another_engine_are_left_alone(engine, fake_engine, directory) -> None:
    TurnNotes(directory).write(note("OTHER"))
    fake_engine.state = "paused"
    assert list(unpause_leftovers(engine, directory)) == []
    assert fake_engine.state == "paused"


def test_a_damaged_file_is_named(engine, directory) -> None:
    directory.mkdir()
    (directory / "x.json").write_text("junk")
    with pytest.raises(DataError, match=r"x\.json: damaged note"):
        list(unpause_leftovers(engine, directory))
