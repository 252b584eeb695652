"""What a recorder's journal holds: samples as an Arrow stream, whole but for the last one."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from dltools.errors import DataError
from dltools.observations.schema import arrow_schema
from dltools.observations.table import conform, sort

if TYPE_CHECKING:
    import pyarrow as pa

_GROUP_ROWS = 50_000


def journal_rows(path: Path) -> pa.Table:
    """Return the whole samples of a journal, sorted by time.

    The sample that is being written is left out, and so is all that follows damaged bytes. A
    journal that is gone has no rows.
    """
    import pyarrow as pa

    tables = [arrow_schema().empty_table(), *_samples(path)]
    return sort(pa.concat_tables(tables).unify_dictionaries())


def journal_groups(path: Path) -> Iterator[pa.Table]:
    """Yield a journal's whole samples some 50,000 rows at a time, each table sorted by time."""
    import pyarrow as pa

    waiting: list[pa.Table] = []
    for sample in _samples(path):
        waiting.append(sample)
        if sum(table.num_rows for table in waiting) >= _GROUP_ROWS:
            yield sort(pa.concat_tables(waiting).unify_dictionaries())
            waiting = []
    if waiting:
        yield sort(pa.concat_tables(waiting).unify_dictionaries())


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
