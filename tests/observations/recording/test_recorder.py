"""Recording into a directory: layout, rotation, killed recorders, full disks, compaction."""

from __future__ import annotations

import os
import random
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from dltools.errors import DataError, InputOutputError, RetryError
from dltools.files import locked
from dltools.observations.recording.compaction import compact
from dltools.observations.recording.directory import RecordingDirectory, new_stem
from dltools.observations.recording.journal import Journal, recover_journals
from dltools.observations.recording.journal_file import journal_rows
from dltools.observations.recording.recorder import Recorder
from dltools.observations.schema import COLUMNS, Type
from dltools.observations.table import Row, to_table

NOON = datetime(2026, 1, 31, 12, tzinfo=UTC)


def node(time: datetime, host: str = "h") -> Row:
    return {"time": time, "host": host, "kind": "node", "cpu_count": 2.0}


def point(time: datetime, step: int, value: float = 0.5) -> Row:
    return {"time": time, "host": "h", "kind": "progress", "container_id": "c" * 64,
            "metric": "loss", "value": value, "step": step}  # fmt: skip


def dataset(root: Path) -> RecordingDirectory:
    made = RecordingDirectory(root)
    made.prepare()
    return made


def times(table: pa.Table) -> list[datetime]:
    found: list[datetime] = table.column("time").to_pylist()
    return found


def tree(root: Path) -> list[str]:
    return sorted(str(f.relative_to(root)) for f in root.rglob("*") if f.is_file())


def test_rows_go_by_day_and_host(tmp_path: Path) -> None:
    made = dataset(tmp_path)
    rows = [node(NOON), node(NOON + timedelta(days=1)), node(NOON, "a/b =c")]
    made.add([to_table(rows)], "one")
    assert tree(tmp_path) == [
        "date=2026-01-31/host=a%2Fb%20%3Dc/one.parquet",
        "date=2026-01-31/host=h/one.parquet",
        "date=2026-02-01/host=h/one.parquet",
    ]
    assert made.read().num_rows == 3


def test_the_same_rows_added_again_change_nothing(tmp_path: Path) -> None:
    made = dataset(tmp_path)
    for _ in range(2):
        made.add([to_table([node(NOON)])], "one")
    assert made.read().num_rows == 1


def test_a_name_sorts_by_time_and_is_unique() -> None:
    names = [new_stem(NOON), new_stem(NOON), new_stem(NOON + timedelta(seconds=1))]
    assert len(set(names)) == 3
    assert max(names[:2]) < names[2]


def test_a_journal_is_read_while_it_grows(tmp_path: Path) -> None:
    made = dataset(tmp_path)
    journal = Journal(made, 3600)
    for second in range(3):
        journal.write(to_table([node(NOON + timedelta(seconds=second))]))
        assert made.read().num_rows == second + 1
        assert made.files() == []
    journal.close()
    assert made.read().num_rows == 3
    assert len(made.files()) == 1
    assert list(made.staging.iterdir()) == []


def test_a_journal_becomes_a_file_when_it_is_old(tmp_path: Path) -> None:
    made = dataset(tmp_path)
    journal = Journal(made, 0.05)
    for second in range(3):
        journal.write(to_table([node(NOON + timedelta(seconds=second))]))
        time.sleep(0.06)
    assert len(made.files()) == 2
    journal.close()
    assert len(made.files()) == 3
    assert made.read().num_rows == 3


def test_a_living_recorders_journal_is_left_to_it(tmp_path: Path) -> None:
    made = dataset(tmp_path)
    journal = Journal(made, 3600)
    journal.write(to_table([node(NOON)]))
    assert recover_journals(made) == 0
    made.prepare()
    journal.write(to_table([node(NOON)]))
    journal.close()
    assert made.read().num_rows == 2


@pytest.mark.parametrize("cut", [0, 1, 7, 100, -1, -30])
def test_a_torn_journal_gives_its_whole_samples(tmp_path: Path, cut: int) -> None:
    made = dataset(tmp_path)
    journal = Journal(made, 3600)
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
    tmp_path: Path, when: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = dataset(tmp_path)
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


def test_an_empty_journal_leaves_nothing(tmp_path: Path) -> None:
    made = dataset(tmp_path)
    (made.staging / "x.arrows").touch()
    assert recover_journals(made) == 1
    assert tree(tmp_path) == []


