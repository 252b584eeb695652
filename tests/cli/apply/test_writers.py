"""Two runs of dl-apply that do not share a state directory, and one engine."""

import fcntl
import os
import signal
import subprocess
import sys
import uuid

import pytest
from helpers import fake_engine as faked
from helpers.fake_engine import FakeEngine
from helpers.pipes import feed
from helpers.state_locks import HOLDS_STATE, WATCHDOG, held
from helpers.tools import Tools, complaint, records

ALONE = {"DLTOOLS_BESIDE": ""}


@pytest.fixture(autouse=True)
def own_mark(fake_engine: FakeEngine) -> None:
    """Mark no engine of a test that runs at the same time: a mark is named after the ID."""
    fake_engine.id = uuid.uuid4().hex


@pytest.fixture
def plan() -> bytes:
    return faked.plan({"weight": 300.0})


def begun(tool: Tools, engine: FakeEngine, plan: bytes) -> subprocess.Popen[bytes]:
    """Return a run that has applied a plan, and waits for more."""
    first = tool.begin("dl-apply", "--host", engine.url)
    assert feed(first, plan)["status"] == "applied"
    return first


@pytest.mark.slow
def test_a_second_writer_is_refused_and_told_of_another(tool, fake_engine, plan, tmp_path) -> None:
    first = begun(tool, fake_engine, plan)
    there = ("--host", fake_engine.url, "--state-dir", str(tmp_path / "other"))

    done = tool("dl-apply", *there, input=plan, env=ALONE)
    assert done.returncode == 75
    told = complaint(done.stderr)
    assert told.startswith(f"dl-apply: another dl-apply is running, process {first.pid}: ")
    assert told.endswith(f"or write beside it: --beside {first.pid}")
    assert not (tmp_path / "other" / "journal").exists()

    assert tool("dl-apply", *there, "--dry-run", input=plan, env=ALONE).returncode == 0
    assert tool("dl-apply", *there, "--undo", env=ALONE).returncode == 0
    assert tool("dl-apply", *there, "--beside", 1, input=plan, env=ALONE).returncode == 75
    beside = tool("dl-apply", *there, "--beside", first.pid, input=plan, env=ALONE)
    assert beside.returncode == 0
    assert tool("dl-apply", *there, input=plan, env={"DLTOOLS_BESIDE": "any"}).returncode == 0

    os.kill(first.pid, signal.SIGKILL)
    first.wait()
    assert tool("dl-apply", *there, input=plan, env=ALONE).returncode == 0


def test_an_undo_during_a_run_says_how_to_end_it(tool, fake_engine, plan) -> None:
    first = begun(tool, fake_engine, plan)
    done = tool("dl-apply", "--host", fake_engine.url, "--undo")
    assert done.returncode == 75
    told = complaint(done.stderr)
    assert f"process {first.pid}: " in told
    assert told.endswith("; dl-apply --undo --stop ends it and undoes")


@pytest.mark.parametrize("is_stopped", [False, True], ids=["running", "stopped by Ctrl-Z"])
def test_an_undo_may_end_the_run_with_the_state(tool, fake_engine, plan, *, is_stopped) -> None:
    first = begun(tool, fake_engine, plan)
    if is_stopped:
        os.kill(first.pid, signal.SIGSTOP)
    done = tool("dl-apply", "--host", fake_engine.url, "--undo", "--stop")
    assert done.returncode == 0
    assert [one["status"] for one in records(done.stdout)] == ["applied"]
    told = complaint(done.stderr)
    assert told.startswith(f"dl-apply: ended process {first.pid}: dl-apply --host ")
    assert first.wait(10) == 143


def test_without_a_run_stop_is_an_undo(tool, fake_engine, plan) -> None:
    host = ("--host", fake_engine.url)
    assert tool("dl-apply", *host, input=plan).returncode == 0
    done = tool("dl-apply", *host, "--undo", "--stop")
    assert (done.returncode, done.stderr) == (0, b"")
    assert [one["status"] for one in records(done.stdout)] == ["applied"]


def test_a_process_that_only_the_lock_names_is_not_ended(tool, fake_engine, state) -> None:
    """Its number may be another process's by now."""
    with subprocess.Popen(["sleep", "60"]) as other:
        state.mkdir(mode=0o700, parents=True, exist_ok=True)
        with (state / "apply.lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            lock.write(f"process {other.pid}: dl-apply\n")
            lock.flush()
            done = tool("dl-apply", "--host", fake_engine.url, "--undo", "--stop")
            assert done.returncode == 75
            assert "another dl-apply is running" in complaint(done.stderr)
        assert other.poll() is None
        other.kill()


def test_a_run_that_does_not_end_is_named(tool, fake_engine, state) -> None:
    code = "import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN);" + HOLDS_STATE
    words = [sys.executable, "-c", code, "x", str(state), "60"]
    with subprocess.Popen(words, stdout=subprocess.PIPE) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == b"ready\n"
        undo = ("--host", fake_engine.url, "--patience", "1s", "--undo", "--stop")
        done = tool("dl-apply", *undo)
        assert done.returncode == 75
        told = complaint(done.stderr)
        assert f"process {other.pid}" in told
        assert "has not ended within 1 s of SIGTERM" in told
        assert other.poll() is None
        other.kill()


@pytest.mark.slow
def test_an_undo_right_after_a_pipe_waits_for_its_watchdog(tool, fake_engine, plan, state) -> None:
    first = tool("dl-apply", "--host", fake_engine.url, input=plan)
    assert first.returncode == 0
    with held(state, WATCHDOG, 3.0) as pid:
        done = tool("dl-apply", "--host", fake_engine.url, "--undo")
        assert (done.returncode, records(done.stdout)[0]["status"]) == (0, "applied")
        assert f"waiting for process {pid}: the watchdog" in complaint(done.stderr)
    with held(state, WATCHDOG, 30.0):
        done = tool("dl-apply", "--host", fake_engine.url, "--undo", "--patience", "0")
        assert done.returncode == 75


@pytest.mark.parametrize("text", ["-1", "x", "1.5", "٣"])
def test_beside_is_a_process_or_any(tool, text) -> None:
    done = tool("dl-apply", "--beside", text)
    assert done.returncode == 2
    assert b"neither the number of a process nor any" in done.stderr
