"""dl-apply on real containers: what it changes, what it leaves alone, and what it says."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from helpers.containers import Containers, Job, api, plan_for
from helpers.examples import repeated
from helpers.tools import Tools, complaint, records

from dltools.notation.times import format_time
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


def journal(state: Path) -> list[dict[str, Any]]:
    return [json.loads(path.read_bytes()) for path in (state / "journal").glob("*.json")]


# What is applied


def test_a_quota_is_in_force_and_nothing_else_changes(apply: Any, job: Job) -> None:
    def others() -> dict[str, str]:
        quota = ("cpu.cfs_quota_us", "cpu.max")
        return {name: text for name, text in job.kernel().items() if name not in quota}

    before = others()
    result = apply(plan_for(job, {"cpus": 0.4}))
    assert (result["status"], result["error"]) == ("applied", None)
    assert result["container"] == {"id": job.id, "name": job.name}
    assert result["after"]["cpus"] == pytest.approx(0.4, abs=0.001)
    assert job.shown_cpus == pytest.approx(result["after"]["cpus"], abs=0.001)
    assert job.kernel_cpus == pytest.approx(result["after"]["cpus"], abs=0.001)
    assert others() == before


@some_starts
def test_a_quota_is_removed(apply: Any, job: Job) -> None:
    assert apply(plan_for(job, {"cpus": 0.4}))["status"] == "applied"
    result = apply(plan_for(job, {"cpus": None}))
    assert result["status"] == "applied"
    assert result["after"]["cpus"] is None
    assert job.kernel_cpus is None or job.kernel_cpus >= job.engine.cpus
    assert job.shown_cpus == 0 or job.shown_cpus >= job.engine.cpus


@some_starts
def test_a_quota_can_change_many_times(tool: Tools, job: Job) -> None:
    wanted = (0.4, None, 0.25, 1.1, None, 0.01)
    plans = b"".join(plan_for(job, {"cpus": cpus}) for cpus in wanted)
    results = records(tool("dl-apply", input=plans).stdout)
    assert [result["status"] for result in results] == ["applied"] * len(wanted)
    assert [result["after"]["cpus"] for result in results] == pytest.approx(wanted)
    assert job.kernel_cpus == pytest.approx(0.01)


def test_quota_and_weight_in_one_action(apply: Any, run: Containers) -> None:
    job = run(nano_cpus=1_500_000_000)
    result = apply(plan_for(job, {"cpus": 0.4, "cpu_weight": 2048}))
    assert result["status"] == "applied"
    assert job.kernel_cpus == pytest.approx(0.4)
    assert job.kernel_weight == pytest.approx(2048, rel=0.02)


@some_starts
def test_the_same_plan_again_is_unchanged(apply: Any, job: Job) -> None:
    plan = plan_for(job, {"cpus": 0.4})
    assert apply(plan)["status"] == "applied"
    before = job.inspect().native["HostConfig"]
    result = apply(plan)
    assert result["status"] == "unchanged"
    assert result["before"] == result["after"]
    assert job.inspect().native["HostConfig"] == before


def test_a_paused_container_is_changed_named_and_restored(tool: Tools, run: Containers) -> None:
    job = run(nano_cpus=1_500_000_000)
    before = job.kernel()
    api().pause(job.id)
    done = tool("dl-apply", input=plan_for(job, {"cpus": 0.4}))
    assert [record["status"] for record in records(done.stdout)] == ["applied"]
    assert complaint(done.stderr) == f"dl-apply: {job.name}: paused, not by dl-apply"
    assert job.kernel_cpus == pytest.approx(0.4)
    assert tool("dl-apply", "--undo").returncode == 0
    assert job.kernel() == before
    api().unpause(job.id)


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


def test_settings_that_have_changed_since_the_plan_are_stale(
    run: Containers, apply: Any, state: Path
) -> None:
    job = run(nano_cpus=500_000_000)
    before = job.kernel()
    result = apply(plan_for(job, {"cpus": 0.4}, {"cpus": 1.0}), code=75)
    assert result["status"] == "stale"
    assert result["error"]
    assert result["before"] == result["after"] == {"cpus": 0.5}
    assert job.kernel() == before
    assert journal(state) == []


def test_settings_as_wanted_are_unchanged_whatever_was_expected(
    run: Containers, apply: Any
) -> None:
    job = run(nano_cpus=500_000_000)
    assert apply(plan_for(job, {"cpus": 0.5}, {"cpus": 1.0}))["status"] == "unchanged"


def test_a_container_that_is_gone_is_stale(run: Containers, apply: Any) -> None:
    job = run()
    plan = plan_for(job, {"cpus": 0.4})
    job.remove()
    result = apply(plan, code=75)
    assert (result["status"], result["error"]) == ("stale", "the container no longer exists")


def test_a_replaced_container_is_stale(run: Containers, apply: Any) -> None:
    old = run()
    plan = plan_for(old, {"cpus": 0.4})
    old.remove()
    new = run()
    assert new.name == old.name
    result = apply(plan, code=75)
    assert result["status"] == "stale"
    assert new.id[:12] in result["error"]
    assert new.kernel_cpus is None


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


# What is left alone


def test_a_protected_container_is_skipped(run: Containers, apply: Any, state: Path) -> None:
    job = run(labels={"dltools.protect": "true"})
    result = apply(plan_for(job, {"cpus": 0.4}))
    assert result["status"] == "skipped"
    assert "dltools.protect" in result["error"]
    assert job.kernel_cpus is None
    assert journal(state) == []


def test_another_host_is_skipped(run: Containers, apply: Any) -> None:
    job = run()
    result = apply(plan_for(job, {"cpus": 0.4}, host="elsewhere"))
    assert result["status"] == "skipped"
    assert "elsewhere" in result["error"]
    assert job.kernel_cpus is None


@pytest.mark.parametrize("wanted", [{"memory": 1 << 30}])
def test_a_setting_that_is_not_supported_is_skipped(
    run: Containers, apply: Any, wanted: Settings
) -> None:
    job = run()
    before = job.kernel()
    assert apply(plan_for(job, wanted))["status"] == "skipped"
    assert job.kernel() == before


# Dry runs


def test_a_dry_run_writes_nothing(run: Containers, apply: Any, state: Path) -> None:
    job = run(nano_cpus=500_000_000)
    before = job.kernel()
    result = apply(plan_for(job, {"cpus": 0.4}), "--dry-run")
    assert result["status"] == "planned"
    assert (result["before"], result["after"]) == ({"cpus": 0.5}, {"cpus": 0.4})
    assert job.kernel() == before
    assert not state.exists()


def test_a_dry_run_notices_a_stale_plan(run: Containers, apply: Any) -> None:
    job = run(nano_cpus=500_000_000)
    plan = plan_for(job, {"cpus": 0.4}, {"cpus": 1.0})
    assert apply(plan, "-n", code=75)["status"] == "stale"


# Several plans


def test_other_actions_are_applied_after_a_failure(run: Containers, tool: Tools) -> None:
    gone, job = run(name="gone"), run(name="there")
    plans = plan_for(gone, {"cpus": 0.4}) + plan_for(job, {"cpus": 0.4})
    gone.remove()
    done = tool("dl-apply", input=plans)
    assert done.returncode == 0  # the last plan decides on stale ones
    assert [result["status"] for result in records(done.stdout)] == ["stale", "applied"]
    assert job.kernel_cpus == pytest.approx(0.4)


def test_a_plan_that_is_cut_off_changes_nothing(run: Containers, tool: Tools) -> None:
    job = run()
    head, action, _ = plan_for(job, {"cpus": 0.4}).splitlines(keepends=True)
    done = tool("dl-apply", input=head + action)
    assert done.returncode == 65
    assert done.stdout == b""
    assert job.kernel_cpus is None


def test_whole_plans_before_the_cut_are_applied(run: Containers, tool: Tools) -> None:
    job = run()
    plan = plan_for(job, {"cpus": 0.4})
    done = tool("dl-apply", input=plan + plan_for(job, {"cpus": 0.2})[:-20])
    assert done.returncode == 65
    assert [result["status"] for result in records(done.stdout)] == ["applied"]
    assert job.kernel_cpus == pytest.approx(0.4)


def test_a_plan_older_than_its_container_is_stale(run: Containers, apply: Any) -> None:
    job = run()
    early = format_time(datetime.now(UTC) - timedelta(minutes=1))
    assert apply(plan_for(job, {"cpus": 0.4}, at=early), code=75)["status"] == "stale"
