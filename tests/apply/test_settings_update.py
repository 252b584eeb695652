"""Updates on an engine that fails half-way: each action has its own result."""

from __future__ import annotations

from threading import Timer
from typing import Any

import pytest
from helpers.fake_engine import ID, FakeEngine, action, plan, plan_of
from helpers.tools import Tools, complaint, records

from dltools.apply.actuator import Actuator
from dltools.apply.journal import Journal
from dltools.engine.docker import answers as docker_answers
from dltools.engine.docker.engine import DockerEngine
from dltools.engine.interface import GpuAccess
from dltools.plan.realisation.settings import Settings
from dltools.plan.records import Result, Status


@pytest.fixture
def apply(tool: Tools, fake_engine: FakeEngine) -> Any:
    def act(*wanted: dict[str, Any], arguments: tuple[str, ...] = ()) -> Any:
        env = {"DOCKER_HOST": fake_engine.url, "DLTOOLS_PATIENCE": "0"}
        return tool("dl-apply", *arguments, input=plan(*wanted), env=env)

    return act


def test_a_container_of_a_remote_engine_is_changed_and_read_back(
    apply: Any, fake_engine: FakeEngine
) -> None:
    done = apply({"cpus": 1.5, "cpu_weight": 300})
    (result,) = records(done.stdout)
    assert (done.returncode, result["status"]) == (0, "applied")
    assert result["before"] == {"cpus": None, "cpu_weight": 1024}
    assert result["after"] == {"cpus": 1.5, "cpu_weight": 300}
    assert fake_engine.updates == [{"CpuPeriod": 100_000, "CpuQuota": 150_000, "CpuShares": 300}]


def test_a_container_of_a_remote_engine_is_restored(
    apply: Any, tool: Tools, fake_engine: FakeEngine
) -> None:
    apply({"cpus": 1.5})
    done = tool("dl-apply", "--undo", env={"DOCKER_HOST": fake_engine.url})
    assert (done.returncode, done.stderr) == (0, b"")
    assert records(done.stdout)[0]["status"] == "applied"
    assert fake_engine.host_config["CpuQuota"] == -1


def test_only_the_field_of_the_start_is_sent(apply: Any, fake_engine: FakeEngine) -> None:
    """The engine answers 409 to CpuQuota where NanoCpus is set, and the other way round."""
    fake_engine.host_config["NanoCpus"] = 500_000_000
    apply({"cpus": 1.5})
    apply({"cpus": None})
    assert [set(update) for update in fake_engine.updates] == [{"NanoCpus"}, {"NanoCpus"}]


@pytest.mark.parametrize("status", [400, 409, 500])
def test_a_refused_update_is_a_failure_with_the_engine_s_words(
    apply: Any, fake_engine: FakeEngine, status: int
) -> None:
    fake_engine.faults["POST /update"] = status
    done = apply({"cpus": 1.5})
    (result,) = records(done.stdout)
    assert (done.returncode, result["status"]) == (1, "failed")
    assert f"status {status} on demand" in result["error"]
    assert result["after"] == {"cpus": None}


def test_an_update_that_changes_nothing_is_a_failure(apply: Any, fake_engine: FakeEngine) -> None:
    fake_engine.ignores_updates = True
    done = apply({"cpus": 1.5})
    (result,) = records(done.stdout)
    assert (done.returncode, result["status"]) == (1, "failed")
    assert result["after"] == {"cpus": None}
    assert result["error"]


def test_a_container_that_goes_before_the_update_is_stale(
    apply: Any, fake_engine: FakeEngine
) -> None:
    fake_engine.faults["POST /update"] = 404
    done = apply({"cpus": 1.5})
    assert (done.returncode, records(done.stdout)[0]["status"]) == (75, "stale")


def test_a_container_that_goes_before_the_reading_back_is_stale(
    apply: Any, fake_engine: FakeEngine
) -> None:
    fake_engine.after_update = lambda: fake_engine.faults.update({f"GET {ID}/json": 404})
    done = apply({"cpus": 1.5})
    assert (done.returncode, records(done.stdout)[0]["status"]) == (75, "stale")


def test_an_inspection_that_fails_is_a_failure_of_its_action(
    apply: Any, fake_engine: FakeEngine
) -> None:
    fake_engine.faults[f"GET {ID}/json"] = 500
    done = apply({"cpus": 1.5}, {"cpus": 1.5})
    assert done.returncode == 1
    assert [result["status"] for result in records(done.stdout)] == ["failed", "failed"]


def test_a_reading_back_that_fails_is_a_failure_of_its_action(
    apply: Any, fake_engine: FakeEngine
) -> None:
    fake_engine.after_update = lambda: fake_engine.faults.update({f"GET {ID}/json": 500})
    done = apply({"cpus": 1.5})
    assert (done.returncode, records(done.stdout)[0]["status"]) == (1, "failed")


