"""dl-apply on real containers: what it changes, what it leaves alone, and what it says."""

from typing import Any

import pytest
from helpers.containers import Job, plan_for
from helpers.tools import Tools, records
from real_engine.conftest import every_start


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


@every_start
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
