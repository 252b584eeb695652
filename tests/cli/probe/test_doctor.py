"""dl-probe --doctor: its lines, its exit status, and that it changes nothing."""

from __future__ import annotations

from pathlib import Path

import pytest
from helpers.fake_engine import FakeEngine, plan
from helpers.tools import Tools, records

USAGE, UNAVAILABLE, PARTIAL = 2, 69, 1


def test_each_finding_is_a_record(tool: Tools, fake_engine: FakeEngine, state: Path) -> None:
    done = tool("dl-probe", "--doctor", "--format", "jsonl", env={"DOCKER_HOST": fake_engine.url})
    assert b"Traceback" not in done.stderr
    found = records(done.stdout)
    assert all(one.keys() == {"status", "subject", "text", "next"} for one in found)
    assert {one["status"] for one in found} <= {"ok", "warning"}
    assert done.returncode == (PARTIAL if "warning" in {one["status"] for one in found} else 0)
    assert {"engine", "journal", "rights", "plan"} <= {one["subject"] for one in found}
    assert not fake_engine.updates
    assert not state.exists() or not list(state.rglob("*"))


def test_lines_say_what_to_type(tool: Tools) -> None:
    done = tool("dl-probe", "--doctor", env={"DOCKER_HOST": "unix:///nope.sock"})
    assert done.returncode == UNAVAILABLE
    first = done.stdout.decode().splitlines()[0]
    assert first.startswith("failure engine: no Docker engine answers at unix:///nope.sock")
    assert first.endswith("  -> systemctl status docker")
    assert done.stderr == b""


def test_what_a_dead_run_has_left(tool: Tools, fake_engine: FakeEngine) -> None:
    here = {"DOCKER_HOST": fake_engine.url}
    assert tool("dl-apply", input=plan({"cpus": 0.5}), env=here).returncode == 0
    done = tool("dl-probe", "--doctor", "--format", "jsonl", env=here)
    (journal,) = [one for one in records(done.stdout) if one["subject"] == "journal"]
    assert (journal["status"], journal["next"]) == ("warning", "dl-apply --undo")
    assert done.returncode == PARTIAL


@pytest.mark.parametrize(
    "more", [["-i", "1"], ["x.log"], ["-o", "x"], ["--list-metrics"], ["--format", "csv"]]
)
def test_what_it_excludes(tool: Tools, more: list[str]) -> None:
    done = tool("dl-probe", "--doctor", *more)
    assert done.returncode == USAGE
    assert b"--doctor" in done.stderr
