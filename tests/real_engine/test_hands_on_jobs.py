"""What owners do to their containers, beside a dl-apply that holds these back: it comes first."""

import json
import signal
import subprocess
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

import pytest
from docker.errors import APIError
from helpers.containers import Job, api, eventually, on_every_cpu, plan_for
from helpers.examples import repeated
from helpers.pipes import give
from helpers.tools import Tools, complaint, records
from real_engine.conftest import row_of
from real_engine.test_turns import BUSY, SPIN, rotating, state, turns

from dltools.apply.refusals import FOREIGN
from dltools.cli.exits import Exit


def spend(seconds: float) -> str:
    used = 'getline s < "/proc/self/stat"; close("/proc/self/stat"); split(s, a, " ")'
    work = f"do {{ for (i = 0; i < 20000; i++); {used} }}"
    return f"awk 'BEGIN {{ {work} while (a[14] + a[15] < {100 * seconds:.0f}) }}'"


SAVES = f"trap {json.dumps(spend(0.9) + '; echo saved; exit 0')} TERM; {BUSY}"
"""A training that needs 0.9 CPU seconds to save when it is asked to end."""


def lowered(*jobs: Job, first: Job, weight: float = 2.0, most: float = 1024.0) -> bytes:
    """Return plans by which these jobs wait for the first one."""
    plans = [plan_for(one, {"weight": weight}) for one in jobs]
    return b"".join((*plans, plan_for(first, {"weight": most})))


@contextmanager
def applying(tool: Tools, plans: bytes, *arguments: str) -> Iterator[subprocess.Popen[bytes]]:
    process = tool.begin("dl-apply", *arguments)
    assert process.stdout is not None
    give(process, plans)
    for _ in range(plans.count(b'"kind":"end"') or plans.count(b'"end"')):
        assert json.loads(process.stdout.readline())["status"] in ("applied", "unchanged")
    yield process


def say(process: subprocess.Popen[bytes], plans: bytes) -> list[dict[str, Any]]:
    """Give a dl-apply that runs more plans of an action each, and return their results."""
    assert process.stdout is not None
    give(process, plans)
    number = plans.count(b'"container"')
    return [json.loads(process.stdout.readline()) for _ in range(number)]


def ended(process: subprocess.Popen[bytes]) -> bytes:
    process.terminate()
    _, said = process.communicate(timeout=60)
    assert process.returncode == Exit.TERMINATED
    return said


def stopped(job: Job, seconds: int = 10) -> tuple[int, bool, float]:
    """Stop a container as docker stop does. Return its exit status, if it saved, and its time."""
    began = time.monotonic()
    api().stop(job.id, timeout=seconds)
    took = time.monotonic() - began
    code = job.inspect().ended.exit_code
    assert code is not None
    return code, b"saved" in job.log(), took


def run_in(job: Job, script: str) -> float:
    """Run shell in a container as docker exec does, and return how long that took (s)."""
    client, began = api(), time.monotonic()
    made = client.exec_create(job.id, ["sh", "-c", script])
    client.exec_start(made["Id"])
    assert client.exec_inspect(made["Id"])["ExitCode"] == 0
    return time.monotonic() - began


def pause(job: Job, refused: int = 0) -> int:
    """Pause as docker pause does; again where runc refuses by chance. Return how often it did."""
    try:
        api().pause(job.id)
    except APIError as error:
        assert "unable to freeze" in str(error)
        return pause(job, refused + 1)
    return refused


def stays(job: Job, wanted: str, seconds: float) -> None:
    """Fail unless a container is in a state for so long."""
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        assert state(job) == wanted
        time.sleep(0.1)


# Turns


def waiting(jobs: list[Job]) -> Job:
    return next(job for job in jobs if state(job) == "paused")


def at_work(jobs: list[Job]) -> Job:
    found: list[Job] = eventually(lambda: [job for job in jobs if state(job) == "running"])
    return found[0]


def test_a_job_that_waits_its_turn_saves_when_it_is_stopped(run, tool) -> None:
    jobs = [run(SAVES, name=name) for name in "abcd"]
    with rotating(tool, jobs, seconds=2.0) as process:
        for job in (waiting(jobs), waiting(jobs)):
            code, has_saved, _ = stopped(job, 60)
            assert (code, has_saved) == (0, True)
        said = ended(process)
    assert b"somebody has sent it a signal" in said


def test_a_signal_takes_a_job_out_of_the_turns(run, tool) -> None:
    jobs = [run(f"trap : USR1; {BUSY}", name=name) for name in "abc"]
    with rotating(tool, jobs) as process:
        job = waiting(jobs)
        api().kill(job.id, signal="USR1")
        eventually(lambda: state(job), lambda found: found == "running")
        stays(job, "running", 1.5)
        results = say(process, turns(*jobs))
        assert [one["status"] for one in results if one["container"]["id"] == job.id] == ["skipped"]
        job.restart()
        results = say(process, turns(*jobs))
        assert "skipped" not in [one["status"] for one in results]
        ended(process)


