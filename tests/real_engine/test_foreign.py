"""An administrator's `docker update` is noticed, said once, and left alone."""

import signal
import threading
from contextlib import suppress
from typing import Any

import pytest
from helpers.containers import Job, api, eventually, plan_for
from helpers.tools import complaint, records
from real_engine.test_hands_on_jobs import applying, ended, say

from dltools.actions.settings import Settings
from dltools.engine.interface import GoneError
from dltools.engine.limits import limit_writing
from dltools.engine.limits.cpu_limits import Locator, settings_in_force


def outcomes(output: bytes) -> list[tuple[str, Any]]:
    return [(result["status"], result["after"].get("cpus")) for result in records(output)]


def test_an_administrator_s_update_is_left_alone_and_said_once(tool, run) -> None:
    job = run(nano_cpus=1_500_000_000)
    assert tool("dl-apply", input=plan_for(job, {"cpus": 0.4})).returncode == 0
    job.record({"NanoCpus": 1_000_000_000})
    plans = b"".join(plan_for(job, {"cpus": cpus}, {"cpus": 1.0}) for cpus in (0.3, 0.2, 1.0))
    done = tool("dl-apply", input=plans)
    assert outcomes(done.stdout) == [("skipped", 1.0), *[("skipped", None)] * 2]
    assert "somebody else has changed its settings" in complaint(done.stderr)
    assert job.kernel_cpus == pytest.approx(1.0)


def test_a_container_that_is_killed_is_not_taken_for_changed(run) -> None:
    """While it ends, the kernel shows its process in the root, controller by controller."""
    seen: list[Settings] = []
    for name in "abcd":
        job = run(name=name, nano_cpus=1_500_000_000, cpu_shares=700)
        weight = round(job.kernel_weight, 2)
        locator, killer = Locator(job.engine), threading.Thread(target=job.remove)
        killer.start()
        with suppress(GoneError):
            while True:
                seen.append(settings_in_force(locator.locate_by_id(job.id)))
        killer.join()
    in_force = {"cpus": 1.5, "weight": weight, "cpuset": None}
    on_record = {**in_force, "weight": 700.0}  # version 2 makes another weight of it
    assert [one for one in seen if one not in (in_force, on_record)] == []


def test_options_bound_what_a_plan_may_change(tool, run) -> None:
    jobs = [run(name=name, labels={"team": name}) for name in ("a", "b")]
    plans = b"".join(plan_for(job, {"cpus": 0.4}) for job in jobs)
    for options, expected in (
        (("--label", "team=b", "--name", "nobody"), ["skipped", "skipped"]),
        (("--max-changes", "0"), ["skipped", "skipped"]),
        (("--max-age", "1h", "--label", "team=b"), ["skipped", "applied"]),
        (("--name", "-a$"), ["applied", "skipped"]),
    ):
        done = tool("dl-apply", *options, input=plans)
        assert (done.returncode, done.stderr) == (0, b"")
        assert [result["status"] for result in records(done.stdout)] == expected


QUOTA = ("NanoCpus", "CpuPeriod", "CpuQuota")


def recorded_quota(job: Job) -> list[int]:
    config = job.inspect().native["HostConfig"]
    return [config[name] for name in QUOTA]


def set_cpus(job: Job, cpus: float) -> None:
    """Set a quota as docker update --cpus does; fails where the engine refuses it."""
    job.record({"NanoCpus": round(cpus * 1e9)})


@pytest.mark.parametrize(
    "start", [{}, {"cpu_quota": 150_000}, {"nano_cpus": 1_500_000_000}], ids=str
)
def test_a_quota_leaves_the_engine_s_record_alone(tool, run, start) -> None:
    """Beside a period on it the engine would refuse an owner's docker update --cpus."""
    job = run(cpu_shares=700, **start)
    kernel, record = job.kernel(), recorded_quota(job)
    with applying(tool, plan_for(job, {"cpus": 0.4, "weight": 300.0}), "--restore") as process:
        assert job.kernel_cpus == pytest.approx(0.4)
        assert recorded_quota(job) == record
        ended(process)
    assert (job.kernel(), recorded_quota(job)) == (kernel, record)


