"""dl-apply --tell: a file that says to all users who waits, as long as the run goes on."""

from pathlib import Path

from helpers.containers import eventually
from helpers.pipes import feed
from real_engine.test_leases import live
from real_engine.test_turns import BUSY, rotating


def shown(path: Path) -> str:
    return path.read_text() if path.exists() else ""


def test_who_waits_for_a_turn(run, tool, tmp_path) -> None:
    jobs = [run(BUSY, name=name) for name in ("a", "b")]
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
