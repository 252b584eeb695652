"""Recorders and their journals: nothing is recorded twice, nothing is lost with a killed one."""

import random
import signal
import subprocess
import sys
import time
from collections import Counter
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from helpers.examples import repeated
from helpers.recordings import NOON, node, point, recording, times, tree

from dltools.errors import InputOutputError
from dltools.observations.recording.directory import RecordingDirectory, journal_rows
from dltools.observations.recording.recorder import Journal, Recorder, recover_journals
from dltools.observations.table import to_table


def test_what_was_recorded_is_not_recorded_again(tmp_path) -> None:
    now = datetime.now(UTC)
    earlier, later = (now - timedelta(seconds=seconds) for seconds in (9, 8))
    rows = [point(earlier, 1), point(later, 2, float("nan"))]
    for _ in range(3):
        recorder = Recorder(tmp_path, rotate_s=3600, since_s=600)
        recorder.write(to_table([*rows, node(datetime.now(UTC))]))
        recorder.close()
    kinds = Counter(RecordingDirectory(tmp_path).read().column("kind").to_pylist())
    assert kinds == {"progress": 2, "node": 3}


def test_a_new_point_at_a_recorded_time_is_recorded(tmp_path) -> None:
    now = datetime.now(UTC)
    for step in (1, 2):
        recorder = Recorder(tmp_path, rotate_s=3600, since_s=600)
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
def test_killed_often_nothing_that_was_written_is_lost(tmp_path) -> None:
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


def test_a_journal_is_read_while_it_grows(made, journal) -> None:
    for second in range(3):
        journal.write(to_table([node(NOON + timedelta(seconds=second))]))
        assert made.read().num_rows == second + 1
        assert made.files() == []
    journal.close()
    assert made.read().num_rows == 3
    assert len(made.files()) == 1
    assert list(made.staging.iterdir()) == []


def test_a_journal_becomes_a_file_when_it_is_old(made) -> None:
    journal = Journal(made, 0.05)
    for second in range(3):
        journal.write(to_table([node(NOON + timedelta(seconds=second))]))
        time.sleep(0.06)
    assert len(made.files()) == 2
    journal.close()
    assert len(made.files()) == 3
    assert made.read().num_rows == 3


def test_the_journal_of_a_running_recorder_is_not_touched(made, journal) -> None:
    journal.write(to_table([node(NOON)]))
    assert recover_journals(made) == 0
    made.prepare()
    journal.write(to_table([node(NOON)]))
    journal.close()
    assert made.read().num_rows == 2


@pytest.mark.parametrize("cut", [0, 1, 7, 100, -1, -30])
def test_a_torn_journal_gives_its_whole_samples(made, journal, cut) -> None:
    journal.write(to_table([node(NOON)]))
    path = next(made.staging.glob("*.arrows"))
    whole = path.stat().st_size
    journal.write(to_table([node(NOON + timedelta(seconds=1))]))
    data = path.read_bytes()
    end = whole + cut if cut >= 0 else len(data) + cut
    journal._file.close()  # type: ignore[union-attr]
    path.write_bytes(data[:end])
    assert journal_rows(path).num_rows == 1
    assert recover_journals(made) == 1
    assert made.read().num_rows == 1


@pytest.mark.parametrize("when", ["before it is read", "after it was read"])
def test_a_reader_sees_a_journal_that_becomes_a_file_once(
    made, tmp_path, when, monkeypatch
) -> None:
    journal = Journal(made, 60)
    journal.write(to_table([node(NOON), point(NOON, 1)]))

    def handed_over(path: Path) -> pa.Table:
        if when == "before it is read":
            journal.close()
        rows = journal_rows(path)
        journal.close()
        return rows

    monkeypatch.setattr("dltools.observations.recording.directory.journal_rows", handed_over)
    assert made.read().num_rows == 2
    assert tree(tmp_path)


def test_a_journal_that_is_removed_meanwhile_is_an_error(made, journal) -> None:
    journal.write(to_table([node(NOON)]))
    next(made.staging.glob("*.arrows")).unlink()
    with pytest.raises(InputOutputError, match="arrows is gone, with the samples in it"):
        journal.write(to_table([node(NOON)]))
    journal.close()


def test_an_empty_journal_leaves_nothing(made, tmp_path) -> None:
    (made.staging / "x.arrows").touch()
    assert recover_journals(made) == 1
    assert tree(tmp_path) == []


@pytest.mark.slow
def test_a_full_disk_is_an_error_and_harms_nothing(small_disk) -> None:
    made = recording(small_disk)
    journal = Journal(made, 3600)
    written = 0
    with pytest.raises(InputOutputError, match="No space left on device"):
        while True:
            rows = [node(NOON + timedelta(seconds=written), f"host-{n}") for n in range(50)]
            journal.write(to_table(rows))
            written += 1
    assert written > 1
    path = next(made.staging.glob("*.arrows"))
    assert journal_rows(path).num_rows == 50 * written
    with pytest.raises(InputOutputError, match="No space left on device"):
        journal.close()
    assert journal_rows(path).num_rows == 50 * written
    assert list(made.staging.glob("*.tmp")) == []
    subprocess.run(["mount", "-o", "remount,size=64m", small_disk], check=True)
    assert recover_journals(made) == 1
    assert made.read().num_rows == 50 * written