@pytest.mark.parametrize("look_s", [0.0, 1.0])
def test_an_owner_s_pause_stays(run, tool, look_s) -> None:
    jobs = [run(BUSY, name=name) for name in "abc"]
    with rotating(tool, jobs) as process:
        job = at_work(jobs)
        pause(job)
        time.sleep(look_s)
        say(process, turns(*jobs))
        stays(job, "paused", 1.5)
        eventually(lambda: [state(one) for one in jobs], lambda states: "running" in states)
        said = ended(process)
    assert said.count(job.name.encode()) == 1
    assert b"paused" in said
    assert {one.name: state(one) for one in jobs if one != job} == {
        one.name: "running" for one in jobs if one != job
    }
    tool("dl-apply", "--undo")
    assert state(job) == "paused"


def test_an_owner_s_unpause_is_not_reverted(run, tool) -> None:
    jobs = [run(BUSY, name=name) for name in "abc"]
    with rotating(tool, jobs, seconds=5.0) as process:
        job = waiting(jobs)
        api().unpause(job.id)
        say(process, turns(*jobs, seconds=5.0))
        stays(job, "running", 1)
        pause(job)
        stays(job, "paused", 1)
        ended(process)
    assert state(job) == "paused"


def test_a_pause_after_a_crash_stays(run, tool) -> None:
    """What the dead run has paused goes on, also where its owner has touched another one."""
    jobs = [run(BUSY, name=name) for name in "abc"]
    with rotating(tool, jobs, "--lease", "0s", seconds=30.0) as process:
        owned, again, left = at_work(jobs), *(job for job in jobs if state(job) == "paused")
        process.send_signal(signal.SIGKILL)
        process.wait()
        pause(owned)
        api().unpause(again.id)
        pause(again)
        said = complaint(tool("dl-apply", "--undo").stderr)
    assert [state(job) for job in (owned, again, left)] == ["paused", "paused", "running"]
    assert left.name in said


def test_an_update_of_a_job_in_turns_is_left_alone_and_named(run, tool) -> None:
    jobs = [run(BUSY, name=name) for name in "abc"]
    with rotating(tool, jobs) as process:
        job = waiting(jobs)
        job.record({"CpuShares": 1500})
        eventually(lambda: state(job), lambda found: found == "running")
        stays(job, "running", 1.5)
        said = ended(process)
    assert job.name.encode() in said
    assert job.kernel_weight == pytest.approx(1500, rel=0.02)


# Weights


@pytest.mark.parametrize("most", [1024.0, 65536.0])
def test_a_job_at_a_low_weight_saves_when_it_is_stopped(run, tool, most) -> None:
    first = run(on_every_cpu(SPIN) + " wait", name="first")
    for number in range(repeated(1, 2)):
        job = run(SAVES, name=f"job{number}")
        with applying(tool, lowered(job, first=first, most=most)) as process:
            assert stopped(job, 60)[:2] == (0, True)
            ended(process)


@pytest.mark.parametrize("is_lowered_before", [False, True])
def test_a_pause_of_a_job_at_a_low_weight_is_not_refused(run, tool, is_lowered_before) -> None:
    """On version 1 runc gives up where the processes get no CPU time in which to stop."""
    first = run(on_every_cpu(SPIN) + " wait", name="first")
    job = run(on_every_cpu(SPIN) + " wait", name="job")
    plans = lowered(job, first=first, most=65536.0)
    if is_lowered_before:
        assert tool("dl-apply", "--lease", "10m", input=plans).returncode == 0
    with applying(tool, plans) as process:
        refused = []
        for _ in range(repeated(3, 20)):
            eventually(lambda: job.kernel_weight, lambda weight: weight < 20)
            refused.append(pause(job))
            stays(job, "paused", 0.5)
            api().unpause(job.id)
        eventually(lambda: job.kernel_weight, lambda weight: weight < 20)
        ended(process)
    assert sum(refused) <= len(refused)  # three of four are where nobody raises its weight


def test_short_commands_beside_plans_are_taken_for_nobody_s_change(run, tool) -> None:
    job, other = run(SPIN, name="job"), run(SPIN, name="other")
    before, errors = job.kernel_weight, set()
    with applying(tool, lowered(job, first=other, most=8192.0)) as process:
        with ThreadPoolExecutor(1) as pool:
            commands = [pool.submit(run_in, job, "true") for _ in range(repeated(12, 60))]
            while not all(command.done() for command in commands):
                plans = [
                    plan_for(one, {"weight": weight}) for weight in (30, 2) for one in (job, other)
                ]
                errors |= {one["error"] for one in say(process, b"".join(plans)) if "error" in one}
        assert FOREIGN not in errors
        eventually(lambda: job.kernel_weight, lambda weight: weight < 40)
        assert FOREIGN.encode() not in ended(process)
    tool("dl-apply", "--undo")
    assert job.kernel_weight == before


