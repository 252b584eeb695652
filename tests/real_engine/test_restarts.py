"""An engine that restarts during a run: no container stays paused, or an error names it.

On a dockerd of their own, with --live-restore: containers run on, or stay paused, while it is away.
"""

import json
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest
from helpers.containers import Containers, Job, eventually, plan_for
from helpers.daemon import Daemon
from helpers.pipes import feed, give
from helpers.tools import Tools, complaint
from real_engine.conftest import own_engine
from real_engine.test_turns import BUSY, state, turns

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def module_daemon() -> Iterator[Daemon]:
    yield from own_engine()


@pytest.fixture
def daemon(module_daemon: Daemon, monkeypatch: pytest.MonkeyPatch) -> Daemon:
    """An engine that the test may stop; the tools use no other."""
    monkeypatch.setenv("DOCKER_HOST", module_daemon.url)
    return module_daemon


@pytest.fixture
def run(daemon: Daemon) -> Iterator[Containers]:
    containers = daemon.containers()
    yield containers
    containers.remove()


@pytest.fixture
def jobs(run: Containers) -> list[Job]:
    return [run(BUSY, name=name) for name in ("a", "b")]


@contextmanager
def rotating(tool: Tools, jobs: list[Job], *arguments: str) -> Iterator[subprocess.Popen[bytes]]:
    """Start a dl-apply that gives these containers turns; its input stays open."""
    process = tool.begin("dl-apply", "--patience", "300", *arguments)
    give(process, turns(*jobs))
    paused: Callable[[], bool] = lambda: any(state(job) == "paused" for job in jobs)  # noqa: E731
    eventually(paused)
    yield process


@contextmanager
def away(daemon: Daemon, number: signal.Signals = signal.SIGTERM) -> Iterator[None]:
    daemon.stop(number)
    try:
        yield
    finally:
        daemon.start()


def test_turns_go_on_after_a_restart(daemon, tool, jobs) -> None:
    with rotating(tool, jobs) as process:
        with away(daemon, signal.SIGKILL):
            time.sleep(1)
        spent = [job.cpu_seconds for job in jobs]
        going = lambda: all(j.cpu_seconds > s for j, s in zip(jobs, spent, strict=True))  # noqa: E731
        eventually(going)
        assert process.poll() is None
        process.terminate()
        _, stderr = process.communicate(timeout=300)
    assert process.returncode == 143
    assert "paused; retrying" in complaint(stderr)
    assert [state(job) for job in jobs] == ["running"] * 2


def test_a_run_that_ends_while_the_engine_is_away_leaves_no_container_paused(
    daemon, tool, jobs
) -> None:
    with rotating(tool, jobs, "--restore") as process:
        with away(daemon):
            process.terminate()
            time.sleep(1)
            assert process.poll() is None
        process.communicate(timeout=300)
    assert process.returncode == 143
    assert [state(job) for job in jobs] == ["running"] * 2


def test_limits_are_restored_after_a_restart(daemon, tool, run) -> None:
    job = run(nano_cpus=1_500_000_000)
    before = job.kernel()
    process = tool.begin("dl-apply", "--patience", "300", "--restore")
    assert feed(process, plan_for(job, {"cpus": 0.4}))["status"] == "applied"
    with away(daemon):
        process.terminate()
        time.sleep(0.5)
    process.communicate(timeout=300)
    assert process.returncode == 143
    assert job.kernel() == before


def test_an_error_names_paused_containers_of_an_engine_that_stays_away(
    daemon, tool, jobs, monkeypatch
) -> None:
    monkeypatch.setenv("DLTOOLS_PATIENCE", "1")
    options = ("--restore", "--patience", "1", "--lease", "0")
    with rotating(tool, jobs, *options) as process, away(daemon):
        _, stderr = process.communicate(timeout=300)
        assert process.returncode == 69
        waiting, last = stderr.decode().splitlines()
        (name,) = (job.name for job in jobs if f"docker unpause {job.name}" in last)
        assert name in waiting
        assert "dl-apply --undo" in last
        again = complaint(tool("dl-apply", "--undo").stderr)
        assert "no Docker engine" in again
        assert f"docker unpause {name}" in again or "unpause" in again
    stuck = [job.name for job in jobs if state(job) == "paused"]
    assert len(stuck) == 1

    for name, arguments in (("dl-apply", ["--dry-run"]), ("dl-probe", ["--format", "jsonl"])):
        done = tool(name, *arguments, input=turns(*jobs))
        assert done.returncode == 0
        assert f"docker unpause {stuck[0]}" in complaint(done.stderr)
    changed = {record["container"]["name"]: record for record in tool.status()}
    assert changed[stuck[0]]["now"]["state"] == "paused"
    assert not changed[stuck[0]]["run"]["alive"]
    assert stuck[0] in complaint(done.stderr)

    done = tool("dl-apply", "--undo")
    assert done.returncode == 0
    assert b"it is unpaused now" in done.stderr
    assert [state(job) for job in jobs] == ["running"] * 2
    assert complaint(tool("dl-apply", "--status").stderr).startswith("dl-apply: nothing to undo")


def test_a_stream_of_samples_loses_and_repeats_nothing(daemon, tool, run) -> None:
    job = run("i=0; while :; do i=$((i+1)); echo step $i loss: 0.5; usleep 100000; done")
    process = tool.begin("dl-probe", "-i", "0.5", "--format", "jsonl", *run.only)
    assert process.stdout is not None
    steps: list[int] = []

    def read_until(more: int) -> None:
        while len(steps) < more:
            row = json.loads(process.stdout.readline())  # type: ignore[union-attr]
            if row["kind"] == "progress":
                steps.append(row["step"])

    read_until(10)
    with away(daemon):
        time.sleep(1)
    before = len(steps)
    read_until(before + 40)
    process.terminate()
    _, stderr = process.communicate(timeout=300)
    assert process.returncode == 143
    assert "retrying" in complaint(stderr)
    assert steps == list(range(steps[0], steps[0] + len(steps)))
    assert job.log().count(b"\n") >= len(steps)
