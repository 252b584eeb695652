"""Two runs of dl-apply that do not share a state directory, and one engine."""

from __future__ import annotations

import os
import signal
import uuid
from pathlib import Path

import pytest
from helpers import fake_engine as faked
from helpers.fake_engine import FakeEngine
from helpers.state_locks import WATCHDOG, held
from helpers.tools import Tools, complaint, records

ALONE = {"DLTOOLS_BESIDE": ""}


@pytest.fixture(autouse=True)
def own_mark(fake_engine: FakeEngine) -> None:
    """Mark no engine of a test that runs at the same time: a mark is named after the ID."""
    fake_engine.id = uuid.uuid4().hex


@pytest.fixture
def plan() -> bytes:
    return faked.plan({"cpu_weight": 300.0})


@pytest.mark.slow
def test_a_second_writer_is_refused_and_told_of_the_first(
    tool: Tools, fake_engine: FakeEngine, plan: bytes, tmp_path: Path
) -> None:
    host = ("--host", fake_engine.url)
    first = tool.begin("dl-apply", *host)
    assert first.stdin is not None
    assert first.stdout is not None
    first.stdin.write(plan)
    first.stdin.flush()
    assert b"applied" in first.stdout.readline()
    there = (*host, "--state-dir", str(tmp_path / "other"))

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


def test_an_undo_during_a_run_says_to_end_it_first(
    tool: Tools, fake_engine: FakeEngine, plan: bytes
) -> None:
    first = tool.begin("dl-apply", "--host", fake_engine.url)
    assert first.stdin is not None
    assert first.stdout is not None
    first.stdin.write(plan)
    first.stdin.flush()
    first.stdout.readline()
    done = tool("dl-apply", "--host", fake_engine.url, "--undo")
    assert done.returncode == 75
    told = complaint(done.stderr)
    assert f"process {first.pid}: " in told
    assert told.endswith("end it first, then undo")


@pytest.mark.slow
def test_an_undo_right_after_a_pipe_waits_for_its_watchdog(
    tool: Tools, fake_engine: FakeEngine, plan: bytes, state: Path
) -> None:
    first = tool("dl-apply", "--host", fake_engine.url, input=plan)
    assert first.returncode == 0
    with held(state, WATCHDOG, 3.0) as pid:
        done = tool("dl-apply", "--host", fake_engine.url, "--undo")
        assert (done.returncode, records(done.stdout)[0]["status"]) == (0, "applied")
        assert f"waiting for process {pid}, the watchdog" in complaint(done.stderr)
    with held(state, WATCHDOG, 30.0):
        done = tool("dl-apply", "--host", fake_engine.url, "--undo", "--patience", "0")
        assert done.returncode == 75


@pytest.mark.parametrize("text", ["-1", "x", "1.5", "٣"])
def test_beside_is_a_process_or_any(tool: Tools, text: str) -> None:
    done = tool("dl-apply", "--beside", text)
    assert done.returncode == 2
    assert b"neither the number of a process nor any" in done.stderr
