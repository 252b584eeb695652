"""Recording into a directory, across restarts of the recorder: no row is lost or recorded twice."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dltools.observations.recording.directory import RecordingDirectory, new_stem
from dltools.observations.recording.journal import Journal, recover_journals
from dltools.observations.schema import REPORTED

if TYPE_CHECKING:
    import pyarrow as pa

_REPORTED = [kind.value for kind in REPORTED]

_KEY = ("kind", "container_id", "time", "metric", "event", "step", "epoch", "value")
"""Columns that tell a reported row from any other."""


class Recorder:
    """Adds samples to a directory: a file for each, or with `rotate_s` one for that many seconds.

    A recorder that is started again, by cron for instance, reads the same log lines again. So it
    leaves out progress and events that were recorded in the last `since_s` seconds. Raises the
    errors of `RecordingDirectory`.
    """

    def __init__(self, root: Path, *, rotate_s: float | None, since_s: float) -> None:
        """Make the directory, and add the journals of killed recorders, `recovered` in number."""
        self._directory = RecordingDirectory(root)
        self._directory.prepare()
        self.recovered = recover_journals(self._directory)
        since = datetime.now(UTC) - timedelta(seconds=since_s)
        self._recorded = set(_keys(self._directory.read(since, _REPORTED)))
        self._journal = Journal(self._directory, rotate_s) if rotate_s is not None else None

    def write(self, table: pa.Table) -> None:
        """Record one sample."""
        new = self._new_rows(table)
        if self._journal is not None:
            self._journal.write(new)
        elif new.num_rows:
            self._directory.add([new], new_stem())

    def close(self) -> None:
        """Complete the recording."""
        if self._journal is not None:
            self._journal.close()

    def _new_rows(self, table: pa.Table) -> pa.Table:
        if not self._recorded:
            return table
        return table.filter([key not in self._recorded for key in _keys(table)])


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
