"""Impossible settings are refused before anything is sent; failed changes are reverted."""

from pathlib import Path
from typing import Any

import pytest
from helpers.containers import STARTS, Job, plan_for
from helpers.tools import records
from real_engine.conftest import FEW, every_start

from dltools.actions.plan_lines import load_plans
from dltools.actions.plans import Status
from dltools.actions.settings import Settings
from dltools.apply.engine_actuator import EngineActuator
from dltools.apply.original_settings import Originals
from dltools.apply.turns import Rotation
from dltools.engine.docker.changes import DockerLimits
from dltools.engine.docker.engine import DockerEngine
from dltools.engine.interface import RefusedError
from dltools.engine.journal import Journal
from dltools.engine.limits.cpu_limits import Locator
from dltools.engine.runs import ApplyRun

FIELDS = ("NanoCpus", "CpuPeriod", "CpuQuota", "CpuShares", "CpusetCpus")


def record(job: Job) -> dict[str, Any]:
    config = job.inspect().native["HostConfig"]
    return {name: config[name] for name in FIELDS}


def entries(state: Path) -> list[Path]:
    return list((state / "journal").glob("*.json"))


@pytest.mark.parametrize("cpus", [0.01, 1.5])
def test_settings_at_the_bounds_are_applied(run, tool, cpus) -> None:
    job = run(nano_cpus=500_000_000)
    for wanted in ({"cpus": cpus}, {"weight": 2}, {"weight": 262_144}):
        (result,) = records(tool("dl-apply", input=plan_for(job, wanted)).stdout)
        assert (result["status"], result["error"]) == ("applied", None)


@every_start
def test_a_quota_of_more_cpus_than_there_are_removes_the_quota(job, tool) -> None:
    (result,) = records(tool("dl-apply", input=plan_for(job, {"cpus": 1000})).stdout)
    assert result["status"] in ("applied", "unchanged")
    assert result["after"] == {"cpus": None}
    assert job.kernel_cpus is None


@pytest.fixture
def actuator(engine: DockerEngine, state: Path) -> EngineActuator:
    return EngineActuator(engine, Journal(state / "journal"), Rotation(engine, state / "rotation"))


def apply(actuator: EngineActuator, job: Job, wanted: Settings) -> Any:
    (plan,) = load_plans(plan_for(job, wanted).splitlines(keepends=True), "test")
    (result,) = actuator.apply(plan)
    return result


@pytest.fixture
def unbounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """Send what no kernel takes, as with a bug, or an older kernel's bounds."""
    monkeypatch.setattr("dltools.apply.settings_update.out_of_bounds", lambda _: None)


ALL_AT_ONCE: Settings = {"cpus": 1e-9, "weight": 300, "cpuset": "0-1"}
ALONE: tuple[Settings, ...] = ({"cpus": 1e-9}, {"weight": 10.7})


@pytest.mark.usefixtures("unbounded")
@pytest.mark.parametrize(
    ("job", "wanted"),
    [(start, ALL_AT_ONCE) for start in STARTS.values()]
    + [(STARTS[name], wanted) for wanted in ALONE for name in FEW],
    indirect=["job"],
    ids=str,
)
def test_a_failed_change_is_reverted_at_once(actuator, job, state, wanted) -> None:
    """On the engine's record, which the kernel does not know, and in the kernel's files."""
    before, kernel = job.effects, job.kernel()
    if job.has_v2 and wanted == {"weight": 10.7}:
        pytest.skip("cgroup version 2 rounds any weight")
    result = apply(actuator, job, wanted)
    assert result.status is Status.FAILED
    assert result.after == result.before
    assert (job.effects, job.kernel()) == (before, kernel)
    assert entries(state) == []
    assert actuator.undo() == []
    job.restart()
    assert (job.effects, job.kernel()) == (before, kernel)


def test_an_update_that_fails_half_way_is_reverted(actuator, run, state, monkeypatch) -> None:
    """The engine refuses after it has recorded and set a part: it is asked where the kernel's files
    are elsewhere."""
    monkeypatch.setattr(DockerLimits, "leaves_record", False)
    job = run(nano_cpus=500_000_000)
    before, kernel = record(job), job.kernel()
    update = DockerLimits.update

    def break_off(self: DockerLimits, id_: str, settings: Any) -> None:
        update(self, id_, settings)
        monkeypatch.setattr(DockerLimits, "update", update)
        raise RefusedError("on demand")

    monkeypatch.setattr(DockerLimits, "update", break_off)
    result = apply(actuator, job, {"cpus": 0.3, "weight": 300.0})
    assert (result.status, result.error) == (Status.FAILED, "on demand")
    assert (record(job)["NanoCpus"], job.kernel()) == (before["NanoCpus"], kernel)
    assert entries(state) == []


def damaged(actuator: EngineActuator, job: Job, state: Path, **record: int) -> None:
    """Leave an entry, and a record that the kernel has refused."""
    engine = actuator.engine
    originals = Originals(engine, Journal(state / "journal"), ApplyRun())
    originals.record(originals.describe(Locator(engine).locate_by_id(job.id)))
    job.record(record)


@pytest.mark.parametrize(
    "start", [{}, {"nano_cpus": 500_000_000}, {"cpu_shares": 512}, {"cpuset_cpus": "0"}], ids=str
)
def test_a_damaged_record_is_repaired(actuator, tool, run, state, start) -> None:
    """NanoCpus 1: the kernel never had it, and the engine refuses every CpuQuota beside it."""
    job = run(**start)
    before, kernel = job.effects, job.kernel()
    damaged(actuator, job, state, NanoCpus=1)
    assert record(job)["NanoCpus"] == 1
    done = tool("dl-apply", "--undo")
    assert (done.returncode, done.stderr) == (0, b"")
    assert [result["status"] for result in records(done.stdout)] == ["applied"]
    assert (job.effects, job.kernel()) == (before, kernel)
    assert entries(state) == []
    job.restart()
    assert job.effects == before
    assert job.kernel_cpus == before["cpus"] or (
        before["cpus"] is None and job.kernel_cpus == job.engine.cpus
    )
