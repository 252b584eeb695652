"""Merging the files of a recording."""

import random
from datetime import timedelta
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from helpers.recordings import NOON, node, recording, times

from dltools.errors import DataError, RetryError
from dltools.observations.recording.compaction import compact
from dltools.observations.recording.directory import RecordingDirectory, new_stem
from dltools.observations.schema import COLUMNS, Type
from dltools.observations.table import to_table
from dltools.whole_files import locked

LATER = NOON.date() + timedelta(days=1)


def test_a_day_becomes_one_file_sorted_by_time(tmp_path) -> None:
    made = recording(tmp_path)
    moments = [NOON + timedelta(seconds=n) for n in range(100)]
    shuffled = random.Random(2).sample(moments, 100)
    for number in range(10):
        made.add(
            [to_table([node(t) for t in shuffled[number * 10 : number * 10 + 10]])], new_stem()
        )
    before = made.read()
    (*_, newest) = sorted(file.stat().st_mtime for file in made.files())
    bytes_before = sum(file.stat().st_size for file in made.files())
    assert compact(made, LATER) == 10
    (file,) = made.files()
    assert file.stat().st_size < bytes_before
    assert file.stat().st_mtime == pytest.approx(newest, abs=1e-3)
    assert times(pq.ParquetFile(file).read()) == moments
    assert made.read().equals(before)
    assert compact(made, LATER) == 0


@pytest.mark.slow
def test_large_row_groups_zstd_and_split_floats(tmp_path) -> None:
    made = recording(tmp_path)
    for part in range(3):
        first = NOON + timedelta(hours=part)
        rows = [node(first + timedelta(milliseconds=n)) for n in range(60_000)]
        made.add([to_table(rows)], new_stem())
    compact(made, LATER)
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


def test_a_foreign_file_is_an_error_before_anything_is_removed(tmp_path) -> None:
    made = recording(tmp_path)
    for _ in range(2):
        made.add([to_table([node(NOON)])], new_stem())
    foreign = made.folder(NOON.date(), "h") / "zz.parquet"
    foreign.write_bytes(b"not ours")
    with pytest.raises(DataError, match=r"zz\.parquet: not a recording, nothing was changed"):
        compact(made, LATER)
    assert len(made.files()) == 3


def test_a_second_compaction_is_an_error_to_try_again(tmp_path) -> None:
    made = recording(tmp_path)
    for _ in range(2):
        made.add([to_table([node(NOON)])], new_stem())
    with locked(made.staging / "compaction.lock", "compaction"), pytest.raises(RetryError):
        compact(made, LATER)


def test_a_compaction_killed_after_the_new_file_is_completed(tmp_path, monkeypatch) -> None:
    made = recording(tmp_path)
    for second in range(3):
        made.add([to_table([node(NOON + timedelta(seconds=second))])], new_stem())

    class Killed(BaseException):
        pass

    def kill(*_: object, **__: object) -> None:
        raise Killed

    with monkeypatch.context() as patch, pytest.raises(Killed):
        patch.setattr(Path, "unlink", kill)
        compact(made, LATER)
    for file in made.staging.glob("*.tmp"):
        file.unlink()
    compact(made, LATER)
    assert times(made.read()) == [NOON + timedelta(seconds=n) for n in range(3)]
    assert not list(made.staging.glob("*.compaction"))


def test_rows_are_read_once_while_the_merged_files_are_still_there(tmp_path, monkeypatch) -> None:
    made = recording(tmp_path)
    for second in range(3):
        made.add([to_table([node(NOON + timedelta(seconds=second))])], new_stem())
    seen = []

    def look(directory: RecordingDirectory) -> None:
        if len(directory.files()) == 4:
            seen.append(times(directory.read()))

    monkeypatch.setattr("dltools.observations.recording.compaction.complete", look)
    compact(made, LATER)
    assert seen == [[NOON + timedelta(seconds=n) for n in range(3)]]


@pytest.mark.parametrize("since", [None, NOON - timedelta(days=1)])
def test_rows_are_read_once_while_their_files_are_merged(tmp_path, monkeypatch, since) -> None:
    made = recording(tmp_path)
    for second in range(3):
        made.add([to_table([node(NOON + timedelta(seconds=second))])], new_stem())
    listed = RecordingDirectory.files

    def list_and_merge(directory: RecordingDirectory) -> list[Path]:
        found = listed(directory)
        monkeypatch.setattr(RecordingDirectory, "files", listed)
        compact(directory, LATER)
        return found

    monkeypatch.setattr(RecordingDirectory, "files", list_and_merge)
    assert times(made.read(since)) == [NOON + timedelta(seconds=n) for n in range(3)]


def test_a_compaction_killed_before_the_new_file_is_forgotten(tmp_path) -> None:
    made = recording(tmp_path)
    made.add([to_table([node(NOON)])], new_stem())
    (file,) = made.files()
    note = made.staging / "x.compaction"
    note.write_text(f'{{"new": "date=2026-01-31/host=h/x.parquet", "old": ["{file.name}"]}}')
    compact(made, LATER)
    assert made.files() == [file]
    assert not note.exists()


def test_a_day_that_is_not_over_is_left(tmp_path) -> None:
    made = recording(tmp_path)
    for second in range(2):
        made.add([to_table([node(NOON + timedelta(seconds=second))])], new_stem())
    assert compact(made, NOON.date()) == 0
    assert len(made.files()) == 2
