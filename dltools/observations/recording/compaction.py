"""Merging a recording's small files: a day of a host becomes one file with large row groups.

Files with a row group for each sample cost four times the bytes and two hundred times the reading
time (measured). The new file appears before the old ones are removed. A note in `.staging/` names
them: readers leave them out, and the next compaction completes one that was killed. A recorder
merges the days before when a new one begins.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING

from dltools.errors import DataError, InputOutputError
from dltools.notation.times import to_micros
from dltools.observations.formats.parquet import MOST_ROWS, ParquetFile
from dltools.observations.formats.registry import read_table
from dltools.observations.recording.directory import Merge, RecordingDirectory, new_stem
from dltools.observations.schema import arrow_schema
from dltools.observations.table import concat
from dltools.whole_files import locked

if TYPE_CHECKING:
    import pyarrow as pa


def compact(directory: RecordingDirectory, before: date) -> int:
    """Merge the files of each host and day before a day; return how many there were to merge.

    A day that is not over is left: its files are still being added. Raises `RetryError` where
    another compaction runs, `DataError` for a file that is no recording (before anything is
    removed), `InputOutputError` where the disk fails or is full.
    """
    if not any(directory.staging.glob("*.compaction")) and not _mergeable(directory, before):
        return 0
    count = 0
    with locked(directory.staging / "compaction.lock", "compaction"):
        complete(directory)
        for folder, files in _mergeable(directory, before).items():
            _merge(directory, folder, files)
            count += len(files)
    return count


def _mergeable(directory: RecordingDirectory, before: date) -> dict[Path, list[Path]]:
    """Return the folders with more than one file, of the days before a day."""
    groups = groupby(directory.files(before), key=lambda file: file.parent)
    folders = {folder: list(files) for folder, files in groups}
    return {folder: files for folder, files in folders.items() if len(files) > 1}


def complete(directory: RecordingDirectory) -> None:
    """Finish what a killed compaction began: where its new file is, remove the old ones."""
    for note in directory.staging.glob("*.compaction"):
        merge = Merge.of_note(note, directory.root)
        if merge is not None and merge.new.exists():
            for old in merge.old:
                old.unlink(missing_ok=True)
        note.unlink(missing_ok=True)


def _merge(directory: RecordingDirectory, folder: Path, files: list[Path]) -> None:
    merge = Merge(folder / f"{new_stem()}.parquet", tuple(files))
    changed = max(file.stat().st_mtime for file in files)
    note = directory.staging / f"{merge.new.stem}.compaction"
    try:
        note.write_text(merge.to_note(directory.root))
        with directory.new_file(merge.new) as file, ParquetFile(file) as out:
            for group in _groups(_files_by_time(files)):
                out.add(group)
        os.utime(merge.new, (changed, changed))  # recorders read again what has changed lately
    except OSError as error:
        raise InputOutputError(f"cannot write {merge.new}: {error.strerror or error}") from error
    finally:
        if not merge.new.exists():
            note.unlink(missing_ok=True)
    complete(directory)


@dataclass(frozen=True, slots=True, order=True)
class _File:
    """A file and when its first row is (microseconds)."""

    first: int
    path: Path


def _files_by_time(files: list[Path]) -> list[_File]:
    """Return the files that have rows, in order of their first rows."""
    import pyarrow.parquet as pq

    found = []
    for file in files:
        try:
            with pq.ParquetFile(file) as data:
                index = data.schema_arrow.get_field_index("time")
                groups = [
                    data.metadata.row_group(number).column(index).statistics
                    for number in range(data.metadata.num_row_groups)
                ]
                if groups:
                    found.append(_File(min(_micros(group.min) for group in groups), file))
        except Exception as error:
            raise DataError(f"{file}: not a recording, nothing was changed: {error}") from error
    return sorted(found)


def _micros(moment: datetime) -> int:
    """Return a file's statistic of `time`, which may lack its zone, in microseconds."""
    return to_micros(moment if moment.tzinfo else moment.replace(tzinfo=UTC))


def _groups(files: list[_File]) -> Iterator[pa.Table]:
    """Yield the rows of all files, sorted by time through all, in tables of at least `MOST_ROWS`
    rows, but for the last.

    Rows that are later than the next file's first row wait for it. So memory holds little more than
    the files that overlap.
    """
    import pyarrow.compute as pc

    waiting = arrow_schema().empty_table()
    ready: list[pa.Table] = []
    for number, file in enumerate(files):
        with file.path.open("rb") as stream:
            waiting = concat([waiting, read_table(stream, str(file.path))])
        count = waiting.num_rows
        if number + 1 < len(files):
            times = waiting.column("time").cast("int64")
            count = pc.sum(pc.less(times, files[number + 1].first)).as_py() or 0
        ready.append(waiting[:count])
        waiting = waiting[count:]
        if sum(table.num_rows for table in ready) >= MOST_ROWS:
            yield concat(ready)
            ready = []
    if ready:
        yield concat(ready)
