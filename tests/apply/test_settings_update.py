"""What becomes of an update, by the container's settings and the plan's expectations.

Updates on an engine that fails half-way: each action has its own result.
"""

from dataclasses import replace
from datetime import UTC, datetime
from threading import Timer
from typing import Any

import pytest
from helpers.fake_engine import ID, action, plan, plan_of
from helpers.journal_entries import journal_entry
from helpers.located_containers import located, on_version_1
from helpers.tools import complaint, records

from dltools.actions.plans import Result, Status
from dltools.actions.settings import Settings
from dltools.apply import settings_update
from dltools.apply.engine_actuator import EngineActuator
from dltools.apply.original_settings import Originals
from dltools.apply.settings_update import OwnersOwn, Raised, SettingsUpdate, compare
from dltools.engine.docker import answers as docker_answers
from dltools.engine.gpu_access import GpuAccess
from dltools.engine.interface import LocatedContainer
from dltools.engine.journal import Entry, Journal
from dltools.engine.limits.cpu_limits import Locator
from dltools.engine.runs import ApplyRun
from dltools.notation.limits import Limits

PLANNED_AT = datetime(2026, 1, 31, 12, tzinfo=UTC)
HALF = {"NanoCpus": 500_000_000}
CHANGED = (Status.STALE, "its settings have changed since the plan was made")


def compared(
    there: LocatedContainer, wanted: dict[str, Any], made: Settings | None = None, **expect: Any
) -> Result:
    one = action(wanted, expect=expect)
    found = Result(one.id, Status.SKIPPED, one.container_id, one.container_name)
    return compare(one, found, there, PLANNED_AT, made=made)


def altered(there: LocatedContainer, **changes: Any) -> LocatedContainer:
    return replace(there, container=replace(there.container, **changes))


def test_a_change_is_planned_with_the_settings_before_and_after() -> None:
    result = compared(located(**HALF), {"cpus": 1.5, "weight": 1024}, cpus=0.5)
    assert result.status is Status.PLANNED
    assert result.before == {"cpus": 0.5, "weight": 1024}
    assert result.after == {"cpus": 1.5, "weight": 1024}


@pytest.mark.parametrize("wanted", [{"cpus": 0.5}, {"cpus": 0.501}, {"cpuset": None}, {}], ids=str)
def test_settings_as_wanted_are_unchanged(wanted) -> None:
    assert compared(located(**HALF), wanted, cpus=2.0).status is Status.UNCHANGED


def test_a_quota_of_all_cpus_is_no_quota() -> None:
    assert compared(located(), {"cpus": 4.0}).status is Status.UNCHANGED
    assert compared(located(**HALF), {"cpus": 9.0}).after == {"cpus": None}


@pytest.mark.parametrize(
    ("changes", "status", "error"),
    [
        ({"labels": {"dltools.protect": ""}}, "skipped", "protected by its label dltools.protect"),
        ({"state": "exited"}, "stale", "the container is exited"),
        (
            {"started": datetime(2026, 1, 31, 13, tzinfo=UTC)},
            "stale",
            "the container has restarted since the plan was made",
        ),
    ],
)
def test_why_a_container_is_left_alone(changes, status, error) -> None:
    """A reason that the container gives comes before what is wrong with the settings."""
    result = compared(altered(located(**HALF), **changes), {"cpus": 0.0})
    assert (result.status, result.error) == (status, error)
    assert result.before == result.after == {"cpus": 0.5}


def test_a_paused_container_is_changed() -> None:
    there = altered(located(), state="paused", started=datetime(2026, 1, 31, 11, tzinfo=UTC))
    assert compared(there, {"cpus": 1.5}).status is Status.PLANNED


@pytest.mark.parametrize("expect", [{"cpus": 2.0}, {"cpus": None}, {"memory": 1}], ids=str)
def test_other_settings_than_the_plan_expects_are_stale(expect) -> None:
    result = compared(located(**HALF), {"cpus": 1.5}, **expect)
    assert (result.status, result.error) == CHANGED


@pytest.mark.parametrize(
    ("made", "expect", "status"),
    [
        ({"cpus": 0.5}, {"cpus": 2.0}, Status.PLANNED),
        ({"cpus": 0.5}, {"cpus": 2.0, "weight": 1024}, Status.PLANNED),
        ({"cpus": 0.5}, {"cpus": 2.0, "weight": 512}, Status.STALE),
        ({"cpus": 1.0}, {"cpus": 2.0}, Status.STALE),
        ({"weight": 1024}, {"cpus": 2.0}, Status.STALE),
    ],
)
def test_settings_that_this_run_has_made_are_known(made, expect, status) -> None:
    """The plan's sample was taken before they were in force."""
    assert compared(located(**HALF), {"cpus": 1.5}, made, **expect).status is status


