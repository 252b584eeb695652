"""Two pipes with state directories of their own on one engine."""

import signal

from helpers.containers import plan_for
from helpers.tools import complaint, records
from real_engine.test_turns import SPIN, rotating, state


def test_a_second_pipe_is_refused_while_one_takes_turns(run, tool, tmp_path) -> None:
    jobs = [run(SPIN, name=name) for name in ("a", "b")]
    there, alone = ("--state-dir", tmp_path / "other"), {"DLTOOLS_BESIDE": ""}
    with rotating(tool, jobs) as process:
        done = tool("dl-apply", *there, input=plan_for(jobs[0], {"cpus": 0.5}), env=alone)
        assert (done.returncode, done.stdout) == (75, b"")
        assert "another dl-apply is running, process" in complaint(done.stderr)
        assert jobs[0].kernel_cpus is None
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=120)
    assert [state(job) for job in jobs] == ["running"] * 2


def test_beside_another_run_what_that_has_paused_is_named(run, tool, tmp_path) -> None:
    jobs = [run(SPIN, name=name) for name in ("a", "b")]
    there = ("--state-dir", tmp_path / "other", "--beside", "any")
    with rotating(tool, jobs, seconds=600) as process:
        (waiting,) = [job for job in jobs if state(job) == "paused"]
        done = tool("dl-apply", *there, input=plan_for(waiting, {"cpus": 0.5}))
        assert [one["status"] for one in records(done.stdout)] == ["applied"]
        assert f"{waiting.name}: paused, not by dl-apply" in done.stderr.decode()
        tool("dl-apply", "--undo", *there)
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=120)