def test_results_are_printed_before_the_engine_goes_away(
    apply: Any, fake_engine: FakeEngine
) -> None:
    done = apply({"cpus": 1.5}, {"cpu_weight": 300})
    assert [r["status"] for r in records(done.stdout)] == ["applied", "applied"]

    apply({"cpus": None}, {"cpu_weight": 1024})
    count = len(fake_engine.updates)

    def leave_at_the_second() -> None:
        if len(fake_engine.updates) == count + 2:
            fake_engine.faults |= {f"GET {ID}/json": 0, "POST /update": 0}

    fake_engine.after_update = leave_at_the_second
    done = apply({"cpus": 1.5}, {"cpu_weight": 300})
    assert done.returncode == 69
    assert "no Docker engine" in complaint(done.stderr)
    assert records(done.stdout)[0]["status"] == "applied"


def test_undoing_goes_on_after_a_failure(apply: Any, tool: Tools, fake_engine: FakeEngine) -> None:
    apply({"cpus": 1.5})
    env = {"DOCKER_HOST": fake_engine.url}
    fake_engine.faults["POST /update"] = 500
    done = tool("dl-apply", "--undo", env=env)
    assert (done.returncode, records(done.stdout)[0]["status"]) == (1, "failed")
    fake_engine.faults.clear()
    done = tool("dl-apply", "--undo", env=env)
    assert (done.returncode, records(done.stdout)[0]["status"]) == (0, "applied")


# Reverting what has failed, seen from inside


def update(actuator: Actuator, wanted: Settings) -> Result:
    (result,) = actuator.apply(plan_of(action(wanted)))
    return result


def test_a_failed_change_leaves_no_entry(
    actuator: Actuator, fake_engine: FakeEngine, journal: Journal
) -> None:
    fake_engine.faults["POST /update"] = 500
    result = update(actuator, {"cpus": 1.5})
    assert (result.status, result.error) == (Status.FAILED, "status 500 on demand")
    assert journal.entries("FAKE") == []
    assert actuator.changed == frozenset()


def test_a_failed_change_after_another_keeps_its_entry(
    actuator: Actuator, fake_engine: FakeEngine, journal: Journal
) -> None:
    update(actuator, {"cpus": 1.5})
    fake_engine.faults["POST /update"] = 500
    assert update(actuator, {"cpus": 0.5}).after == {"cpus": 1.5}
    (entry,) = journal.entries("FAKE")
    assert entry.settings["cpus"] is None
    assert actuator.changed == {ID}


def test_a_change_of_a_container_that_ends_meanwhile_is_stale(
    actuator: Actuator, fake_engine: FakeEngine, journal: Journal, monkeypatch: pytest.MonkeyPatch
) -> None:
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
    assert journal.entries("FAKE") == []


def test_an_update_that_is_recorded_and_refused_is_reverted(
    actuator: Actuator, fake_engine: FakeEngine, journal: Journal
) -> None:
    fake_engine.after_update = lambda: fake_engine.host_config.update({"CpuQuota": 20_000})
    result = update(actuator, {"cpus": 1.5})
    fake_engine.after_update = lambda: None
    assert result.status is Status.FAILED
    assert str(result.error).startswith("the engine accepted the change, but other settings")
    assert str(result.error).endswith("some settings could not be reverted")
    assert result.after == {"cpus": 0.2}
    assert len(journal.entries("FAKE")) == 1


def test_a_change_that_cannot_be_reverted_keeps_its_entry(
    actuator: Actuator, fake_engine: FakeEngine, journal: Journal
) -> None:
    def fail_from_now_on() -> None:
        fake_engine.host_config["CpuQuota"] = 20_000
        fake_engine.faults["POST /update"] = 500

    fake_engine.after_update = fail_from_now_on
    result = update(actuator, {"cpus": 1.5})
    assert result.status is Status.FAILED
    assert str(result.error).endswith("the change could not be reverted: status 500 on demand")
    assert len(journal.entries("FAKE")) == 1


# GPUs


def test_an_update_that_cuts_off_the_gpu_is_a_failure(
    actuator: Actuator, monkeypatch: pytest.MonkeyPatch
) -> None:
    answers = iter([True, False])
    monkeypatch.setattr(docker_answers, "gpu_access", lambda _: GpuAccess.LASTING)
    monkeypatch.setattr(DockerEngine, "can_open_gpu", lambda *_: next(answers))
    result = update(actuator, {"cpus": 1.5})
    assert (result.status, result.error) == (
        Status.FAILED, "the update has cut off its GPU: restart the container",
    )  # fmt: skip


def test_files_that_are_not_visible_are_a_reason_to_skip(
    actuator: Actuator, fake_engine: FakeEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(docker_answers, "gpu_access", lambda _: GpuAccess.FRAGILE)
    monkeypatch.setattr(DockerEngine, "can_open_gpu", lambda *_: True)
    result = update(actuator, {"cpus": 1.5})
    assert result.status is Status.SKIPPED
    assert str(result.error).startswith("an engine update could cut off its GPU, and its cgroup ")
    assert fake_engine.updates == []
