"""Jobs of Slurm as containers, on machines made of files; scontrol is a script that notes words.

tests/contract runs the same over a real Slurm.
"""

from pathlib import Path

import pytest
from helpers.made_cgroups import V1, Machine

from dltools.engine.cgroups.slurm import slurm_engine
from dltools.engine.interface import RefusedError

JOB = "/slurm_n1/uid_0/job_1"
SCONTROL = """#!/bin/sh
echo "$*" >>{notes}
case "$1" in
show) echo "JobId=$3 JobState={state} NumNodes={nodes} StdOut={log} Power=" ;;
*) {answer} ;;
esac
"""


def add_job(machine: Machine, path: str, pid: int, name: str = "train") -> None:
    """Add a job as Slurm 22.05 does on version 1: no controller cpu, counters in the task."""
    machine.add(path, pid + 1000, only=("freezer", "cpuset"), name="slurmstepd", began=5)
    machine.add(f"{path}/step_batch", pid, only=("freezer", "cpuset"))
    machine.add(f"{path}/step_batch/task_0", pid, only=("cpuacct",))
    lines = f"1:cpuacct:{path}/step_batch/task_0\n2:freezer:{path}/step_batch\n3:cpu:/\n"
    (machine.root / f"proc/{pid}/cgroup").write_text(lines)
    variables = f"SLURM_JOB_NAME={name}\0SLURM_JOB_PARTITION=gpu\0"
    (machine.root / f"proc/{pid}/environ").write_bytes(variables.encode())


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    (tmp_path / "root").mkdir()
    made = Machine(tmp_path / "root", V1)
    add_job(made, JOB, 11)
    add_job(made, "/slurm_n1/uid_0/job_12", 12, "other job\n")
    return made


def scontrol(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    answer: str = "true",
    nodes: int = 1,
    state: str = "RUNNING",
) -> Path:
    notes = tmp_path / "notes"
    notes.touch()
    program = tmp_path / "bin/scontrol"
    program.parent.mkdir(exist_ok=True)
    program.write_text(
        SCONTROL.format(notes=notes, answer=answer, nodes=nodes, state=state, log=tmp_path / "out")
    )
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(program.parent), prepend=":")
    monkeypatch.setattr("dltools.engine.cgroups.slurm._STOPS_S", 0.0)
    return notes


def test_a_job_has_its_users_name_and_its_number(machine) -> None:
    engine = slurm_engine(machine.root)
    assert [one.name for one in engine.containers()] == ["train-1", "other_job_-12"]
    found = engine.inspect("train-1")
    assert (found.pid, found.cgroup_path) == (11, JOB)
    assert found.labels == {"slurm.job": "1", "slurm.partition": "gpu", "slurm.user": "root"}
    assert [one.name for one in engine.containers(labels=["slurm.job=12"])] == ["other_job_-12"]


def test_a_job_is_found_by_its_number_on_version_2(tmp_path) -> None:
    Machine(tmp_path, ()).add("/system.slice/slurmstepd.scope/job_7/step_0/user/task_0", 11)
    assert [one.name for one in slurm_engine(tmp_path).containers()] == ["job-7"]


def test_jobs_can_only_be_paused_on_version_1(machine, tmp_path, monkeypatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    none = slurm_engine(machine.root).capabilities
    assert (none.limits, none.pauses) == (frozenset(), False)
    assert "scontrol is not in PATH" in none.why
    monkeypatch.setenv("PATH", "/bin:/usr/bin")
    scontrol(tmp_path, monkeypatch)
    found = slurm_engine(machine.root).capabilities
    assert (found.limits, found.pauses) == (frozenset(), True)
    assert found.why == (
        "Slurm gives its jobs no controller cpu on cgroup version 1, and keeps CPU lists"
    )


def test_jobs_have_weights_and_quotas_on_version_2(tmp_path) -> None:
    path = "/system.slice/slurmstepd.scope/job_7"
    Machine(tmp_path, ()).add(path, 11)
    engine = slurm_engine(tmp_path)
    assert engine.capabilities.limits == {"cpus", "weight"}
    container = engine.inspect("job-7")
    assert (container.limit_fields["cpu.weight"], container.cgroup_path) == ("100", path)


def test_only_scontrol_pauses(machine, tmp_path, monkeypatch) -> None:
    notes = scontrol(tmp_path, monkeypatch)
    engine, texts = slurm_engine(machine.root), machine.texts(JOB)
    engine.pause("train-1")
    engine.unpause("train-1")
    assert notes.read_text().splitlines() == ["show job 1 -o", "suspend 1", "resume 1"]
    assert machine.texts(JOB) == texts


def test_a_job_is_paused_when_all_but_slurms_own_processes_are_stopped(machine) -> None:
    engine = slurm_engine(machine.root)
    stat = machine.root / "proc/11/stat"
    stat.write_text(stat.read_text().replace(" S ", " T ", 1))
    states = {one.name: one.state for one in engine.containers()}
    assert states == {"train-1": "paused", "other_job_-12": "running"}


def test_a_job_that_slurm_has_frozen_too_is_paused(machine) -> None:
    engine, stat = slurm_engine(machine.root), machine.root / "proc/11/stat"
    stat.write_text(stat.read_text().replace(" S ", " D ", 1))
    assert engine.inspect("train-1").state == "running", "it waits for a disk"
    (machine.folder("freezer", f"{JOB}/step_batch") / "freezer.state").write_text("FROZEN\n")
    assert engine.inspect("train-1").state == "paused"


def test_a_job_that_is_about_to_stop_is_paused(machine, tmp_path, monkeypatch) -> None:
    scontrol(tmp_path, monkeypatch, state="SUSPENDED")
    assert slurm_engine(machine.root).inspect("train-1").state == "paused"


def test_slurms_complaint_is_the_reason(machine, tmp_path, monkeypatch) -> None:
    scontrol(tmp_path, monkeypatch, "echo Job is not suspended for job 1 >&2; exit 1")
    with pytest.raises(RefusedError, match=r"^scontrol resume: Job is not suspended for job 1$"):
        slurm_engine(machine.root).unpause("train-1")


def test_a_job_of_several_nodes_is_not_paused(machine, tmp_path, monkeypatch) -> None:
    notes = scontrol(tmp_path, monkeypatch, nodes=2)
    with pytest.raises(RefusedError, match="runs on 2 nodes"):
        slurm_engine(machine.root).pause("train-1")
    assert notes.read_text().splitlines() == ["show job 1 -o"]


def test_a_job_without_an_output_of_its_own_has_slurms(machine, tmp_path, monkeypatch) -> None:
    scontrol(tmp_path, monkeypatch)
    (tmp_path / "out").write_text("loss: 1\n")
    engine = slurm_engine(machine.root)
    entries = [one for some in engine.logs(engine.inspect("train-1"), 0.0) for one in some]
    assert [one.partition(b" ")[2] for one in entries] == [b"loss: 1\n"]
