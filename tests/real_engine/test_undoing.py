"""dl-apply --undo restores every container exactly, whatever happened meanwhile."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from helpers.containers import Job, plan_for
from helpers.tools import Tools, records
from real_engine.conftest import some_starts

from dltools.actions.settings import Settings


@pytest.fixture
def change(tool: Tools) -> Any:
    def act(job: Job, *wanted: Settings) -> None:
        done = tool("dl-apply", input=b"".join(plan_for(job, each) for each in wanted))
        assert (done.returncode, done.stderr) == (0, b"")
        assert {result["status"] for result in records(done.stdout)} == {"applied"}

    return act


@pytest.fixture
def undo(tool: Tools) -> Any:
    def act(*arguments: str) -> list[str]:
        done = tool("dl-apply", "--undo", *arguments)
        statuses = [result["status"] for result in records(done.stdout)]
        assert done.returncode == 0
        assert (b"nothing to undo" in done.stderr) == (statuses == [])
        assert done.stderr == b"" or not statuses
        return statuses

    return act


# A restart loses what is in the kernel's files alone.
MEANWHILE: dict[str, tuple[Callable[[Job], None], ...]] = {
    "nothing": (),
    "a restart": (Job.restart,),
    "a stop": (Job.stop,),
}


@pytest.mark.parametrize("happens", MEANWHILE.values(), ids=MEANWHILE.keys())
@some_starts
def test_the_kernel_s_files_are_restored_and_stay_so(change, undo, job, state, happens) -> None:
    before = job.kernel()
    change(job, {"cpus": 0.4}, {"weight": 300}, {"cpus": None}, {"cpus": 0.25})
    assert job.kernel() != before
    for happen in happens:
        happen(job)
    assert undo() == ["unchanged" if Job.restart in happens else "applied"]
    assert entries(state) == []
    job.restart()
    assert job.kernel() == before


def entries(state: Path) -> list[dict[str, Any]]:
    return [json.loads(path.read_bytes()) for path in (state / "journal").glob("*.json")]


@pytest.mark.parametrize(
    ("start", "steps"),
    [
        ({"nano_cpus": 1_000_000_000}, [{"cpus": 0.5}, {"cpus": 1.009}]),
        ({"cpu_shares": 1000}, [{"weight": 500}, {"weight": 1009}]),
        ({"cpu_quota": 200_000}, [{"cpus": 0.5}, {"cpus": None}]),
    ],
    ids=["quota", "weight", "whole node"],
)
def test_a_last_change_within_the_tolerance_is_undone_too(change, undo, run, start, steps) -> None:
    """Applying has a tolerance, undoing has none."""
    job = run(**start)
    before = job.kernel()
    change(job, *steps)
    undo()
    assert job.kernel() == before
