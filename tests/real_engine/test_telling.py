"""dl-apply --tell: a file that says to all users who waits, as long as the run goes on."""

from pathlib import Path

from helpers.containers import eventually, plan_for
from helpers.pipes import feed
from helpers.tools import complaint
from real_engine.test_leases import live
from real_engine.test_turns import SPIN, rotating


def shown(path: Path) -> str:
    return path.read_text() if path.exists() else ""


def test_who_waits_for_a_turn(run, tool, tmp_path) -> None:
    jobs = [run(SPIN, name=name) for name in ("a", "b")]
    path = tmp_path / "waiting"
    with rotating(tool, jobs, "--tell", str(path), "--contact", "lab@example.org") as process:
        eventually(lambda: shown(path), lambda text: text.count(" paused ") == 1)
        assert "# Ask: lab@example.org\n" in shown(path)
        assert "2 of 2" in shown(path)
        process.terminate()
        process.communicate(timeout=20)
    assert not path.exists()


def test_who_waits_at_a_low_weight_until_the_run_is_killed(run, tool, tmp_path) -> None:
    job, path = run(), tmp_path / "waiting"
    process = tool.begin("dl-apply", "--tell", path)
    feed(process, live(job, {"weight": 10}))
    eventually(lambda: f"{job.name}  " in shown(path))
    assert " of 1024 " in shown(path)
    process.kill()
    process.wait()
    eventually(lambda: not path.exists())  # its watchdog sees to it


def test_a_container_that_ends_does_not_wait(run, tool, tmp_path) -> None:
    job, other, path = run(), run(name="other"), tmp_path / "waiting"
    process = tool.begin("dl-apply", "--tell", path)
    feed(process, live(job, {"weight": 10}))
    eventually(lambda: f"{job.name}  " in shown(path))
    job.stop()
    feed(process, live(other, {"weight": 2000}))
    eventually(lambda: "# None waits." in shown(path))
    process.terminate()
    process.communicate(timeout=60)


def test_a_file_that_cannot_be_made_ends_the_run_before_it_begins(run, tool, tmp_path) -> None:
    job = run()
    path = tmp_path / "nowhere" / "waiting"
    done = tool("dl-apply", "--tell", path, input=plan_for(job, {"weight": 10}))
    assert done.returncode == 73
    assert complaint(done.stderr).startswith(f"dl-apply: cannot create {path}")
    assert job.shown_cpus == 0