def test_what_a_plan_wants_meanwhile_comes_after(run, tool, gate) -> None:
    job, other = run(cpu_shares=500, **gate.limits), run(name="other")
    with applying(tool, lowered(job, first=other)) as process:
        made = api().exec_create(job.id, ["sh", "-c", gate.passed()])
        api().exec_start(made["Id"], detach=True)
        eventually(lambda: job.kernel_weight, lambda weight: weight == pytest.approx(500, rel=0.03))
        (result,) = say(process, plan_for(job, {"weight": 30}))
        assert result["status"] == "skipped"
        assert "at work" in result["error"]
        assert job.kernel_weight == pytest.approx(500, rel=0.03)
        gate.open()
        eventually(lambda: job.kernel_weight, lambda weight: weight == pytest.approx(30, rel=0.4))
        ended(process)
    assert tool("dl-apply", "--undo").returncode == 0
    assert job.kernel_weight == pytest.approx(500, rel=0.03)


def test_an_owner_who_sets_the_own_value_meanwhile_is_heard(run, tool, sample) -> None:
    """While somebody is at work the weight is the owner's own: the event alone tells of it."""
    job = run("trap : USR1; while :; do sleep 1; done", cpu_shares=50)
    other = run(name="other", cpu_shares=64)
    own = job.kernel_weight
    plans = lowered(job, first=other, weight=3482, most=32.0)
    with applying(tool, plans) as process:
        api().kill(job.id, signal="USR1")
        eventually(lambda: job.kernel_weight, lambda weight: weight == own)
        job.record({"CpuShares": 50})
        plans = plan_for(job, {"weight": 3481})
        eventually(lambda: say(process, plans)[0]["error"], lambda error: error == FOREIGN)
        api().kill(job.id, signal="USR1")
        ended(process)
    assert job.kernel_weight == own
    row = row_of(sample(), job)
    assert "dltools.protect" in row["labels"]
    tool("dl-apply", "--undo", "--release", job.name)
    row = row_of(sample(), job)
    assert "dltools.protect" not in row.get("labels", "")


# Each setting by itself


@pytest.mark.parametrize("options", [(), ("--force",)])
def test_our_weight_goes_back_and_an_owner_s_quota_stays(run, tool, options) -> None:
    job = run(cpu_shares=700)
    before = job.kernel_weight
    assert tool("dl-apply", input=plan_for(job, {"weight": 2})).returncode == 0
    job.record({"NanoCpus": 1_500_000_000})
    (result,) = records(tool("dl-apply", input=plan_for(job, {"weight": 10})).stdout)
    assert result["status"] == "applied"
    done = tool("dl-apply", "--undo", *options)
    assert [one["status"] for one in records(done.stdout)] == ["applied"]
    assert (job.kernel_weight, job.kernel_cpus) == (before, pytest.approx(1.5))
    assert job.inspect().native["HostConfig"]["CpuShares"] == 700
    assert records(tool("dl-apply", "--undo").stdout) == []


def test_our_quota_goes_back_and_an_owner_s_weight_stays_until_force(run, tool) -> None:
    job = run(cpu_shares=700)
    before = job.kernel_weight
    assert tool("dl-apply", input=plan_for(job, {"weight": 2, "cpus": 0.5})).returncode == 0
    job.record({"CpuShares": 2000})
    (result,) = records(tool("dl-apply", "--undo").stdout)
    assert result["status"] == "applied"
    assert "somebody else" in result["error"]
    assert job.kernel_weight == pytest.approx(2000, rel=0.02)
    assert job.kernel_cpus in (None, pytest.approx(job.engine.cpus))
    assert [one["status"] for one in records(tool("dl-apply", "--undo").stdout)] == ["skipped"]
    tool("dl-apply", "--undo", "--force")
    assert job.kernel_weight == before


# --release


def test_a_released_job_is_left_alone_from_now_on(run, tool, sample) -> None:
    job, other = run(cpu_shares=700), run(name="other")
    before = job.kernel_weight
    with applying(tool, lowered(job, first=other)) as process:
        done = tool("dl-apply", "--release", job.name)
        assert done.returncode == 0
        assert job.kernel_weight == before
        (result,) = say(process, plan_for(job, {"weight": 20}))
        assert (result["status"], job.kernel_weight) == ("skipped", before)
        ended(process)
    status = tool("dl-apply", "--status").stderr.decode()
    assert f"{job.name}: dl-apply --release" in status
    (result,) = records(tool("dl-apply", input=plan_for(job, {"weight": 20})).stdout)
    assert "--release" in result["error"]
    row = row_of(sample(), job)
    assert "dltools.protect" in row["labels"]
    assert tool("dl-apply", "--undo", "--release", job.name).returncode == 0
    (result,) = records(tool("dl-apply", input=plan_for(job, {"weight": 20})).stdout)
    assert result["status"] == "applied"


def test_a_release_where_none_runs_puts_back(run, tool) -> None:
    job, other = run(cpu_shares=700, name="job"), run(name="other")
    before = job.kernel_weight
    for one in (job, other):
        assert tool("dl-apply", input=plan_for(one, {"weight": 2})).returncode == 0
    assert tool("dl-apply", "--release", job.name).returncode == 0
    assert job.kernel_weight == before
    assert other.kernel_weight < 20
    done = tool("dl-apply", "--release", "nobody")
    assert done.returncode == Exit.USAGE
    assert "nobody" in complaint(done.stderr)