def test_half_written_files_of_the_dead_are_removed(tmp_path: Path) -> None:
    made = dataset(tmp_path)
    old, new = made.staging / "old.tmp", made.staging / "new.tmp"
    for file in (old, new):
        file.write_bytes(b"PAR1")
    os.utime(old, (0, 0))
    made.prepare()
    assert not old.exists()
    assert new.exists()  # its writer may not yet hold its lock


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


# Killed, and full

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
def test_killed_fifty_times_nothing_that_was_written_is_lost(tmp_path: Path) -> None:
    randomness = random.Random(1)
    told = 0
    for _ in range(50):
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
    made = dataset(tmp_path)
    recover_journals(made)
    counts = Counter(times(made.read()))
    assert set(counts.values()) == {3}  # whole samples, none twice
    lost = [n for n in range(told) if NOON + timedelta(seconds=n) not in counts]
    assert len(lost) <= 50  # the numbers that were skipped
    for file in made.files():
        assert pq.read_metadata(file).num_rows > 0


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 512 KiB."""
    if os.geteuid() != 0:
        pytest.skip("only root can mount a small file system")
    place = tmp_path / "small"
    place.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=512k", "tmpfs", place], check=True)
    try:
        yield place
    finally:
        subprocess.run(["umount", "-l", place], check=True)


def test_a_full_disk_is_told_and_harms_nothing(small_disk: Path) -> None:
    made = dataset(small_disk)
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


def test_a_full_disk_harms_no_single_sample(small_disk: Path) -> None:
    made = dataset(small_disk)
    made.add([to_table([node(NOON)])], "first")
    (small_disk / "filler").write_bytes(b"x" * 480_000)
    with pytest.raises(InputOutputError, match="No space left on device"):
        made.add([to_table([node(NOON, str(n)) for n in range(2000)])], "second")
    assert all(pq.read_metadata(file).num_rows for file in made.files())
    assert list(made.staging.iterdir()) == []


# Compaction


def test_a_day_becomes_one_file_sorted_by_time(tmp_path: Path) -> None:
    made = dataset(tmp_path)
    moments = [NOON + timedelta(seconds=n) for n in range(100)]
    shuffled = random.Random(2).sample(moments, 100)
    for number in range(10):
        made.add(
            [to_table([node(t) for t in shuffled[number * 10 : number * 10 + 10]])], new_stem()
        )
    before = made.read()
    done = compact(made)
    (file,) = made.files()
    assert (done.files_before, done.files_after, done.rows) == (10, 1, 100)
    assert done.bytes_after == file.stat().st_size < done.bytes_before
    assert times(pq.ParquetFile(file).read()) == moments
    assert made.read().equals(before)
    assert compact(made).files_before == 0


def test_large_row_groups_zstd_and_split_floats(tmp_path: Path) -> None:
    made = dataset(tmp_path)
    for part in range(3):
        first = NOON + timedelta(hours=part)
        rows = [node(first + timedelta(milliseconds=n)) for n in range(60_000)]
        made.add([to_table(rows)], new_stem())
    compact(made)
    (file,) = made.files()
    meta = pq.read_metadata(file)
    assert meta.num_rows == 180_000
    assert [meta.row_group(g).num_rows >= 50_000 for g in range(meta.num_row_groups)] == [
        True
    ] * meta.num_row_groups
    floats = [number for number, c in enumerate(COLUMNS) if c.type is Type.FLOAT]
    column = meta.row_group(0).column(floats[0])
    assert column.compression == "ZSTD"
    assert "BYTE_STREAM_SPLIT" in column.encodings


def test_a_foreign_file_stops_it_before_anything_is_removed(tmp_path: Path) -> None:
    made = dataset(tmp_path)
    for _ in range(2):
        made.add([to_table([node(NOON)])], new_stem())
    foreign = made.folder(NOON.date(), "h") / "zz.parquet"
    foreign.write_bytes(b"not ours")
    with pytest.raises(DataError, match=r"zz\.parquet: not a recording, nothing was changed"):
        compact(made)
    assert len(made.files()) == 3


def test_two_compactions_do_not_meet(tmp_path: Path) -> None:
    made = dataset(tmp_path)
    with locked(made.staging / "compaction.lock", "compaction"), pytest.raises(RetryError):
        compact(made)


def test_a_compaction_killed_after_the_new_file_is_completed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = dataset(tmp_path)
    for second in range(3):
        made.add([to_table([node(NOON + timedelta(seconds=second))])], new_stem())

    class Killed(BaseException):
        pass

    def kill(*_: object, **__: object) -> None:
        raise Killed

    with monkeypatch.context() as patch, pytest.raises(Killed):
        patch.setattr(Path, "unlink", kill)
        compact(made)
    for file in made.staging.glob("*.tmp"):
        file.unlink()
    compact(made)
    assert times(made.read()) == [NOON + timedelta(seconds=n) for n in range(3)]
    assert not list(made.staging.glob("*.compaction"))


def test_rows_are_read_once_while_the_merged_files_are_still_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = dataset(tmp_path)
    for second in range(3):
        made.add([to_table([node(NOON + timedelta(seconds=second))])], new_stem())
    seen = []

    def look(directory: RecordingDirectory) -> None:
        if len(directory.files()) == 4:
            seen.append(times(directory.read()))

    monkeypatch.setattr("dltools.observations.recording.compaction.complete", look)
    compact(made)
    assert seen == [[NOON + timedelta(seconds=n) for n in range(3)]]


@pytest.mark.parametrize("since", [None, NOON - timedelta(days=1)])
def test_rows_are_read_once_while_their_files_are_merged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, since: datetime | None
) -> None:
    made = dataset(tmp_path)
    for second in range(3):
        made.add([to_table([node(NOON + timedelta(seconds=second))])], new_stem())
    listed = RecordingDirectory.files

    def list_and_merge(directory: RecordingDirectory) -> list[Path]:
        found = listed(directory)
        monkeypatch.setattr(RecordingDirectory, "files", listed)
        compact(directory)
        return found

    monkeypatch.setattr(RecordingDirectory, "files", list_and_merge)
    assert times(made.read(since)) == [NOON + timedelta(seconds=n) for n in range(3)]


def test_a_directory_whose_files_are_removed_all_the_time_is_an_error_to_try_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = dataset(tmp_path)
    monkeypatch.setattr(RecordingDirectory, "files", lambda _: [tmp_path / "gone.parquet"])
    with pytest.raises(RetryError, match=r"its files are removed while they are read; try again$"):
        made.read()


def test_a_compaction_killed_before_the_new_file_is_forgotten(tmp_path: Path) -> None:
    made = dataset(tmp_path)
    made.add([to_table([node(NOON)])], new_stem())
    (file,) = made.files()
    note = made.staging / "x.compaction"
    note.write_text(f'{{"new": "date=2026-01-31/host=h/x.parquet", "old": ["{file.name}"]}}')
    compact(made)
    assert made.files() == [file]
    assert not note.exists()


# Other readers


def recorded(root: Path) -> RecordingDirectory:
    made = dataset(root)
    moments = [NOON + timedelta(hours=12 * n) for n in range(4)]
    for number, moment in enumerate(moments):
        made.add([to_table([node(moment, f"h{number % 2}"), point(moment, number)])], new_stem())
    return made


def test_duckdb_reads_it(tmp_path: Path) -> None:
    duckdb = pytest.importorskip("duckdb")
    recorded(tmp_path)
    found = duckdb.sql(
        f"select kind, count(*), sum(step) from '{tmp_path}/**/*.parquet' "
        "where date >= '2026-02-01' group by kind order by kind"
    ).fetchall()
    assert found == [("node", 3, None), ("progress", 3, 6)]


def test_polars_reads_it(tmp_path: Path) -> None:
    polars = pytest.importorskip("polars")
    recorded(tmp_path)
    table = polars.scan_parquet(tmp_path, hive_partitioning=True).sort("time").collect()
    assert table.filter(polars.col("kind") == "progress")["step"].to_list() == [0, 1, 2, 3]


def test_pandas_reads_it(tmp_path: Path) -> None:
    pandas = pytest.importorskip("pandas")
    recorded(tmp_path)
    table = pandas.read_parquet(tmp_path)
    assert sorted(table[table["kind"] == "progress"]["step"]) == [0, 1, 2, 3]
    assert sorted(set(table["host"])) == ["h", "h0", "h1"]


def test_nothing_of_staging_is_read_by_others(tmp_path: Path) -> None:
    made = recorded(tmp_path)
    journal = Journal(made, 3600)
    journal.write(to_table([node(NOON)]))
    assert pq.read_table(tmp_path).num_rows == 8
    assert made.read().num_rows == 9


def test_the_disk_is_not_littered(tmp_path: Path) -> None:
    recorder = Recorder(tmp_path / "new", rotate_s=None, since_s=60)
    recorder.write(to_table([node(NOON)]))
    recorder.close()
    assert len(tree(tmp_path)) == 1
    shutil.rmtree(tmp_path / "new")
