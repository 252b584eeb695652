"""dl-apply on real containers: what it changes, what it leaves alone, and what it says."""

from typing import Any

import pytest
from helpers.containers import Containers, Job, plan_for
from helpers.examples import repeated
from helpers.tools import Tools, records

STARTS: dict[str, dict[str, Any]] = {
    "none": {},
    "cpus": {"nano_cpus": 1_500_000_000},
    "quota": {"cpu_quota": 120_000},
    "quota and period": {"cpu_quota": 60_000, "cpu_period": 50_000},
    "period alone": {"cpu_period": 50_000},
    "shares": {"cpu_shares": 512},
    "cpuset": {"cpuset_cpus": "0"},
}
"""The ways to start a container with or without CPU limits."""


some_starts = pytest.mark.parametrize(
    "job",
    [
        pytest.param(STARTS[name], id=name)
        for name in repeated(("none", "quota and period", "shares"), tuple(STARTS))
    ],
    indirect=True,
)
"""For a test beside one that tries all: a few in `make test`."""


@pytest.fixture(params=STARTS.values(), ids=STARTS.keys())
def job(request: pytest.FixtureRequest, run: Containers) -> Job:
    return run(**request.param)


@pytest.fixture
def apply(tool: Tools) -> Any:
    """Apply a plan and return its only result. `code` is the exit code to expect."""

    def act(plan: bytes, *arguments: str, code: int = 0) -> dict[str, Any]:
        done = tool("dl-apply", *arguments, input=plan)
        assert (done.returncode, done.stderr) == (code, b"")
        (result,) = records(done.stdout)
        return dict(result)

    return act


# What is applied


def test_a_quota_is_in_force_and_nothing_else_changes(apply, job) -> None:
    def others() -> dict[str, str]:
        quota = ("cpu.cfs_quota_us", "cpu.max")
        return {name: text for name, text in job.kernel().items() if name not in quota}

    before, shown = others(), job.shown_cpus
    plan = plan_for(job, {"cpus": 0.4})
    result = apply(plan)
    assert (result["status"], result["error"]) == ("applied", None)
    assert result["container"] == {"id": job.id, "name": job.name}
    assert result["after"]["cpus"] == pytest.approx(0.4, abs=0.001)
    assert job.shown_cpus == shown  # the engine's record is its owner's
    assert job.kernel_cpus == pytest.approx(result["after"]["cpus"], abs=0.001)
    assert others() == before
    record = job.inspect().native["HostConfig"]
    again = apply(plan)
    assert again["status"] == "unchanged"
    assert again["before"] == again["after"]
    assert job.inspect().native["HostConfig"] == record


# What the plan expects


@pytest.mark.parametrize(("change", "said"), [(Job.restart, "restarted"), (Job.stop, "exited")])
def test_a_restarted_or_stopped_container_is_stale(run, apply, change, said) -> None:
    job = run()
    plan = plan_for(job, {"cpus": 0.4})
    change(job)
    result = apply(plan, code=75)
    assert result["status"] == "stale"
    assert said in result["error"]
    assert job.shown_cpus == 0


# Several plans


def test_whole_plans_before_the_cut_are_applied(run, tool) -> None:
    job = run()
    plan = plan_for(job, {"cpus": 0.4})
    done = tool("dl-apply", input=plan + plan_for(job, {"cpus": 0.2})[:-20])
    assert done.returncode == 65
    assert [result["status"] for result in records(done.stdout)] == ["applied"]
    assert job.kernel_cpus == pytest.approx(0.4)