@pytest.mark.parametrize("is_raised", [True, False])
def test_what_is_for_an_owner_s_sake_is_no_plan_s(engine, journal, tmp_path, is_raised) -> None:
    """A plan that wants just that finds it in force; later the container has the plan's again."""
    there, made = on_version_1(tmp_path), {"weight": 10.0}
    id_, file = there.container.id, tmp_path / "cpu.shares"
    file.write_text("1024")
    journal.add(journal_entry(id_, ours=(made,), settings={"weight": 1024.0}))
    changes = SettingsUpdate(engine, Locator(engine), Originals(engine, journal, ApplyRun()))
    changes.note_made(there, made)
    if is_raised:
        changes.raised[id_] = Raised(10.0, 1024.0, 1024.0)
    else:
        changes.own[id_] = OwnersOwn({"weight": 1024.0}, there.container.started_text)
    found = Result(1, Status.UNCHANGED, id_, "job", {"weight": 1024.0}, {"weight": 1024.0})
    assert changes.note(found, there) == found
    assert changes.made[id_] == made
    changes.raised.clear()
    changes.own.clear()
    file.write_text("10")
    assert changes.foreign(there, journal.find(id_)) == set()


def update(actuator: EngineActuator, wanted: Settings) -> Result:
    (result,) = actuator.apply(plan_of(action(wanted)))
    return result


def test_only_the_field_of_the_start_is_sent(actuator, fake_engine) -> None:
    """The engine answers 409 to CpuQuota where NanoCpus is set, and the other way round."""
    fake_engine.host_config["NanoCpus"] = 500_000_000
    update(actuator, {"cpus": 1.5})
    update(actuator, {"cpus": None})
    assert [set(update) for update in fake_engine.updates] == [{"NanoCpus"}, {"NanoCpus"}]


def test_what_others_set_meanwhile_stays(actuator, fake_engine, journal, monkeypatch) -> None:
    add = Journal.add

    def add_slowly(self: Journal, entry: Entry) -> bool:
        there: Limits = {"cpus": None, "weight": 50.0, "cpuset": None}
        monkeypatch.setattr(settings_update, "settings_in_force", lambda _: there)
        return add(self, entry)

    monkeypatch.setattr(Journal, "add", add_slowly)
    result = update(actuator, {"weight": 2})
    assert (result.status, result.error) == CHANGED
    assert not fake_engine.updates
    assert journal.find(ID) is None


def test_an_update_that_changes_nothing_is_a_failure(actuator, fake_engine) -> None:
    fake_engine.ignores_updates = True
    result = update(actuator, {"cpus": 1.5})
    assert (result.status, result.after) == (Status.FAILED, {"cpus": None})
    assert result.error


@pytest.mark.parametrize(
    ("before", "after", "status"),
    [
        ({"POST /update": 404}, {}, Status.STALE),
        ({}, {f"GET {ID}/json": 404}, Status.STALE),
        ({f"GET {ID}/json": 500}, {}, Status.FAILED),
        ({}, {f"GET {ID}/json": 500}, Status.FAILED),
    ],
)
def test_who_goes_is_stale_and_what_cannot_be_read_is_a_failure(
    actuator, fake_engine, before, after, status
) -> None:
    """Before the update, and before it is read back."""
    fake_engine.faults |= before
    fake_engine.after_update = lambda: fake_engine.faults.update(after)
    assert update(actuator, {"cpus": 1.5}).status is status


def test_results_are_printed_before_the_engine_goes_away(tool, fake_engine) -> None:
    def leave_at_the_second() -> None:
        if len(fake_engine.updates) == 2:
            fake_engine.faults |= {f"GET {ID}/json": 0, "POST /update": 0}

    fake_engine.after_update = leave_at_the_second
    given = plan({"cpus": 1.5}, {"weight": 300})
    done = tool("dl-apply", input=given, env={"DLTOOLS_PATIENCE": "0"})
    assert done.returncode == 69
    assert "no Docker engine" in complaint(done.stderr)
    assert records(done.stdout)[0]["status"] == "applied"


# Reverting what has failed, seen from inside


