"""dl-probe as a recorder of real containers: into a directory, a textfile, a terminal."""

import os
import pty
import re
import signal
import subprocess
import time
from collections import Counter
from pathlib import Path

import pytest
from helpers.containers import Containers, eventually
from helpers.tools import Tools, command

from dltools.observations.recording.directory import RecordingDirectory

COUNT = 'i=0; while :; do echo "step $i loss: 0.5"; i=$((i+1)); usleep 50000; done'


def steps(root: Path) -> list[int]:
    found = RecordingDirectory(root).read()
    rows = [row for row in found.to_pylist() if row["kind"] == "progress"]
    return [row["step"] for row in rows]


def test_samples_from_cron_overlap_and_record_nothing_twice(
    run: Containers, tool: Tools, tmp_path: Path
) -> None:
    job = run(COUNT)
    for _ in range(4):
        done = tool("dl-probe", "--name", job.name, "-o", f"{tmp_path}/")
        assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")
        time.sleep(0.5)
    seen = steps(tmp_path)
    assert len(seen) > 4
    assert seen == list(range(len(seen)))
    plan = tool("dl-plan", tmp_path)
    assert plan.returncode == 0, plan.stderr
    (day,) = tmp_path.glob("date=*")
    day.rename(tmp_path / "date=2026-01-01")
    done = tool("dl-probe", "--name", "none-such", "-o", f"{tmp_path}/")
    assert (done.returncode, done.stderr.count(b"\n")) == (0, 1)
    assert len(list(tmp_path.glob("date=2026-01-01/host=*/*"))) == 1
    assert steps(tmp_path) == seen


def test_a_killed_stream_goes_on_without_loss_or_duplicate(
    run: Containers, tool: Tools, tmp_path: Path
) -> None:
    job = run(COUNT)
    for _ in range(3):
        recorder = tool.begin("dl-probe", "--name", job.name, "-i", "0.2", "-o", f"{tmp_path}/")
        before = len(steps(tmp_path))
        eventually(lambda: len(steps(tmp_path)), lambda many: many > before + 10)  # noqa: B023
        recorder.send_signal(signal.SIGKILL)
        recorder.wait()
    done = tool("dl-probe", "--name", job.name, "-o", f"{tmp_path}/")
    assert b"killed recorder" in done.stderr
    seen = steps(tmp_path)
    assert seen == list(range(len(seen)))


def test_a_textfile_is_replaced_whole(run: Containers, tool: Tools, tmp_path: Path) -> None:
    job = run(COUNT)
    file = tmp_path / "dltools.prom"
    tool.begin("dl-probe", "--name", job.name, "-i", "0.2", "--format", "prom", "-o", file)
    eventually(file.exists)
    seen: set[str] = set()
    looks = 0
    while looks < 200 or len(seen) < 4:
        looks += 1
        text = file.read_text()
        assert text.endswith("\n")
        assert "dltools_container_cpu_seconds_total{" in text
        seen.add(text)
        time.sleep(0.01)
    assert [f.name for f in tmp_path.iterdir() if not f.name.startswith(".")] == ["dltools.prom"]


@pytest.mark.parametrize("colour", [True, False])
def test_a_terminal_shows_a_live_table(run: Containers, colour: bool) -> None:
    job = run(COUNT)
    master, slave = pty.openpty()
    env = {**os.environ, "TERM": "xterm-256color", "COLUMNS": "80", "LINES": "24"}
    env |= {"LANG": "C.UTF-8"} | ({} if colour else {"NO_COLOR": "1"})
    process = subprocess.Popen(
        [*command("dl-probe"), "--name", job.name, "-i", "0.3", "-c", "6"],
        stdout=slave,
        stderr=slave,
        env=env,
    )
    os.close(slave)
    shown = b""
    try:
        while data := os.read(master, 65536):
            shown += data
    except OSError:
        pass  # the other end is closed
    assert process.wait() == 0
    text = shown.decode()
    assert text.count("CONTAINER") >= 6  # and once more at the end
    assert re.search(r"loss +0\.5", text)
    assert "▁" in text
    colours = Counter(code for code in ("\x1b[33m", "\x1b[32m", "\x1b[31m") if code in text)
    assert bool(colours) == colour
