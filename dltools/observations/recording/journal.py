"""A recorder's journal: samples appended to an Arrow stream, turned into Parquet now and then.

A recorder holds a lock on its journal. A killed recorder loses at most the sample it was writing:
the next recorder finds the journal without a lock and adds it to the tree.
"""

from __future__ import annotations

import fcntl
import io
import os
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dltools.errors import InputOutputError
from dltools.observations.recording.directory import RecordingDirectory, new_stem
from dltools.observations.recording.journal_file import journal_groups
from dltools.observations.schema import arrow_schema

if TYPE_CHECKING:
    import pyarrow as pa

_MOST_BYTES = 64 << 20
_SYNC_S = 10.0


class Journal:
    """Records a stream of samples into a directory: a new file every `rotate_s` seconds or 64 MiB.

    `write` returns when the system has the sample. It raises `InputOutputError` for a full disk;
    the samples before are kept.
    """

    def __init__(self, directory: RecordingDirectory, rotate_s: float) -> None:
        """Nothing is written before the first sample."""
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
            _add(self._directory, self._path)
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
        try:
            with path.open("rb") as file:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                _add(directory, path)
                count += 1
        except (BlockingIOError, FileNotFoundError):
            continue
    return count


def _add(directory: RecordingDirectory, path: Path) -> None:
    import pyarrow as pa

    directory.add(journal_groups(path), path.stem)
    path.unlink(missing_ok=True)
    pa.default_memory_pool().release_unused()
