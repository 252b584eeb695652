"""Recorders: nothing is recorded twice, nothing is lost with a killed one."""

from __future__ import annotations

import random
import signal
import subprocess
import sys
import time
from collections import Counter
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from helpers.examples import repeated
from helpers.recordings import NOON, node, point, recording, times

from dltools.observations.recording.directory import RecordingDirectory
from dltools.observations.recording.journal import recover_journals
from dltools.observations.recording.recorder import Recorder
from dltools.observations.table import to_table


def test_what_was_recorded_is_not_recorded_again(tmp_path: Path) -> None:
    now = datetime.now(UTC)
    rows = [
        point(now - timedelta(seconds=9), 1),
        point(now - timedelta(seconds=8), 2, float("nan")),
    ]
    for rotate in (None, 3600.0, None):
        recorder = Recorder(tmp_path, rotate_s=rotate, since_s=600)
        recorder.write(to_table([*rows, node(datetime.now(UTC))]))
        recorder.close()
    kinds = Counter(RecordingDirectory(tmp_path).read().column("kind").to_pylist())
    assert kinds == {"progress": 2, "node": 3}


def test_a_new_point_at_a_recorded_time_is_recorded(tmp_path: Path) -> None:
    now = datetime.now(UTC)
    for step in (1, 2):
        recorder = Recorder(tmp_path, rotate_s=None, since_s=600)
        recorder.write(to_table([point(now, step)]))
        recorder.close()
    assert RecordingDirectory(tmp_path).read().column("step").to_pylist() == [1, 2]


RECORDER = """
import sys, time
from datetime import UTC, datetime, timedelta
from pathlib import Path
from dltools.observations.table import to_table
from dltools.observations.recording.recorder import Recorder
recorder = Recorder(Path(sys.argv[1]), rotate_s=0.05, since_s=600)
number = int(sys.argv[2])
while True:
    now = datetime(2026, 1, 31, 12, tzinfo=UTC) + timedelta(seconds=number)
    row = {"time": now, "host": "h", "kind": "node"}
    recorder.write(to_table([row | {"cpu_count": float(part)} for part in range(3)]))
    print(number, flush=True)
    number += 1
"""


@pytest.mark.slow
def test_killed_often_nothing_that_was_written_is_lost(tmp_path: Path) -> None:
    randomness = random.Random(1)
    told, kills = 0, repeated(5, 50)
    for _ in range(kills):
        process = subprocess.Popen(
            [sys.executable, "-c", RECORDER, str(tmp_path), str(told)], stdout=subprocess.PIPE
        )
        assert process.stdout is not None
        process.stdout.readline()
        time.sleep(randomness.uniform(0, 0.15))
        process.send_signal(signal.SIGKILL)
        said = process.stdout.read().split()
        process.wait()
        told = max(int(said[-1]) + 1, told + 1) if said else told + 1
        told += 1  # the sample in flight may have been written, too: never give its number again
    made = recording(tmp_path)
    recover_journals(made)
    counts = Counter(times(made.read()))
    assert set(counts.values()) == {3}  # whole samples, none twice
    lost = [n for n in range(told) if NOON + timedelta(seconds=n) not in counts]
    assert len(lost) <= kills  # the numbers that were skipped
    for file in made.files():
        assert pq.read_metadata(file).num_rows > 0
