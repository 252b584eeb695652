"""dl-apply on real containers: what it changes, what it leaves alone, and what it says."""

from collections.abc import Callable
from datetime import datetime
from typing import Any

import pytest
from helpers.containers import Containers, Job, plan_for
from helpers.examples import repeated
from helpers.tools import Tools, records

from dltools.plan.realisation.settings import Settings, only

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
    """A container of each kind of start."""
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


def test_a_quota_is_in_force_and_nothing_else_changes(apply: Any, job: Job) -> None:
    def others() -> dict[str, str]:
        quota = ("cpu.cfs_quota_us", "cpu.max")
        return {name: text for name, text in job.kernel().items() if name not in quota}

    before = others()
    plan = plan_for(job, {"cpus": 0.4})
    result = apply(plan)
    assert (result["status"], result["error"]) == ("applied", None)
    assert result["container"] == {"id": job.id, "name": job.name}
    assert result["after"]["cpus"] == pytest.approx(0.4, abs=0.001)
    assert job.shown_cpus == pytest.approx(result["after"]["cpus"], abs=0.001)
    assert job.kernel_cpus == pytest.approx(result["after"]["cpus"], abs=0.001)
    assert others() == before
    record = job.inspect().native["HostConfig"]
    again = apply(plan)
    assert again["status"] == "unchanged"
    assert again["before"] == again["after"]
    assert job.inspect().native["HostConfig"] == record


@some_starts
def test_a_quota_can_change_many_times(tool: Tools, job: Job) -> None:
    wanted = (0.4, None, 0.25, 1.1, 0.01, None)
    plans = b"".join(plan_for(job, {"cpus": cpus}) for cpus in wanted)
    results = records(tool("dl-apply", input=plans).stdout)
    assert [result["status"] for result in results] == ["applied"] * len(wanted)
    assert [result["after"]["cpus"] for result in results] == pytest.approx(wanted)
    assert job.kernel_cpus is None or job.kernel_cpus >= job.engine.cpus
    assert job.shown_cpus == 0 or job.shown_cpus >= job.engine.cpus


def test_a_quota_limits_a_busy_container(apply: Any, tool: Tools, run: Containers) -> None:
    job = run("while :; do :; done", cpu_shares=100_000)
    assert apply(plan_for(job, {"cpus": 0.1}))["status"] == "applied"
    done = tool("dl-probe", *run.only, "--window", "3", "--format", "jsonl")
    first, second = (row for row in records(done.stdout) if row["kind"] == "container")
    used = second["cpu_seconds"] - first["cpu_seconds"]
    times = [datetime.fromisoformat(row["time"]) for row in (first, second)]
    assert 0 < used / (times[1] - times[0]).total_seconds() < 0.2  # without: all it can get


# What the plan expects


@pytest.mark.parametrize("names", [("cpus",), ("cpus", "cpu_weight")], ids=str)
def test_a_plan_that_expects_the_settings_in_force_is_applied(
    run: Containers, apply: Any, names: tuple[str, ...]
) -> None:
    job = run(nano_cpus=500_000_000, cpu_shares=1024)
    in_force: Settings = {"cpus": 0.5, "cpu_weight": job.kernel_weight}
    expect = only(in_force, names)
    assert apply(plan_for(job, {"cpus": 0.4}, expect))["status"] == "applied"


@pytest.mark.parametrize(("change", "said"), [(Job.restart, "restarted"), (Job.stop, "exited")])
def test_a_restarted_or_stopped_container_is_stale(
    run: Containers, apply: Any, change: Callable[[Job], None], said: str
) -> None:
    job = run()
    plan = plan_for(job, {"cpus": 0.4})
    change(job)
    result = apply(plan, code=75)
    assert result["status"] == "stale"
    assert said in result["error"]
    assert job.shown_cpus == 0


def test_a_dry_run_notices_a_stale_plan(run: Containers, apply: Any) -> None:
    job = run(nano_cpus=500_000_000)
    plan = plan_for(job, {"cpus": 0.4}, {"cpus": 1.0})
    assert apply(plan, "-n", code=75)["status"] == "stale"


# Several plans


def test_whole_plans_before_the_cut_are_applied(run: Containers, tool: Tools) -> None:
    job = run()
    plan = plan_for(job, {"cpus": 0.4})
    done = tool("dl-apply", input=plan + plan_for(job, {"cpus": 0.2})[:-20])
    assert done.returncode == 65
    assert [result["status"] for result in records(done.stdout)] == ["applied"]
    assert job.kernel_cpus == pytest.approx(0.4)
