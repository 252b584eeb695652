"""Who looks whether a container is alive does not see a pause: checks of its health, members who
wait for its next sign of life."""

import json
import os
import signal
import time
from collections.abc import Callable
from typing import Any

import pytest
from helpers.containers import Job, api, eventually
from helpers.examples import repeated
from real_engine.test_turns import SPIN, state, turns

pytestmark = [pytest.mark.engine, pytest.mark.slow]

WATCHED_S = repeated(10, 60)
EPOCHS = """
work() { awk 'BEGIN { for (i = 0; i < 200000; i++) x += i }'; }
n=1; while :; do work & work & wait; echo "epoch $n loss 0.$((999-n))"; n=$((n+1)); done
"""
CHECK = {"test": ["CMD-SHELL", "exit 0"], "interval": 2_000_000_000, "timeout": 30_000_000_000}
TRAINING = {"dltools.role": "training"}


def watch(jobs: list[Job], look: Callable[[Job], str]) -> list[str]:
    """Return what was seen of jobs in a while."""
    seen, until = [], time.monotonic() + WATCHED_S
    while time.monotonic() < until:
        seen += map(look, jobs)
        time.sleep(0.2)
    return seen


def health(job: Job) -> str:
    found: dict[str, Any] = api().inspect_container(job.id)["State"]
    return f"{found['Status']}, {found.get('Health', {}).get('Status')}"


@pytest.mark.parametrize("mode", ["rotate --quantum 2s", "priority"])
def test_health_checks_pass_while_jobs_queue(mode, run, tool, tmp_path) -> None:
    jobs = [run(EPOCHS, name=name, labels=TRAINING, healthcheck=CHECK) for name in ("one", "two")]
    only = " ".join(run.only)
    line = f"dl-probe -i 1 {only} | dl-plan -p srtf --realize {mode} | dl-apply --restore"
    pipe = tool.begin_shell(f"{line} >/dev/null", tmp_path / "bin")
    eventually(lambda: min(job.kernel_weight for job in jobs), lambda weight: weight < 1024)
    assert set(watch(jobs, health)) <= {"running, starting", "running, healthy"}
    os.killpg(pipe.pid, signal.SIGINT)
    pipe.wait(120)


def test_doctor_says_who_is_never_paused(run, tool) -> None:
    job = run(EPOCHS, labels=TRAINING, healthcheck=CHECK)
    ray = run(EPOCHS, name="ray", labels=TRAINING, environment={"RAY_ADDRESS": "head:6379"})
    done = tool("dl-probe", "--doctor", "--format", "jsonl", *run.only)
    told = [json.loads(line) for line in done.stdout.splitlines()]
    never = {one["subject"]: one["text"] for one in told if "never paused" in one["text"]}
    assert never.keys() == {job.name, ray.name}
    assert never[job.name].startswith("never paused: it has a health check")
    assert never[ray.name].startswith("never paused: it talks to members elsewhere")


def test_a_turn_is_refused_to_who_must_not_be_paused(run, tool) -> None:
    jobs = [
        run(SPIN, name="check", healthcheck=CHECK),
        run(SPIN, name="never", labels={"dltools.longest_pause": "0"}),
    ]
    done = tool("dl-apply", input=turns(*jobs))
    assert [json.loads(line)["status"] for line in done.stdout.splitlines()] == ["skipped"] * 2
    assert [state(job) for job in jobs] == ["running"] * 2
