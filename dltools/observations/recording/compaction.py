"""Merging a recording's small files: a day of a host becomes one file with large row groups.

A row group a sample costs four times the bytes and two hundred times the reading time of large
ones (measured). The new file is put in place before the old ones go; a note in `.staging/` says
which those are, so that a compaction that was killed is completed by whoever comes next.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING

from dltools.errors import DataError, InputOutputError
from dltools.files import locked
from dltools.notation.times import to_micros
from dltools.observations.formats.parquet import MOST_ROWS, ParquetFile
from dltools.observations.formats.reading import read_table
from dltools.observations.recording.directory import (
    RecordingDirectory,
    new_stem,
)
from dltools.observations.recording.journal import recover_journals
from dltools.observations.schema import arrow_schema
from dltools.observations.table import concat

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass(frozen=True, slots=True)
class Compacted:
    """What was done: files and bytes before and after, and rows, of the folders that changed."""

    files_before: int = 0
    files_after: int = 0
    bytes_before: int = 0
    bytes_after: int = 0
    rows: int = 0


def compact(directory: RecordingDirectory) -> Compacted:
    """Merge the files of each day and host.

    Raises `RetryError` where another compaction runs, `DataError` for a file that is none of ours
    (before anything is removed), `InputOutputError` where the disk fails or is full.
    """
    total = Compacted()
    directory.prepare()
    with locked(directory.staging / "compaction.lock", "compaction"):
        complete(directory)
        recover_journals(directory)
        for folder, group in groupby(directory.files(), key=lambda file: file.parent):
            files = list(group)
            if len(files) > 1:
                done = _merge(directory, folder, files)
                total = Compacted(
                    *(getattr(total, f) + getattr(done, f) for f in Compacted.__slots__)
                )
    return total


def complete(directory: RecordingDirectory) -> None:
    """Finish what a killed compaction began: where its new file stands, the old ones go."""
    for note in directory.staging.glob("*.compaction"):
        try:
            plan = json.loads(note.read_text())
            if (directory.root / plan["new"]).exists():
                for old in plan["old"]:
                    (directory.root / old).unlink(missing_ok=True)
        except (ValueError, KeyError, TypeError):
            pass  # torn while being written: nothing had been done yet
        note.unlink(missing_ok=True)


def _merge(directory: RecordingDirectory, folder: Path, files: list[Path]) -> Compacted:
    sizes = [file.stat().st_size for file in files]
    new = folder / f"{new_stem()}.parquet"
    note = directory.staging / f"{new.stem}.compaction"
    relative = [str(file.relative_to(directory.root)) for file in (new, *files)]
    try:
        note.write_text(json.dumps({"new": relative[0], "old": relative[1:]}))
        rows = 0
        with directory.new_file(new) as file, ParquetFile(file) as out:
            for group in _groups(_ordered(files)):
                out.add(group)
                rows += group.num_rows
    except OSError as error:
        raise InputOutputError(f"cannot write {new}: {error.strerror or error}") from error
    finally:
        if not new.exists():
            note.unlink(missing_ok=True)
    complete(directory)
    return Compacted(len(files), 1, sum(sizes), new.stat().st_size, rows)


def _ordered(files: list[Path]) -> list[tuple[int, int, Path]]:
    """Return (first time, last time, file) in order of first time, microseconds."""
    import pyarrow.parquet as pq

    found = []
    for file in files:
        try:
            with pq.ParquetFile(file) as data:
                index = data.schema_arrow.get_field_index("time")
                groups = [
                    data.metadata.row_group(g).column(index).statistics
                    for g in range(data.metadata.num_row_groups)
                ]
                if groups:
                    first = min(_micros(group.min) for group in groups)
                    found.append((first, max(_micros(group.max) for group in groups), file))
        except Exception as error:
            raise DataError(f"{file}: not a recording, nothing was changed: {error}") from error
    return sorted(found)


def _micros(moment: datetime) -> int:
    return to_micros(moment if moment.tzinfo else moment.replace(tzinfo=UTC))


def _groups(files: list[tuple[int, int, Path]]) -> Iterator[pa.Table]:
    """Yield tables of at least `MOST_ROWS` rows, but for the last, sorted by time through all.

    What is later than the next file's first row waits for it, so that memory holds little more
    than the files that overlap.
    """
    import pyarrow.compute as pc

    waiting = arrow_schema().empty_table()
    ready: list[pa.Table] = []
    for number, (_, _, file) in enumerate(files):
        with file.open("rb") as stream:
            waiting = concat([waiting, read_table(stream, str(file))])
        if number + 1 < len(files):
            times = waiting.column("time").cast("int64")
            count = pc.sum(pc.less(times, files[number + 1][0])).as_py() or 0
        else:
            count = waiting.num_rows
        ready.append(waiting[:count])
        waiting = waiting[count:]
        if sum(table.num_rows for table in ready) >= MOST_ROWS:
            yield concat(ready)
            ready = []
    if ready:
        yield concat(ready)
