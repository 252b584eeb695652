"""Which containers are changed, since when and by which run: in --status, tables, observations."""

import re
from datetime import UTC, datetime
from typing import Any

import pytest
from helpers.containers import api, plan_for
from helpers.tools import Tools, complaint, records
from real_engine.test_turns import BUSY, rotating, state


def status(tool: Tools, *arguments: str) -> list[dict[str, Any]]:
    done = tool("dl-apply", "--status", "--format", "jsonl", *arguments)
    told = [line for line in done.stderr.splitlines() if b"paused, not by dl-apply" not in line]
    assert (done.returncode, told) == (0, [])  # others may use the engine, too
    return records(done.stdout)


def test_who_is_paused_by_somebody_else_is_named(run, tool) -> None:
    job, other = run(), run(name="other")
    api().pause(other.id)
    tool("dl-apply", input=plan_for(job, {"weight": 300}))
    told = tool("dl-apply", "--status").stderr.decode().splitlines()
    (line,) = [line for line in told if ": paused, not by dl-apply" in line]
    # Tests that run at the same time pause containers, too.
    assert re.search(rf"\b{other.name}[,:]", line) or "more: paused" in line
    done = tool("dl-apply", input=2 * plan_for(other, {"weight": 300}))
    assert done.stderr.decode().count(f"{other.name}: paused, not by dl-apply") == 1
    tool("dl-apply", "--undo")
    api().unpause(other.id)


def test_a_changed_container_since_when_and_by_which_run(run, tool, state) -> None:
    job = run()
    begun = datetime.now(UTC).replace(microsecond=0)
    tool("dl-apply", "--format", "jsonl", input=plan_for(job, {"weight": 10}))
    (changed,) = status(tool)
    assert changed["container"] == {"id": job.id, "name": job.name}
    assert changed["found"] == {"cpus": None, "cpu_weight": 1024, "cpuset": None}
    assert changed["now"]["cpu_weight"] == pytest.approx(10, abs=0.3)
    assert begun <= datetime.fromisoformat(changed["since"]) <= datetime.now(UTC)
    assert changed["run"]["policy"] == "test"
    assert changed["run"]["command"] == "dl-apply --format jsonl"
    assert not changed["run"]["alive"]
    assert changed["state_dir"] == str(state)
    tool("dl-apply", "--undo")
    assert "nothing to undo" in complaint(tool("dl-apply", "--status").stderr)


def test_turns_and_the_run_that_gives_them(run, tool) -> None:
    jobs = [run(BUSY, name=name) for name in ("a", "b")]
    with rotating(tool, jobs, "--restore") as process:
        changed = status(tool)
        assert [one["now"]["turn_s"] for one in changed] == [0.5, 0.5]
        assert {one["run"]["pid"] for one in changed} == {process.pid}
        assert all(one["run"]["alive"] for one in changed)
        assert {one["now"]["state"] for one in changed} <= {"running", "paused"}
        text = tool("dl-apply", "--status", env={"COLUMNS": "160"}).stdout.decode()
        assert text.count("run ends") == 2
        assert f"dl-apply --undo --stop ends process {process.pid} and restores" in text
        assert tool("dl-apply", "--undo", "--stop").returncode == 0
        process.communicate(timeout=20)
    assert tool.status() == []
    assert [state(job) for job in jobs] == ["running"] * 2


def test_piped_it_is_a_table_for_people(run, tool, state) -> None:
    job = run()
    tool("dl-apply", input=plan_for(job, {"cpus": 0.5}))
    done = tool("dl-apply", "--status", env={"COLUMNS": "160"})
    assert done.stdout.decode().split()[:3] == ["CONTAINER", "BEFORE", "NOW"]
    for said in ("no quota", "0.5 cpus", "(ended): dl-apply"):
        assert said in done.stdout.decode()
    last = done.stdout.decode().splitlines()[-1]
    assert last == f"state in {state}; dl-apply --undo restores the original settings"


def test_what_would_not_be_restored_is_not_promised(run, tool) -> None:
    job = run()
    tool("dl-apply", input=plan_for(job, {"weight": 10}))
    api().update_container(job.id, cpu_shares=77)
    done = tool("dl-apply", "--status", env={"COLUMNS": "160"})
    assert (
        done.stdout.decode().splitlines()[-1].endswith(": nothing for dl-apply --undo to restore")
    )
    assert f"{job.name}: somebody else has changed its settings" in done.stderr.decode()
    assert [one["foreign"] for one in tool.status()] == [True]


def test_status_changes_nothing_and_needs_no_lock(run, tool) -> None:
    jobs = [run(BUSY, name=name) for name in ("a", "b")]
    with rotating(tool, jobs, "--lease", "0") as process:
        process.kill()
        process.communicate()
    paused = [job.name for job in jobs if state(job) == "paused"]
    done = tool("dl-apply", "--status")
    assert f"an earlier dl-apply has left {paused[0]} paused; run dl-apply --undo" in complaint(
        done.stderr
    )
    assert [state(job) for job in jobs].count("paused") == 1
    tool("dl-apply", "--undo")


def test_an_undo_without_entries_names_its_journal(run, tool, state, tmp_path) -> None:
    job = run()
    there = tmp_path / "elsewhere"
    done = tool("dl-apply", "--state-dir", there, input=plan_for(job, {"weight": 10}))
    assert done.returncode == 0
    assert (there / "journal" / f"{job.id}.json").exists()
    done = tool("dl-apply", "--undo")
    assert (done.returncode, done.stdout) == (0, b"")
    told = complaint(done.stderr)
    assert f": no entry in {state / 'journal'}" in told
    assert "nothing to undo on " in told
    assert len(status(tool, "--state-dir", str(there))) == 1
    done = tool("dl-apply", "--undo", env={"DLTOOLS_STATE_DIR": str(there)})
    assert [result["status"] for result in records(done.stdout)] == ["applied"]


def test_entries_in_another_directory_are_counted(run, tool, tmp_path) -> None:
    job = run()
    home = tmp_path / "home"
    old = home / ".local" / "state" / "dltools"
    tool("dl-apply", "--state-dir", old, input=plan_for(job, {"weight": 10}))
    told = complaint(tool("dl-apply", "--undo", env={"HOME": str(home)}).stderr)
    assert f"1 in {old}: use --state-dir {old}" in told
    assert len(tool.status(env={"HOME": str(home)})) == 1
    tool("dl-apply", "--undo", "--state-dir", old)
