"""dl-apply --undo restores every container exactly, whatever happened meanwhile."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from helpers.containers import Containers, Job, plan_for
from helpers.tools import Tools, records
from real_engine.test_applying import STARTS, some_starts

from dltools.plan.realisation.settings import Settings


@pytest.fixture(params=STARTS.values(), ids=STARTS.keys())
def job(request: pytest.FixtureRequest, run: Containers) -> Job:
    """A container of each kind of start."""
    return run(**request.param)


@pytest.fixture
def change(tool: Tools) -> Any:
    """Apply settings to a container, which must work."""

    def act(job: Job, *wanted: Settings) -> None:
        done = tool("dl-apply", input=b"".join(plan_for(job, each) for each in wanted))
        assert (done.returncode, done.stderr) == (0, b"")
        assert {result["status"] for result in records(done.stdout)} == {"applied"}

    return act


@pytest.fixture
def undo(tool: Tools) -> Any:
    """Undo, and return the results' statuses."""

    def act(*arguments: str) -> list[str]:
        done = tool("dl-apply", "--undo", *arguments)
        statuses = [result["status"] for result in records(done.stdout)]
        assert done.returncode == 0
        assert (b"nothing to undo" in done.stderr) == (statuses == [])
        assert done.stderr == b"" or not statuses
        return statuses

    return act


def entries(state: Path) -> list[dict[str, Any]]:
    return [json.loads(path.read_bytes()) for path in (state / "journal").glob("*.json")]


def test_the_kernel_s_files_are_restored_and_stay_so(change: Any, undo: Any, job: Job) -> None:
    before = job.kernel()
    change(job, {"cpus": 0.4, "cpu_weight": 300})
    assert job.kernel() != before
    assert undo() == ["applied"]
    assert job.kernel() == before
    job.restart()
    assert job.kernel() == before


@some_starts
def test_many_changes_are_undone_at_once(change: Any, undo: Any, job: Job, state: Path) -> None:
    before = job.kernel()
    change(job, {"cpus": 0.4}, {"cpu_weight": 300}, {"cpus": None}, {"cpus": 0.25})
    (entry,) = entries(state)
    assert entry["settings"]["cpus"] in (None, pytest.approx(job_cores(before)))
    assert undo() == ["applied"]
    assert job.kernel() == before
    assert entries(state) == []


def job_cores(kernel: dict[str, str]) -> float | None:
    if "cpu.max" in kernel:
        quota, period = kernel["cpu.max"].split()
        return None if quota == "max" else int(quota) / int(period)
    return int(kernel["cpu.cfs_quota_us"]) / int(kernel["cpu.cfs_period_us"])


@some_starts
def test_a_restarted_container_is_restored(change: Any, undo: Any, job: Job) -> None:
    before = job.kernel()
    change(job, {"cpus": 0.4, "cpu_weight": 300})
    job.restart()
    assert job.kernel_cpus == pytest.approx(0.4)
    assert undo() == ["applied"]
    assert job.kernel() == before


@some_starts
def test_a_stopped_container_is_restored(change: Any, undo: Any, job: Job) -> None:
    before = job.kernel()
    change(job, {"cpus": 0.4, "cpu_weight": 300})
    job.stop()
    assert undo() == ["applied"]
    job.start()
    assert job.kernel() == before


@pytest.mark.parametrize(
    ("start", "steps"),
    [
        ({"nano_cpus": 1_000_000_000}, [{"cpus": 0.5}, {"cpus": 1.009}]),
        ({"cpu_shares": 1000}, [{"cpu_weight": 500}, {"cpu_weight": 1009}]),
        ({"cpu_quota": 200_000}, [{"cpus": 0.5}, {"cpus": None}]),
    ],
    ids=["quota", "weight", "whole node"],
)
def test_a_last_change_within_the_tolerance_is_undone_too(
    change: Any, undo: Any, run: Containers, start: dict[str, Any], steps: list[Settings]
) -> None:
    """Applying has a tolerance, undoing has none."""
    job = run(**start)
    before = job.kernel()
    change(job, *steps)
    undo()
    assert job.kernel() == before


def test_the_journal_keeps_the_first_settings(change: Any, run: Containers, state: Path) -> None:
    job = run(nano_cpus=1_500_000_000)
    change(job, {"cpus": 0.4})
    (entry,) = entries(state)
    change(job, {"cpus": 0.7})
    (later,) = entries(state)
    assert {**later, "ours": entry["ours"]} == entry
    before_and_after_each = [1.5, 0.4, 0.4, 0.7]
    assert [known["cpus"] for known in later["ours"]] == before_and_after_each
    assert entry["container_id"] == job.id
    assert entry["settings"]["cpus"] == 1.5
    assert entry["fields"]["NanoCpus"] == 1_500_000_000


@pytest.mark.usefixtures("engine")
def test_nothing_to_undo_is_no_failure(undo: Any) -> None:
    assert undo() == []


def test_several_containers_are_restored(change: Any, undo: Any, run: Containers) -> None:
    jobs = [run(name=name, **STARTS[name]) for name in ("none", "cpus", "shares")]
    before = [job.kernel() for job in jobs]
    for job in jobs:
        change(job, {"cpus": 0.4})
    assert undo() == ["applied"] * 3
    assert [job.kernel() for job in jobs] == before


def test_a_container_that_is_gone_leaves_the_journal(
    change: Any, undo: Any, run: Containers, state: Path
) -> None:
    job = run()
    change(job, {"cpus": 0.4})
    job.remove()
    assert undo() == []
    assert entries(state) == []


def test_a_container_that_was_restored_by_hand_leaves_the_journal(
    change: Any, undo: Any, run: Containers, state: Path
) -> None:
    job = run(nano_cpus=500_000_000)
    change(job, {"cpus": 0.4})
    job.engine.update(job.id, {"NanoCpus": 500_000_000})
    assert undo() == ["unchanged"]
    assert entries(state) == []


def test_a_dry_undo_writes_nothing(change: Any, undo: Any, run: Containers, state: Path) -> None:
    job = run()
    change(job, {"cpus": 0.4})
    before, kept = job.kernel(), entries(state)
    assert undo("--dry-run") == ["planned"]
    assert job.kernel() == before
    assert entries(state) == kept


def test_a_change_after_an_undo_is_journalled_anew(
    change: Any, undo: Any, run: Containers, state: Path
) -> None:
    job = run()
    change(job, {"cpus": 0.4})
    undo()
    job.engine.update(job.id, {"CpuQuota": 80_000})
    change(job, {"cpus": 0.3})
    assert entries(state)[0]["settings"]["cpus"] == 0.8
    undo()
    assert job.kernel_cpus == pytest.approx(0.8)
