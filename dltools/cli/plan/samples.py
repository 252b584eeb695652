"""The samples of a recording or a stream, and the account of what has been read of it."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from dltools.cli.exits import complain
from dltools.cli.recordings import Hashed
from dltools.errors import DataError

if TYPE_CHECKING:
    import pyarrow as pa

    from dltools.observations.formats.reading import Recording


class Account:
    """What has been read so far: rows, the span of their times, and the hash of the bytes."""

    def __init__(self, sha256: str) -> None:
        """Begin with the hash of what has been read before the first table."""
        self._sha256 = sha256
        self._from = self._to = ""
        self.rows = 0

    def add(self, table: pa.Table, sha256: str) -> None:
        """Count a table in; `sha256` is the hash of all bytes up to its end."""
        from dltools.notation.times import format_time, from_micros

        self._sha256 = sha256
        if table.num_rows == 0:
            return
        self.rows += table.num_rows
        # As integers: Arrow imports pandas, where there is one, for a time.
        times = table.column("time").cast("int64")
        first, last = (format_time(from_micros(times[i].as_py())) for i in (0, -1))
        self._from = min(self._from or first, first)
        self._to = max(self._to, last)

    def to_json(self) -> dict[str, Any]:
        """Return what a plan's `input` says."""
        return {"rows": self.rows, "from": self._from, "to": self._to,
                "sha256": self._sha256}  # fmt: skip


def with_warnings(recording: Recording, patterns: list[str]) -> Recording:
    """Return a recording that warns, while it is read, of what is probably a mistake in it and
    in the targets."""
    from dltools.observations.input_warnings import InputWarnings

    warnings = InputWarnings(patterns)

    def tables() -> Iterator[pa.Table]:
        for table in recording.tables:
            found = warnings.of_labels(table) + warnings.of_sizes(table)
            if recording.streaming:
                found += warnings.of_targets(" so far")
            for warning in found:
                complain(warning)
            yield table
        for warning in warnings.of_targets():
            complain(warning)

    return dataclasses.replace(recording, tables=tables())


class Samples:
    """The tables of a recording, each with the hash of the bytes up to its end, and whether it is
    the last of a stream.

    `streaming` tells that each table is a sample of its own, `live` that it comes as it is taken:
    then nothing is read ahead, and none is known to be the last.
    """

    def __init__(self, recording: Recording, source: Hashed) -> None:
        """`source` is where the recording is read from."""
        self.streaming = recording.streaming
        self.live = recording.streaming and not source.is_file
        self.source = source
        self._tables = recording.tables

    def __iter__(self) -> Iterator[tuple[pa.Table, str, bool]]:
        """Yield tables, hashes, and whether it is the last. Raises `DataError`."""
        if self.live or not self.streaming:
            for table in self._tables:
                yield table, self.source.sha256, False
            return
        held: tuple[pa.Table, str] | None = None
        cut: DataError | None = None
        try:
            for table in self._tables:
                if held is not None:
                    yield *held, False
                held = table, self.source.sha256
        except DataError as error:
            cut = error
        if held is not None:
            yield *held, True
        if cut is not None:
            raise cut
