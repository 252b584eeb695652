"""CPU lists, pauses and turns on a real engine: applied, undone, and ended after kill -9."""

import json
import signal
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from contract import plans
from contract.conftest import BUSY, SPIN
from contract.plans import plan
from helpers.containers import Job, api, eventually, plan_for
from helpers.pipes import give
from helpers.tools import Tools, records
from real_engine.conftest import row_of

from dltools.actions.plans import Op


def turns(*jobs: Job, seconds: float = 0.5) -> bytes:
    return plans.turns(jobs[0], *jobs, seconds=seconds)


def running_threads(job: Job) -> int:
    """Return how many of a container's threads want a CPU."""
    pids = (job.directory("cpu") / "cgroup.procs").read_text().split()
    stats = [Path(f"/proc/{pid}/stat").read_text() for pid in pids]
    return sum(stat.rpartition(")")[2].split()[0] == "R" for stat in stats)


def state(job: Job) -> str:
    return job.inspect().state


def pauses_and_ends(jobs: list[Job]) -> list[dict[str, Any]]:
    """Return the engine's events of containers that were paused or unpaused, in order."""
    until = int(time.time()) + 1
    of_these = {"container": [job.id for job in jobs], "event": ["pause", "unpause"]}
    return list(api().events(since=until - 3600, until=until, decode=True, filters=of_these))


def changes(jobs: list[Job]) -> list[tuple[str, Job]]:
    """Return which containers were paused or unpaused, in order."""
    by_id = {job.id: job for job in jobs}
    return [(event["Action"], by_id[event["Actor"]["ID"]]) for event in pauses_and_ends(jobs)]


def ran_alone(jobs: list[Job]) -> list[Job]:
    """Return which containers ran alone, in order. Fail if two ran at once after the first turn."""
    running, alone = set(jobs), []
    for what, job in changes(jobs):
        (running.remove if what == "pause" else running.add)(job)
        assert not alone or len(running) <= 1
        if len(running) == 1:
            alone += running
    return alone


@contextmanager
def rotating(
    tool: Tools, jobs: list[Job], *arguments: str, seconds: float = 0.5
) -> Iterator[subprocess.Popen[bytes]]:
    """Start a dl-apply that gives these containers turns; its input stays open."""
    process = tool.begin("dl-apply", *arguments)
    assert process.stdout is not None
    give(process, turns(*jobs, seconds=seconds))
    for _ in jobs:
        assert json.loads(process.stdout.readline())["status"] == "applied"
    eventually(
        lambda: [state(job) for job in jobs], lambda states: states.count("paused") == len(jobs) - 1
    )
    yield process


# CPU lists


def test_a_list_shorter_than_the_busy_threads_is_skipped(run, tool) -> None:
    job = run(f"({SPIN}) & ({SPIN}) & wait")
    eventually(lambda: running_threads(job), lambda running: running == 2)
    before = job.kernel()
    (result,) = records(tool("dl-apply", input=plan_for(job, {"cpuset": "0"})).stdout)
    assert result["status"] == "skipped"
    assert "2 busy threads" in result["error"]
    assert job.kernel() == before


def test_a_list_can_grow_whatever_runs(run, tool) -> None:
    job = run(SPIN, cpuset_cpus="0")
    (result,) = records(tool("dl-apply", input=plan_for(job, {"cpuset": None})).stdout)
    assert (result["status"], result["before"]["cpuset"]) == ("applied", "0")
    assert tool("dl-apply", "--undo").returncode == 0
    assert job.kernel()["cpuset.cpus"] == "0"


# Turns


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_no_container_stays_paused_after_a_signal(run, tool, number) -> None:
    jobs = [run(BUSY, name=name) for name in ("a", "b")]
    with rotating(tool, jobs) as process:
        process.send_signal(number)
        process.wait(120)
    assert [state(job) for job in jobs] == ["running"] * 2


def test_it_ends_when_no_container_waits(run, tool, gate) -> None:
    jobs = [run(gate.passed(), name=name, **gate.limits) for name in ("a", "b")]
    with rotating(tool, jobs) as process:
        threading.Timer(1, gate.open).start()
        process.communicate(timeout=120)
        assert process.returncode == 0
    eventually(lambda: {state(job) for job in jobs}, lambda states: states == {"exited"})


def test_turns_continue_as_long_as_hold_says(run, tool) -> None:
    jobs = [run(BUSY, name=name) for name in ("a", "b")]
    begun = time.monotonic()
    assert tool("dl-apply", "--hold", "2s", input=turns(*jobs)).returncode == 0
    assert time.monotonic() - begun >= 2
    assert [state(job) for job in jobs] == ["running"] * 2


def test_a_plan_without_turns_ends_them(run, tool) -> None:
    jobs = [run(BUSY, name=name) for name in ("a", "b")]
    with rotating(tool, jobs) as process:
        give(process, plan(run))
        eventually(lambda: {state(job) for job in jobs}, lambda states: states == {"running"})
        process.communicate(timeout=120)
        assert process.returncode == 0


def test_queues_of_two_gpus_go_on_side_by_side(run, tool, gate, sample) -> None:
    """In each queue one container runs; when one of a queue has ended the other of it runs on."""
    queues = {
        "GPU-1": [run(BUSY, name="a"), run(gate.passed(), name="b", **gate.limits)],
        "GPU-2": [run(BUSY, name="c"), run(BUSY, name="d")],
    }
    jobs = [job for pair in queues.values() for job in pair]
    process = tool.begin("dl-apply")
    give(
        process,
        plan(
            run,
            *(
                (Op.ROTATE, job, {"group": number, "turn_s": 0.5, "queue": queue})
                for queue, pair in queues.items()
                for number, job in enumerate(pair)
            ),
        ),
    )
    both = {"running", "paused"}
    for pair in queues.values():
        eventually(lambda pair=pair: {state(job) for job in pair}, lambda found: found == both)
    held = tool.status()
    assert sorted(one["now"]["queue"] for one in held) == ["GPU-1", "GPU-1", "GPU-2", "GPU-2"]
    seen = sample()
    assert [row_of(seen, job)["turn_queue"] for job in jobs] == ["GPU-1", "GPU-1", "GPU-2", "GPU-2"]
    eventually(
        lambda: [ran_alone(pair) for pair in queues.values()],
        lambda taken: min(map(len, taken)) >= 4,
    )
    gate.open()
    a, b = queues["GPU-1"]
    eventually(lambda: [state(a), state(b)], lambda found: found == ["running", "exited"])
    eventually(lambda: {state(job) for job in queues["GPU-2"]}, lambda found: found == both)
    process.terminate()
    assert process.wait(120) == 143
    assert [state(job) for job in jobs if job is not b] == ["running"] * 3
