"""Which containers dl-apply has changed: from journal entries and notes of turns."""

from dataclasses import replace
from pathlib import Path

import pytest
from helpers.fake_engine import HOST, ID, NAME, action, plan_of
from helpers.journal_entries import journal_entry

from dltools.apply.changed_containers import changed_containers, journal_entries, open_migrations
from dltools.apply.migrate.migration import Migration, MigrationFiles, Step
from dltools.cli.apply.tables import changed_table
from dltools.engine.journal import Journal
from dltools.engine.runs import ApplyRun
from dltools.engine.turn_notes import TurnNote, TurnNotes

HERE = ApplyRun.of_this_process("dl-apply")
ENDED = ApplyRun(1 << 22, 1, "dl-apply", "srtf")


def note(directory: Path, run: ApplyRun, container_id: str = ID, queue: str = "") -> None:
    since = "2026-01-31T12:00:00Z"
    one = TurnNote("FAKE", HOST, container_id, NAME, 1, 2.0, since, run, queue)
    TurnNotes(directory / "rotation").write(one)


def test_jobs_that_are_being_moved_are_listed(tmp_path) -> None:
    files = MigrationFiles(tmp_path / "one" / "migrations")
    begun = Migration(1, "a", "b", "id-2", "second", {}, {}, "id-2", step=Step.START)
    files.write(begun)
    files.write(replace(begun, container_id="id-1", container_name="first", step=Step.STOP))
    files.write(replace(begun, container_id="id-3", step=Step.DONE))
    found = open_migrations([tmp_path / "one", tmp_path / "nowhere"])
    assert [one.container_name for one in found] == ["first", "second"]
    (tmp_path / "one" / "migrations" / "x.json").write_text("{")
    assert open_migrations([tmp_path / "one"]) == []


def test_nothing_is_changed_at_first(engine, tmp_path) -> None:
    assert changed_containers(engine, [tmp_path, tmp_path / "nowhere"]) == []


def test_changed_settings(actuator, engine, tmp_path) -> None:
    actuator.apply(plan_of(action({"cpus": 1.5})))
    (one,) = changed_containers(engine, [tmp_path])
    assert (one.container_id, one.name, one.state_directory) == (ID, NAME, tmp_path)
    assert one.original == {"cpus": None, "weight": 1024.0, "cpuset": None}
    assert one.current == {"cpus": 1.5, "weight": 1024.0, "cpuset": None}
    assert one.run.policy == "test"
    assert one.since


def test_a_changed_state(engine, journal, tmp_path, fake_engine) -> None:
    journal.add(journal_entry(settings={"cpus": None}, state="running", run=ENDED))
    fake_engine.state = "paused"
    (one,) = changed_containers(engine, [tmp_path])
    assert one.original == {"cpus": None, "state": "running"}
    assert one.current is not None
    assert one.current["state"] == "paused"
    assert one.run == ENDED


@pytest.mark.parametrize(("run", "has_turn"), [(HERE, True), (ENDED, False)])
def test_turns(engine, tmp_path, fake_engine, run, has_turn) -> None:
    note(tmp_path, run)
    fake_engine.state = "paused"
    (one,) = changed_containers(engine, [tmp_path])
    settings = {"cpus": None, "weight": 1024.0, "cpuset": None}
    turn = {"group": 1, "turn_s": 2.0} if has_turn else {}
    assert one.original == settings | {"state": "running"}
    assert one.current == settings | {"state": "paused"} | turn
    assert one.since == "2026-01-31T12:00:00Z"


def test_turns_on_a_gpu(engine, tmp_path) -> None:
    note(tmp_path, HERE, queue="GPU-1")
    (one,) = changed_containers(engine, [tmp_path])
    assert one.current is not None
    assert (one.current["queue"], one.original.get("queue")) == ("GPU-1", None)


@pytest.mark.parametrize(("run", "named"), [(HERE, HERE), (ApplyRun(), ENDED)])
def test_a_run_that_goes_on_is_named_before_another(engine, journal, tmp_path, run, named) -> None:
    journal.add(journal_entry(settings={"cpus": None}, run=ENDED))
    note(tmp_path, run)
    (one,) = changed_containers(engine, [tmp_path])
    assert one.run == named


def test_one_that_ended_or_was_renamed_is_as_it_is(engine, journal, tmp_path, fake_engine) -> None:
    journal.add(journal_entry(name="before", settings={"cpus": None}))
    fake_engine.state = "exited"
    (one,) = changed_containers(engine, [tmp_path])
    assert one.name == NAME
    assert one.current is not None
    assert (one.current["state"], one.original["state"]) == ("exited", "running")


@pytest.mark.parametrize(
    ("leased_by", "until", "shown"),
    [
        (ApplyRun(), "", "--undo"),
        (ApplyRun(), "2026-11-24T13:05:07Z", "13:05:07"),
        (ApplyRun(), "2026-11-25T13:05:07Z", "11-25 13:05"),
        (ApplyRun(), "2026-11-24T12:59:59Z", "next run"),
        (HERE, "", "run ends"),
        (ENDED, "", "next run"),
    ],
)
def test_what_ends_a_change(engine, journal, tmp_path, leased_by, until, shown) -> None:
    journal.add(journal_entry(settings={"cpus": 0.5}, leased_by=leased_by, until=until))
    table = changed_table(changed_containers(engine, [tmp_path]), "2026-11-24T13:00:00Z")
    (cell,) = table.columns[4].cells
    assert cell == shown


def test_nothing_ends_what_is_as_it_was(engine, journal, tmp_path) -> None:
    journal.add(journal_entry(settings={"cpus": 0.5}, leased_by=HERE))
    (one,) = changed_containers(engine, [tmp_path])
    assert one.current is not None
    table = changed_table([replace(one, original=one.current)], "2026-11-24T13:00:00Z")
    assert [column.cells for column in table.columns[1:5:3]] == [["no limit"], ["-"]]


def test_a_container_that_is_gone(engine, journal, tmp_path) -> None:
    journal.add(journal_entry("0" * 64, "gone", settings={"cpus": 0.5}))
    (one,) = changed_containers(engine, [tmp_path])
    assert (one.name, one.original, one.current) == ("gone", {"cpus": 0.5}, None)


def test_the_first_directory_that_knows_a_container_counts(engine, tmp_path) -> None:
    for number in range(2):
        directory = tmp_path / str(number)
        Journal(directory / "journal").add(journal_entry(name=f"job{number}"))
    found = changed_containers(engine, [tmp_path / "1", tmp_path / "0"])
    assert [one.state_directory for one in found] == [tmp_path / "1"]


def test_a_journal_that_cannot_be_read_is_passed_over(engine, tmp_path) -> None:
    (tmp_path / "journal").mkdir()
    (tmp_path / "journal" / "x.json").write_text("junk")
    assert journal_entries(engine, tmp_path) == []
