"""Recording samples into a directory, as dl-probe does: a restart neither loses nor doubles a row.

Samples go into a journal, an Arrow stream that becomes Parquet now and then. A recorder holds a
lock on its journal. A killed recorder loses at most the sample it was writing: the next recorder
finds the journal without a lock and adds it to the tree.
"""

from __future__ import annotations

import fcntl
import io
import os
import time
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dltools.errors import InputOutputError
from dltools.observations.recording.directory import RecordingDirectory, journal_groups, new_stem
from dltools.observations.schema import REPORTED, arrow_schema

if TYPE_CHECKING:
    import pyarrow as pa

_REPORTED = [kind.value for kind in REPORTED]

_KEY = ("kind", "container_id", "time", "metric", "event", "step", "epoch", "value")
"""Columns that tell a reported row from any other."""

_MOST_BYTES = 64 << 20
_SYNC_S = 10.0


class Recorder:
    """Adds samples to a directory, which become a file every `rotate_s` seconds and at the end.

    A recorder that is started again, by cron for instance, reads the same log lines again. So it
    leaves out progress and events that were recorded in the last `since_s` seconds. Raises the
    errors of `RecordingDirectory`.
    """

    def __init__(self, root: Path, *, rotate_s: float, since_s: float) -> None:
        """Make the directory, and add the journals of killed recorders, `recovered` in number."""
        self._directory = RecordingDirectory(root)
        self._directory.prepare()
        self.recovered = recover_journals(self._directory)
        since = datetime.now(UTC) - timedelta(seconds=since_s)
        self._recorded = set(_keys(self._directory.read(since, _REPORTED)))
        self._journal = Journal(self._directory, rotate_s)

    def write(self, table: pa.Table) -> None:
        """Record one sample."""
        if self._recorded:
            table = table.filter([key not in self._recorded for key in _keys(table)])
        self._journal.write(table)

    def close(self) -> None:
        """Complete the recording."""
        self._journal.close()


def _keys(table: pa.Table) -> list[tuple[Any, ...] | None]:
    """Return the key of each row of progress or an event, None for other rows."""
    import pyarrow as pa

    columns = []
    for name in _KEY:
        column = table.column(name)
        if pa.types.is_dictionary(column.type):
            column = column.cast(pa.string())
        elif name in ("epoch", "value"):
            column = column.cast(pa.string())  # NaN equals NaN
        columns.append(column.to_pylist())
    return [key if key[0] in _REPORTED else None for key in zip(*columns, strict=True)]


class Journal:
    """Records a stream of samples into a directory: a new file every `rotate_s` seconds or 64 MiB.

    Nothing is written before the first sample.
    `write` returns when the system has the sample. It raises `InputOutputError` for a full disk,
    where the samples before are kept, and for a journal that somebody has removed.
    """

    def __init__(self, directory: RecordingDirectory, rotate_s: float) -> None:
        self._directory = directory
        self._rotate_s = rotate_s
        self._path: Path | None = None
        self._file: io.FileIO | None = None
        self._writer: Any = None
        self._bytes = io.BytesIO()
        self._written = 0
        self._opened = self._synced = 0.0

    def write(self, table: pa.Table) -> None:
        """Append one sample."""
        import pyarrow as pa

        if self._path is not None and not self._path.exists():
            raise InputOutputError(f"{self._path} is gone, with the samples in it: record anew")
        now = time.monotonic()
        if self._file is not None and (
            now - self._opened >= self._rotate_s or self._written >= _MOST_BYTES
        ):
            self.close()
        if self._file is None:
            self._open(now)
        if self._writer is None:
            self._writer = pa.ipc.new_stream(self._bytes, arrow_schema())
        for batch in table.combine_chunks().to_batches():
            self._writer.write_batch(batch)
        data = self._bytes.getvalue()
        self._bytes.seek(0)
        self._bytes.truncate()
        self._append(data, now)

    def close(self) -> None:
        """Turn the journal into a file of the tree; a new one begins with the next sample."""
        if self._file is None or self._path is None:
            return
        try:
            _add_journal(self._directory, self._path)
        finally:
            self._file.close()
            self._path = self._file = self._writer = None

    def _open(self, now: float) -> None:
        while self._file is None:
            path = self._directory.staging / f"{new_stem()}.arrows"
            try:
                file = io.FileIO(os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o644), "r+")
                fcntl.flock(file, fcntl.LOCK_EX)
            except OSError as error:
                raise InputOutputError(f"cannot write {path}: {error.strerror}") from error
            if path.exists():  # otherwise another recorder added it before it was locked
                self._path, self._file = path, file
        self._written, self._opened, self._synced = 0, now, now
        self._bytes = io.BytesIO()

    def _append(self, data: bytes, now: float) -> None:
        assert self._file is not None
        rest = memoryview(data)
        try:
            while rest:
                rest = rest[self._file.write(rest) :]
            if now - self._synced >= _SYNC_S:
                os.fdatasync(self._file.fileno())
                self._synced = now
        except OSError as error:
            self._file.truncate(self._written)
            self._file.seek(self._written)
            raise InputOutputError(
                f"cannot write {self._path}: {error.strerror}; the samples before are safe"
            ) from error
        self._written += len(data)


def recover_journals(directory: RecordingDirectory) -> int:
    """Add the journals of killed recorders to the tree; return how many there were."""
    count = 0
    for path in sorted(directory.staging.glob("*.arrows")):
        with suppress(BlockingIOError, FileNotFoundError), path.open("rb") as file:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            _add_journal(directory, path)
            count += 1
    return count


def _add_journal(directory: RecordingDirectory, path: Path) -> None:
    import pyarrow as pa

    directory.add(journal_groups(path), path.stem)
    path.unlink(missing_ok=True)
    pa.default_memory_pool().release_unused()
