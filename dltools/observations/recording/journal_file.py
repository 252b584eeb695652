"""What a recorder's journal holds: samples as an Arrow stream, whole but for the last one."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from dltools.errors import DataError
from dltools.observations.conforming import conform
from dltools.observations.formats.parquet import FEWEST_ROWS
from dltools.observations.table import concat

if TYPE_CHECKING:
    import pyarrow as pa


def journal_rows(path: Path) -> pa.Table:
    """Return the whole samples of a journal, sorted by time.

    The sample that is being written is left out, and so is all that follows damaged bytes. A
    journal that is gone has no rows.
    """
    return concat(_samples(path))


def journal_groups(path: Path) -> Iterator[pa.Table]:
    """Yield a journal's whole samples some 50,000 rows at a time, each table sorted by time."""
    waiting: list[pa.Table] = []
    for sample in _samples(path):
        waiting.append(sample)
        if sum(table.num_rows for table in waiting) >= FEWEST_ROWS:
            yield concat(waiting)
            waiting = []
    if waiting:
        yield concat(waiting)


def _samples(path: Path) -> Iterator[pa.Table]:
    """Yield the whole samples of a journal, up to its end, whole or torn."""
    import pyarrow as pa

    ends = (pa.ArrowException, StopIteration, EOFError, OSError, DataError)
    with suppress(*ends), path.open("rb") as file:
        reader = pa.ipc.open_stream(file)
        while True:
            batch = reader.read_next_batch()
            batch.validate(full=True)
            yield conform(pa.Table.from_batches([batch]), str(path))
