"""A directory of recordings: Parquet files under `date=YYYY-MM-DD/host=NAME/`, added for good.

DuckDB, Polars, pandas and Arrow read such a tree as it is. Files are made in `.staging/`, synced,
then renamed to where they belong, so that a file in the tree is always whole. `.staging/` also
holds the journals of recorders (samples as an Arrow stream, whole but for the last one), which are
no Parquet files yet.
"""

from __future__ import annotations

import fcntl
import os
import uuid
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from datetime import UTC, date, datetime
from pathlib import Path
from typing import IO, TYPE_CHECKING
from urllib.parse import quote

from dltools.errors import DataError, InputOutputError, OutputError
from dltools.observations.formats.parquet import FEWEST_ROWS, ParquetFile
from dltools.observations.formats.registry import read_table
from dltools.observations.table import concat, conform
from dltools.whole_files import staged_file, sync_folder

if TYPE_CHECKING:
    import pyarrow as pa

_STALE_S = 60


class RecordingDirectory:
    """A directory to which recordings are added, and from which they are read.

    Methods raise `OutputError` where the directory cannot be made, `InputOutputError` where the
    disk fails or is full. Neither harms what was recorded before.
    """

    def __init__(self, root: Path) -> None:
        self.root = root
        self.staging = root / ".staging"

    def prepare(self) -> None:
        """Make the directory, and remove what killed writers left half done."""
        try:
            self.staging.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise OutputError(f"cannot create {self.root}: {error.strerror}") from error
        for file in self.staging.glob("*.tmp"):
            _remove_if_abandoned(file)

    def files(self) -> list[Path]:
        """Return the files of the tree, by date, host and time."""
        return sorted(self.root.glob("date=*/host=*/*.parquet"))

    def add(self, tables: Iterable[pa.Table], stem: str) -> None:
        """Add rows as new files, one for each day and host, all of the name `stem`.

        Each table becomes row groups of its own; no more of them than one is held in memory. Adding
        the same rows under the same stem again changes nothing.
        """
        new: dict[Path, ParquetFile] = {}
        with ExitStack() as open_files:
            for table in tables:
                for day, host, rows in _parts(table):
                    path = self.folder(day, host) / f"{stem}.parquet"
                    if path not in new:
                        file = open_files.enter_context(self.new_file(path))
                        new[path] = open_files.enter_context(ParquetFile(file))
                    new[path].add(rows)

    def folder(self, day: date, host: str) -> Path:
        """Return the folder of a day's rows of a host."""
        return self.root / f"date={day.isoformat()}" / f"host={quote(host, safe='')}"

    @contextmanager
    def new_file(self, path: Path) -> Iterator[IO[bytes]]:
        """Open a file that appears in the tree, synced, when the block ends well, or not at all."""
        staged = self.staging / f"{path.stem}-{uuid.uuid4().hex[:8]}.tmp"
        try:
            with staged_file(staged, path) as file:
                fcntl.flock(file, fcntl.LOCK_EX)
                yield file
            sync_folder(path.parent)
        except OSError as error:
            raise InputOutputError(f"cannot write {path}: {error.strerror or error}") from error

    def read(self, since: datetime | None = None, kinds: list[str] | None = None) -> pa.Table:
        """Return all rows, or those of some kinds since a time, sorted by time.

        The rows of journals are included. A file that its owner removes meanwhile has none. Raises
        `DataError` for a file that is no recording.
        """
        tables = self._tables(since)
        if since is not None:
            tables = [_rows_since(table, since, kinds) for table in tables]
        return concat(tables)

    def _tables(self, since: datetime | None) -> list[pa.Table]:
        """Return the rows of journals and of files changed since a time, each row once."""
        tables, stems = [], set()
        for journal in sorted(self.staging.glob("*.arrows")):
            rows = journal_rows(journal)
            if rows.num_rows or journal.exists():  # or else it has just become a file
                tables.append(rows)
                stems.add(journal.stem)
        for file in self.files():
            if file.stem in stems:  # being added, or just added: its journal had the same rows
                continue
            with suppress(FileNotFoundError):
                if since is None or file.stat().st_mtime >= since.timestamp():
                    tables.append(_read(file))
        return tables


def new_stem(now: datetime | None = None) -> str:
    """Return a new unique name that sorts by time."""
    moment = now or datetime.now(UTC)
    return f"{moment:%Y%m%dT%H%M%S.%fZ}-{uuid.uuid4().hex[:8]}"


def _remove_if_abandoned(staged: Path) -> None:
    """Remove a staged file whose writer, which locked it, is gone."""
    with suppress(BlockingIOError, FileNotFoundError, PermissionError), staged.open("rb") as file:
        is_old = datetime.now().timestamp() - os.fstat(file.fileno()).st_mtime > _STALE_S
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if is_old:  # a new one's writer may not have locked it yet
            staged.unlink(missing_ok=True)


def _read(file: Path) -> pa.Table:
    try:
        with file.open("rb") as stream:
            return read_table(stream, str(file))
    except IsADirectoryError as error:
        raise DataError(f"{file}: is a directory") from error


def _rows_since(table: pa.Table, since: datetime, kinds: list[str] | None) -> pa.Table:
    import pyarrow as pa
    import pyarrow.compute as pc

    mask = pc.greater_equal(table.column("time"), pa.scalar(since, pa.timestamp("us", tz="UTC")))
    if kinds is not None:
        of_kind = pc.is_in(table.column("kind").cast(pa.string()), pa.array(kinds))
        mask = pc.and_(mask, of_kind)
    return table.filter(mask)


def _parts(table: pa.Table) -> Iterator[tuple[date, str, pa.Table]]:
    """Yield the rows of each day and host."""
    import pyarrow as pa
    import pyarrow.compute as pc

    days = table.column("time").cast(pa.date32())
    hosts = table.column("host").cast(pa.string())
    for day in sorted(set(days.unique().to_pylist())):
        for host in sorted(set(hosts.unique().to_pylist())):
            rows = table.filter(pc.and_(pc.equal(days, day), pc.equal(hosts, host)))
            if rows.num_rows:
                yield day, host, rows


def journal_rows(path: Path) -> pa.Table:
    """Return the whole samples of a journal, sorted by time.

    The sample that is being written is left out, and so is all that follows damaged bytes. A
    journal that is gone has no rows.
    """
    return concat(_journal_samples(path))


def journal_groups(path: Path) -> Iterator[pa.Table]:
    """Yield a journal's whole samples some 50,000 rows at a time, each table sorted by time."""
    waiting: list[pa.Table] = []
    for sample in _journal_samples(path):
        waiting.append(sample)
        if sum(table.num_rows for table in waiting) >= FEWEST_ROWS:
            yield concat(waiting)
            waiting = []
    if waiting:
        yield concat(waiting)


def _journal_samples(path: Path) -> Iterator[pa.Table]:
    """Yield the whole samples of a journal, up to its end, whole or torn."""
    import pyarrow as pa

    ends = (pa.ArrowException, StopIteration, EOFError, OSError, DataError)
    with suppress(*ends), path.open("rb") as file:
        reader = pa.ipc.open_stream(file)
        while True:
            batch = reader.read_next_batch()
            batch.validate(full=True)
            yield conform(pa.Table.from_batches([batch]), str(path))