@pytest.mark.parametrize("status", [400, 409, 500])
def test_a_failed_change_leaves_no_entry(actuator, fake_engine, journal, status) -> None:
    fake_engine.faults["POST /update"] = status
    result = update(actuator, {"cpus": 1.5})
    assert (result.status, result.error) == (Status.FAILED, f"status {status} on demand")
    assert result.after == {"cpus": None}
    assert journal.all() == []
    assert actuator.changed == frozenset()


def test_a_failed_change_after_another_keeps_its_entry(actuator, fake_engine, journal) -> None:
    update(actuator, {"cpus": 1.5})
    fake_engine.faults["POST /update"] = 500
    assert update(actuator, {"cpus": 0.5}).after == {"cpus": 1.5}
    (entry,) = journal.all()
    assert entry.settings["cpus"] is None
    assert actuator.changed == {ID}


def test_a_change_of_one_that_ends_is_stale(actuator, fake_engine, journal, monkeypatch) -> None:
    """The engine refuses, and learns only then that the container has ended."""
    answer, ended = fake_engine.answer, Timer(0.03, setattr, (fake_engine, "state", "exited"))

    def end(method: str, path: str, body: Any) -> tuple[int, Any]:
        if path.endswith("/update"):
            ended.start()
        return answer(method, path, body)

    monkeypatch.setattr(fake_engine, "answer", end)
    fake_engine.faults["POST /update"] = 500
    result = update(actuator, {"cpus": 1.5})
    assert (result.status, result.error) == (Status.STALE, "the container is exited")
    assert journal.all() == []


def test_an_update_that_is_recorded_and_refused_is_reverted(actuator, fake_engine, journal) -> None:
    fake_engine.after_update = lambda: fake_engine.host_config.update({"CpuQuota": 20_000})
    result = update(actuator, {"cpus": 1.5})
    fake_engine.after_update = lambda: None
    assert result.status is Status.FAILED
    assert str(result.error).startswith("the engine accepted the change, but other settings")
    assert str(result.error).endswith("some settings could not be reverted")
    assert result.after == {"cpus": 0.2}
    assert len(journal.all()) == 1


def test_a_change_that_cannot_be_reverted_keeps_its_entry(actuator, fake_engine, journal) -> None:
    def fail_from_now_on() -> None:
        fake_engine.host_config["CpuQuota"] = 20_000
        fake_engine.faults["POST /update"] = 500

    fake_engine.after_update = fail_from_now_on
    result = update(actuator, {"cpus": 1.5})
    assert result.status is Status.FAILED
    assert str(result.error).endswith("the change could not be reverted: status 500 on demand")
    assert len(journal.all()) == 1


def test_a_change_is_stale_if_its_container_ends_before_the_reading(actuator, fake_engine) -> None:

    def end() -> None:
        fake_engine.host_config["CpuQuota"] = 20_000
        fake_engine.faults["POST /update"] = 409
        fake_engine.state = "removing"

    fake_engine.after_update = end
    result = update(actuator, {"cpus": 1.5})
    assert (result.status, result.error) == (Status.STALE, "the container is removing")


def test_a_change_that_is_made_after_an_absence_is_ours(actuator, fake_engine, monkeypatch) -> None:
    """An engine that restarts takes changes that it says it has not taken."""
    update(actuator, {"cpus": 1.5})
    answer, away = fake_engine.answer, False

    def restart(method: str, path: str, body: Any) -> tuple[int, Any]:
        nonlocal away
        found = answer(method, path, body)
        away = away or path.endswith("/update")
        return (404, {"message": "No such container"}) if away else found

    monkeypatch.setattr(fake_engine, "answer", restart)
    assert update(actuator, {"cpus": 0.5}).status is Status.STALE
    monkeypatch.setattr(fake_engine, "answer", answer)
    fake_engine.faults["POST /update"] = 404
    assert update(actuator, {"cpus": 0.7}).status is Status.STALE
    del fake_engine.faults["POST /update"]
    assert update(actuator, {"cpus": 1.0}).status is Status.APPLIED


# GPUs


def test_files_out_of_sight_are_a_reason_to_skip(actuator, fake_engine, monkeypatch) -> None:
    monkeypatch.setattr(docker_answers, "access_by_request", lambda _: GpuAccess(True, True))
    result = update(actuator, {"cpus": 1.5})
    assert result.status is Status.SKIPPED
    assert str(result.error).startswith("an engine update could cut off its GPU, and its cgroup ")
    assert fake_engine.updates == []