@pytest.mark.parametrize("cpus", [0.5, 1.5])
def test_an_owner_s_cpus_end_and_stay_as_without_the_tools(tool, run, cpus) -> None:
    job = run()
    weight = job.kernel_weight
    with applying(tool, plan_for(job, {"cpus": 0.4, "weight": 300.0}), "--restore") as process:
        set_cpus(job, cpus)
        eventually(lambda: job.kernel_weight == weight)
        (result,) = say(process, plan_for(job, {"cpus": 0.3}, {"cpus": cpus}))
        assert (result["status"], job.kernel_cpus) == ("skipped", pytest.approx(cpus))
        ended(process)
    assert job.kernel_cpus == pytest.approx(cpus)
    assert job.kernel_weight == weight
    assert recorded_quota(job) == [round(cpus * 1e9), 0, 0]
    job.restart()
    assert job.kernel_cpus == pytest.approx(cpus)


def test_an_owner_who_asks_for_the_quota_of_before_is_heard(tool, run) -> None:
    job = run(nano_cpus=1_500_000_000)
    with applying(tool, plan_for(job, {"cpus": 0.4}), "--restore") as process:
        set_cpus(job, 1.5)
        eventually(lambda: say(process, plan_for(job, {"cpus": 0.3}))[0]["status"] == "skipped")
        assert job.kernel_cpus == pytest.approx(1.5)
        ended(process)
    assert job.kernel_cpus == pytest.approx(1.5)


def test_a_restart_ends_a_quota_and_is_nobody_s_wish(tool, run) -> None:
    job = run(nano_cpus=1_500_000_000)
    with applying(tool, plan_for(job, {"cpus": 0.4}), "--restore") as process:
        job.restart()
        assert job.kernel_cpus == pytest.approx(1.5)
        (result,) = say(process, plan_for(job, {"cpus": 0.3}, {"cpus": 1.5}))
        assert (result["status"], result["error"]) == ("applied", None)
        assert job.kernel_cpus == pytest.approx(0.3)
        ended(process)
    assert job.kernel_cpus == pytest.approx(1.5)


@pytest.mark.parametrize("is_told", [True, False])
def test_an_update_that_a_change_is_written_over_comes_back(tool, run, is_told) -> None:
    """Between the last look and the write nothing keeps an owner away; but the record has it."""
    job = run(cpu_shares=700)
    plans = plan_for(job, {"weight": 2.0})
    if not is_told:
        assert tool("dl-apply", input=plans).returncode == 0
        written_over(job)
    else:
        with applying(tool, plans, "--restore") as process:
            process.send_signal(signal.SIGSTOP)  # so that it hears of the update afterwards
            written_over(job)
            process.send_signal(signal.SIGCONT)
            eventually(lambda: job.kernel_weight > 30)
            (result,) = say(process, plan_for(job, {"weight": 3.0}))
            assert result["status"] == "skipped"
            ended(process)
    tool("dl-apply", "--undo")
    other = run(cpu_shares=500, name="other")
    assert job.kernel_weight == other.kernel_weight


def written_over(job: Job) -> None:
    """Have an owner's weight written over by one of dl-apply."""
    job.record({"CpuShares": 500})
    limit_writing.write_settings(Locator(job.engine).locate_by_id(job.id), {"weight": 2.0})


def test_an_update_of_another_limit_stays_beside_a_weight(tool, run) -> None:
    job = run(cpu_shares=700, mem_limit="64m")
    weight = job.kernel_weight
    with applying(tool, plan_for(job, {"weight": 2.0}), "--restore") as process:
        api().update_container(job.id, mem_limit="48m", memswap_limit="96m")
        (result,) = say(process, plan_for(job, {"weight": 3.0}))
        assert result["status"] == "applied"
        ended(process)
    assert job.kernel_weight == weight
    assert job.inspect().recorded["memory"] == 48 << 20
