"""Recording into a directory: what killed recorders left is added, nothing is recorded twice."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dltools.observations.recording.directory import RecordingDirectory, new_stem
from dltools.observations.recording.journal import Journal, recover_journals
from dltools.observations.schema import Kind

if TYPE_CHECKING:
    import pyarrow as pa

_SAID = [Kind.PROGRESS.value, Kind.EVENT.value]
"""Kinds that a recorder which starts again reads again."""

_KEY = ("kind", "container_id", "time", "metric", "event", "step", "epoch", "value")


class Recorder:
    """Adds samples to a directory: a file each, or with `rotate_s` a file for that many seconds.

    Progress and events of the last `since_s` seconds that stand there already are left out, so a
    recorder may start again, under cron say, and read the same log lines again. Raises the errors
    of `RecordingDirectory`.
    """

    def __init__(self, root: Path, *, rotate_s: float | None, since_s: float) -> None:
        """Make the directory; `recovered` says how many killed recorders' rows were added."""
        self._directory = RecordingDirectory(root)
        self._directory.prepare()
        self.recovered = recover_journals(self._directory)
        since = datetime.now(UTC) - timedelta(seconds=since_s)
        self._seen = set(_keys(self._directory.read(since, _SAID)))
        self._journal = Journal(self._directory, rotate_s) if rotate_s is not None else None

    def write(self, table: pa.Table) -> None:
        """Record one sample."""
        fresh = self._fresh(table)
        if self._journal is not None:
            self._journal.write(fresh)
        elif fresh.num_rows:
            self._directory.add([fresh], new_stem())

    def close(self) -> None:
        """Complete the recording."""
        if self._journal is not None:
            self._journal.close()

    def _fresh(self, table: pa.Table) -> pa.Table:
        if not self._seen:
            return table
        return table.filter([key not in self._seen for key in _keys(table)])


def _keys(table: pa.Table) -> list[tuple[Any, ...] | None]:
    """Return what tells each row of progress or an event from any other, None for other rows."""
    import pyarrow as pa

    columns = []
    for name in _KEY:
        column = table.column(name)
        if pa.types.is_dictionary(column.type):
            column = column.cast(pa.string())
        elif name in ("epoch", "value"):
            column = column.cast(pa.string())  # NaN equals NaN
        columns.append(column.to_pylist())
    return [key if key[0] in _SAID else None for key in zip(*columns, strict=True)]
