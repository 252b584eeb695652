"""A directory of recordings: Parquet files under `date=YYYY-MM-DD/host=NAME/`, added for good.

DuckDB, Polars, pandas and Arrow read such a tree as it is. Files are made in `.staging/`, synced,
then renamed to where they belong, so that a file in the tree is always whole. What a recorder has
not yet turned into Parquet stands in `.staging/` too, see `dltools.observations.recording.journal`.
"""

from __future__ import annotations

import fcntl
import os
import uuid
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from datetime import UTC, date, datetime
from pathlib import Path
from typing import IO, TYPE_CHECKING
from urllib.parse import quote

from dltools.errors import DataError, InputOutputError, OutputError
from dltools.observations.formats.parquet import ParquetFile
from dltools.observations.formats.reading import read_table
from dltools.observations.recording.journal_file import journal_rows
from dltools.observations.schema import arrow_schema
from dltools.observations.table import concat

if TYPE_CHECKING:
    import pyarrow as pa

_STALE_S = 60


class RecordingDirectory:
    """Methods raise `OutputError` where the directory cannot be made, `InputOutputError` where the
    disk fails or is full; what stood there before is never harmed."""

    def __init__(self, root: Path) -> None:
        """Nothing is made yet."""
        self.root = root
        self.staging = root / ".staging"

    def prepare(self) -> None:
        """Make the directory, and remove what killed writers left half done."""
        try:
            self.staging.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise OutputError(f"cannot create {self.root}: {error.strerror}") from error
        for file in self.staging.glob("*.tmp"):
            with _held(file) as free:
                if free:
                    file.unlink(missing_ok=True)

    def files(self) -> list[Path]:
        """Return the files of the tree, by date, host and time."""
        return sorted(self.root.glob("date=*/host=*/*.parquet"))

    def add(self, table: pa.Table, stem: str) -> list[Path]:
        """Add the rows as new files, one a date and host, all of the name `stem`.

        Adding the same rows under the same stem again changes nothing.
        """
        paths = []
        for (day, host), part in _parts(table):
            paths.append(self.partition(day, host) / f"{stem}.parquet")
            with self.whole(paths[-1]) as file, ParquetFile(file) as out:
                out.add(part)
        return paths

    def add_groups(self, tables: Iterable[pa.Table], stem: str) -> list[Path]:
        """Add the rows of several tables of a few days and hosts like `add`, each a row group or
        more of its own: no more of them than one is held in memory."""
        outs: dict[Path, ParquetFile] = {}
        with ExitStack() as open_files:
            for table in tables:
                for (day, host), part in _parts(table):
                    path = self.partition(day, host) / f"{stem}.parquet"
                    if path not in outs:
                        file = open_files.enter_context(self.whole(path))
                        outs[path] = open_files.enter_context(ParquetFile(file))
                    outs[path].add(part)
        return list(outs)

    def partition(self, day: date, host: str) -> Path:
        """Return the folder of a day's rows of a host."""
        return self.root / f"date={day.isoformat()}" / f"host={quote(host, safe='')}"

    @contextmanager
    def whole(self, path: Path) -> Iterator[IO[bytes]]:
        """Open a file that appears in the tree, synced, when the block ends well, or not at all."""
        staged = self.staging / f"{path.stem}-{uuid.uuid4().hex[:8]}.tmp"
        try:
            with staged.open("xb") as file:
                fcntl.flock(file, fcntl.LOCK_EX)
                yield file
                file.flush()
                os.fsync(file.fileno())
                path.parent.mkdir(parents=True, exist_ok=True)
                staged.rename(path)
                sync_folder(path.parent)
        except OSError as error:
            raise InputOutputError(f"cannot write {path}: {error.strerror or error}") from error
        finally:
            staged.unlink(missing_ok=True)

    def read(self, since: datetime | None = None, kinds: list[str] | None = None) -> pa.Table:
        """Return all rows, or those of some kinds since a time, sorted by time.

        What recorders have not yet turned into files is included. Raises `DataError` for a file
        that is none of ours.
        """
        tables, known = [], set()
        for journal in sorted(self.staging.glob("*.arrows")):
            rows = journal_rows(journal)
            if rows.num_rows or journal.exists():  # or else it has just become a file
                tables.append(rows)
                known.add(journal.stem)
        for file in self.files():
            if file.stem in known:  # being added, or just added: its journal had the same rows
                continue
            if since is None or file.stat().st_mtime >= since.timestamp():
                tables.append(_read(file))
        if since is not None:
            tables = [_since(table, since, kinds) for table in tables]
        return concat(tables)


def new_stem(now: datetime | None = None) -> str:
    """Return a new unique name that sorts by time."""
    moment = now or datetime.now(UTC)
    return f"{moment:%Y%m%dT%H%M%S.%fZ}-{uuid.uuid4().hex[:8]}"


def sync_folder(folder: Path) -> None:
    """Make the names in a folder durable."""
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


@contextmanager
def _held(file: Path) -> Iterator[bool]:
    """Tell whether a staged file's writer is gone: it held a lock on it."""
    try:
        with file.open("rb") as handle:
            old = datetime.now().timestamp() - os.fstat(handle.fileno()).st_mtime > _STALE_S
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            yield old
    except (BlockingIOError, FileNotFoundError):
        yield False


def _read(file: Path) -> pa.Table:
    try:
        with file.open("rb") as stream:
            return read_table(stream, str(file))
    except FileNotFoundError:  # compacted meanwhile
        return arrow_schema().empty_table()
    except IsADirectoryError as error:
        raise DataError(f"{file}: is a directory") from error


def _since(table: pa.Table, since: datetime, kinds: list[str] | None) -> pa.Table:
    import pyarrow as pa
    import pyarrow.compute as pc

    wanted = pc.greater_equal(table.column("time"), pa.scalar(since, pa.timestamp("us", tz="UTC")))
    if kinds is not None:
        known = pc.is_in(table.column("kind").cast(pa.string()), pa.array(kinds))
        wanted = pc.and_(wanted, known)
    return table.filter(wanted)


def _parts(table: pa.Table) -> Iterator[tuple[tuple[date, str], pa.Table]]:
    """Yield the rows of each day and host."""
    import pyarrow as pa
    import pyarrow.compute as pc

    days = table.column("time").cast(pa.date32())
    hosts = table.column("host").cast(pa.string())
    for day in sorted(set(days.unique().to_pylist())):
        for host in sorted(set(hosts.unique().to_pylist())):
            part = table.filter(pc.and_(pc.equal(days, day), pc.equal(hosts, host)))
            if part.num_rows:
                yield (day, host), part
