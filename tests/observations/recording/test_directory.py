"""A directory of recordings: its layout, what others read of it, full disks."""

import os
from datetime import timedelta
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from helpers.recordings import NOON, node, point, recording, tree

from dltools.errors import InputOutputError
from dltools.observations.recording.directory import RecordingDirectory, new_stem
from dltools.observations.recording.recorder import Journal, Recorder
from dltools.observations.table import to_table


def test_rows_go_by_day_and_host(made, tmp_path) -> None:
    rows = [node(NOON), node(NOON + timedelta(days=1)), node(NOON, "a/b =c")]
    made.add([to_table(rows)], "one")
    assert tree(tmp_path) == [
        "date=2026-01-31/host=a%2Fb%20%3Dc/one.parquet",
        "date=2026-01-31/host=h/one.parquet",
        "date=2026-02-01/host=h/one.parquet",
    ]
    assert made.read().num_rows == 3


def test_the_same_rows_added_again_change_nothing(made) -> None:
    for _ in range(2):
        made.add([to_table([node(NOON)])], "one")
    assert made.read().num_rows == 1


def test_a_name_sorts_by_time_and_is_unique() -> None:
    names = [new_stem(NOON), new_stem(NOON), new_stem(NOON + timedelta(seconds=1))]
    assert len(set(names)) == 3
    assert max(names[:2]) < names[2]


def test_unfinished_files_of_killed_writers_are_removed(made) -> None:
    old, new = made.staging / "old.tmp", made.staging / "new.tmp"
    for file in (old, new):
        file.write_bytes(b"PAR1")
    os.utime(old, (0, 0))
    made.prepare()
    assert not old.exists()
    assert new.exists()  # its writer may not yet hold its lock


def test_a_file_that_its_owner_removes_meanwhile_has_no_rows(made, tmp_path, monkeypatch) -> None:
    made.add([to_table([node(NOON)])], "one")
    files = [*made.files(), tmp_path / "gone.parquet"]
    monkeypatch.setattr(RecordingDirectory, "files", lambda _: files)
    assert made.read().num_rows == 1
    assert made.read(NOON - timedelta(days=1)).num_rows == 1


@pytest.mark.slow
def test_a_full_disk_harms_no_single_sample(small_disk) -> None:
    made = recording(small_disk)
    made.add([to_table([node(NOON)])], "first")
    (small_disk / "filler").write_bytes(b"x" * 480_000)
    with pytest.raises(InputOutputError, match="No space left on device"):
        made.add([to_table([node(NOON, str(n)) for n in range(40)])], "second")
    assert all(pq.read_metadata(file).num_rows for file in made.files())
    assert list(made.staging.iterdir()) == []


def recorded(root: Path) -> RecordingDirectory:
    made = recording(root)
    moments = [NOON + timedelta(hours=12 * n) for n in range(4)]
    for number, moment in enumerate(moments):
        made.add([to_table([node(moment, f"h{number % 2}"), point(moment, number)])], new_stem())
    return made


def test_duckdb_reads_it(tmp_path) -> None:
    duckdb = pytest.importorskip("duckdb")
    recorded(tmp_path)
    found = duckdb.sql(
        f"select kind, count(*), sum(step) from '{tmp_path}/**/*.parquet' "
        "where date >= '2026-02-01' group by kind order by kind"
    ).fetchall()
    assert found == [("node", 3, None), ("progress", 3, 6)]


def test_polars_reads_it(tmp_path) -> None:
    polars = pytest.importorskip("polars")
    recorded(tmp_path)
    table = polars.scan_parquet(tmp_path, hive_partitioning=True).sort("time").collect()
    assert table.filter(polars.col("kind") == "progress")["step"].to_list() == [0, 1, 2, 3]


def test_pandas_reads_it(tmp_path) -> None:
    pandas = pytest.importorskip("pandas")
    recorded(tmp_path)
    table = pandas.read_parquet(tmp_path)
    assert sorted(table[table["kind"] == "progress"]["step"]) == [0, 1, 2, 3]
    assert sorted(set(table["host"])) == ["h", "h0", "h1"]


def test_other_readers_do_not_read_the_staging_folder(tmp_path) -> None:
    made = recorded(tmp_path)
    journal = Journal(made, 3600)
    journal.write(to_table([node(NOON)]))
    assert pq.read_table(tmp_path).num_rows == 8
    assert made.read().num_rows == 9


def test_a_recorder_leaves_one_file(tmp_path) -> None:
    recorder = Recorder(tmp_path / "new", rotate_s=3600, since_s=60)
    recorder.write(to_table([node(NOON)]))
    recorder.close()
    assert len(tree(tmp_path)) == 1
