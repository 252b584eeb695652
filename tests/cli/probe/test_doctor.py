"""dl-probe --doctor: its lines, its exit status, and that it changes nothing."""

import pytest
from helpers.fake_engine import plan
from helpers.tools import records

USAGE, UNAVAILABLE, PARTIAL = 2, 69, 1


def test_each_finding_is_a_record(tool, fake_engine, state) -> None:
    done = tool("dl-probe", "--doctor", "--format", "jsonl")
    assert b"Traceback" not in done.stderr
    found = records(done.stdout)
    assert all(one.keys() == {"status", "subject", "text", "next"} for one in found)
    assert {one["status"] for one in found} <= {"ok", "warning"}
    assert done.returncode == (PARTIAL if "warning" in {one["status"] for one in found} else 0)
    assert {"engine", "journal", "rights", "plan"} <= {one["subject"] for one in found}
    assert not fake_engine.updates
    assert not state.exists() or not list(state.rglob("*"))


ROOTLESS = "Running in rootless-mode without cgroups. To enable cgroups in rootless-mode, boot v2."


def test_an_engine_without_cgroups_can_set_nothing_and_says_why(tool, fake_engine) -> None:
    """Rootless Docker on cgroup version 1 accepts an update, with warnings, and changes nothing."""
    fake_engine.info = {"CgroupDriver": "none", "Warnings": ["No swap", f"WARNING: {ROOTLESS}"]}
    fake_engine.ignores_updates, fake_engine.warnings = True, ["CPU shares discarded."]
    found = records(tool("dl-probe", "--doctor", "--format", "jsonl").stdout)
    (limits,) = [one for one in found if one["subject"] == "limits"]
    assert limits["status"] == "warning"
    assert limits["text"].endswith(f"cpuset, pause here: {ROOTLESS}")
    rows = records(tool("dl-probe", "--format", "jsonl").stdout)
    assert {row.get("cannot") for row in rows} == {"cpus+cpu_weight+cpuset+pause+move"}
    done = tool("dl-apply", input=plan({"cpus": 0.5}))
    assert ROOTLESS.encode() in done.stdout + done.stderr
    assert not fake_engine.updates


def test_what_the_engine_warns_of_is_told(tool, fake_engine) -> None:
    fake_engine.ignores_updates, fake_engine.warnings = True, ["CPU shares discarded."]
    fake_engine.pid = 1
    done = tool("dl-apply", input=plan({"weight": 500}))
    assert b"CPU shares discarded." in done.stdout + done.stderr


def test_lines_say_what_to_type(tool) -> None:
    done = tool("dl-probe", "--doctor", env={"DOCKER_HOST": "unix:///nope.sock"})
    assert done.returncode == UNAVAILABLE
    first = done.stdout.decode().splitlines()[0]
    assert first.startswith("failure engine: no Docker engine answers at unix:///nope.sock")
    assert first.endswith("  -> systemctl status docker")
    assert done.stderr == b""


@pytest.mark.usefixtures("fake_engine")
def test_what_a_dead_run_has_left(tool) -> None:
    assert tool("dl-apply", input=plan({"cpus": 0.5})).returncode == 0
    done = tool("dl-probe", "--doctor", "--format", "jsonl")
    (journal,) = [one for one in records(done.stdout) if one["subject"] == "journal"]
    assert (journal["status"], journal["next"]) == ("warning", "dl-apply --undo")
    assert done.returncode == PARTIAL


@pytest.mark.usefixtures("fake_engine")
def test_a_state_that_cannot_be_read_says_nothing_of_what_is_left(tool, state) -> None:
    state.mkdir(parents=True)
    state.chmod(0o777)
    done = tool("dl-probe", "--doctor", "--format", "jsonl")
    subjects = [one["subject"] for one in records(done.stdout)]
    assert "state" in subjects
    assert "journal" not in subjects


@pytest.mark.parametrize(
    "more", [["-i", "1"], ["x.log"], ["-o", "x"], ["--list-metrics"], ["--format", "csv"]]
)
def test_what_it_excludes(tool, more) -> None:
    done = tool("dl-probe", "--doctor", *more)
    assert done.returncode == USAGE
    assert b"--doctor" in done.stderr
