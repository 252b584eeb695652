"""dl-probe as a recorder of real containers: into a directory, a textfile, a terminal."""

import time
from pathlib import Path

from dltools.observations.recording.directory import RecordingDirectory

COUNT = 'i=0; while :; do echo "step $i loss: 0.5"; i=$((i+1)); usleep 50000; done'


def steps(root: Path) -> list[int]:
    found = RecordingDirectory(root).read()
    rows = [row for row in found.to_pylist() if row["kind"] == "progress"]
    return [row["step"] for row in rows]


def test_samples_from_cron_overlap_and_record_nothing_twice(run, tool, tmp_path) -> None:
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
