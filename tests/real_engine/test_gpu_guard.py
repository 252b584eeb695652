"""Containers that an engine update could cut off their GPU are changed in the kernel's files."""

import os
from datetime import UTC, datetime
from pathlib import Path

import pytest
from helpers.containers import Job
from real_engine.conftest import every_start

from dltools.actions.plans import Action, Op, Plan, Status
from dltools.actions.settings import Settings
from dltools.apply.engine_actuator import EngineActuator
from dltools.apply.turns import Rotation
from dltools.engine.docker import answers as docker_answers
from dltools.engine.docker.changes import DockerLimits
from dltools.engine.gpu_access import GpuAccess
from dltools.engine.interface import Engine
from dltools.engine.journal import Journal
from dltools.engine.limits import limit_writing
from dltools.engine.limits.cpu_limits import Locator
from dltools.notation.times import format_time


@pytest.fixture(autouse=True)
def hook(monkeypatch: pytest.MonkeyPatch) -> None:
    """Treat every container as one that got its GPU by the legacy hook."""
    if os.geteuid() != 0:
        pytest.skip("writing cgroup files takes root")
    monkeypatch.setattr(docker_answers, "access_by_request", lambda _: GpuAccess(True, True))


@pytest.fixture
def actuator(engine: Engine, state: Path) -> EngineActuator:
    return EngineActuator(engine, Journal(state / "journal"), Rotation(engine, state / "rotation"))


def plan(job: Job, wanted: Settings) -> Plan:
    action = Action(1, Op.UPDATE, job.engine.host, job.id, job.name, wanted, {}, "test")
    return Plan("test", format_time(datetime.now(UTC)), {}, {}, None, (action,))


@every_start
def test_the_kernel_changes_and_the_engine_does_not(actuator, job) -> None:
    files, shown = job.kernel(), job.inspect().native["HostConfig"]

    (result,) = actuator.apply(plan(job, {"cpus": 0.4, "weight": 300.0}))
    assert (result.status, result.error) == (Status.APPLIED, None)
    assert job.kernel_cpus == pytest.approx(0.4)
    assert job.kernel_weight == pytest.approx(300, rel=0.02)
    assert job.inspect().native["HostConfig"] == shown

    (result,) = actuator.undo()
    assert result.status is Status.APPLIED
    assert job.kernel() == files
    assert job.inspect().native["HostConfig"] == shown
    assert actuator.undo() == []


def test_what_came_by_cdi_the_engine_changes(actuator, run, monkeypatch) -> None:
    """Whatever was asked for: the GPU's device is in the specification."""
    monkeypatch.setattr(DockerLimits, "leaves_record", False)
    job = run(devices=["/dev/fuse:/dev/nvidia0"])
    assert (job.inspect().has_gpu, job.inspect().files_only) == (True, False)
    (result,) = actuator.apply(plan(job, {"weight": 300.0}))
    assert result.status is Status.APPLIED
    assert job.inspect().recorded["weight"] == pytest.approx(300, rel=0.02)


def test_a_daemon_reload_is_nobody_s_hand(actuator, run) -> None:
    """It puts back what the engine knows: the next plan sets it again, and says who may have."""
    job = run()
    located = Locator(job.engine).locate_by_id(job.id)
    actuator.apply(plan(job, {"cpus": 0.4}))
    limit_writing.write_settings(located, {"cpus": None})
    (result,) = actuator.apply(plan(job, {"cpus": 0.4}))
    assert (result.status, job.kernel_cpus) == (Status.APPLIED, pytest.approx(0.4))
    assert result.error == "systemd, or somebody, has changed cpus since dl-apply set it"


def test_a_quota_of_all_cpus_is_restored(actuator, run, engine) -> None:
    job = run(nano_cpus=engine.cpus * 1_000_000_000)
    files = job.kernel()
    actuator.apply(plan(job, {"cpus": 0.4}))
    actuator.undo()
    assert job.kernel() == files


def test_a_restart_undoes_the_change(actuator, run) -> None:
    job = run(nano_cpus=1_500_000_000)
    files = job.kernel()
    actuator.apply(plan(job, {"cpus": 0.4}))
    job.restart()
    assert job.kernel() == files
    (result,) = actuator.undo()
    assert result.status is Status.UNCHANGED
    assert job.kernel() == files


def test_files_that_cannot_be_written_are_a_reason_to_skip(actuator, run, monkeypatch) -> None:
    def refuse(*_: object) -> None:
        raise PermissionError(13, "Permission denied")

    job = run()
    files = job.kernel()
    monkeypatch.setattr(limit_writing, "write_settings", refuse)
    (result,) = actuator.apply(plan(job, {"cpus": 0.4}))
    assert result.status is Status.SKIPPED
    assert "GPU" in str(result.error)
    assert "Permission denied" in str(result.error)
    assert job.kernel() == files
