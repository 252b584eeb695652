"""The samples of a recording or a stream, and the account of what has been read of it."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from dltools.cli.exits import print_message
from dltools.cli.merged_recordings import Merged
from dltools.cli.recordings import Hashed
from dltools.errors import DataError

if TYPE_CHECKING:
    import pyarrow as pa

    from dltools.observations.formats.registry import Recording


class Account:
    """What has been read so far: rows, the span of their times, and the hash of the bytes."""

    def __init__(self, sha256: str, source: Hashed | Merged | None = None) -> None:
        """Begin with the hash of what has been read before the first table; `source` knows the
        clocks of hosts."""
        self._sha256 = sha256
        self._source = source
        self._from = self._to = ""
        self.rows = 0

    def add(self, table: pa.Table, sha256: str) -> None:
        """Count a table in; `sha256` is the hash of all bytes up to its end."""
        from dltools.notation.times import format_time, from_micros

        self._sha256 = sha256
        if table.num_rows == 0:
            return
        self.rows += table.num_rows
        # As integers: for datetimes Arrow imports pandas where it is installed.
        times = table.column("time").cast("int64")
        first, last = (format_time(from_micros(times[i].as_py())) for i in (0, -1))
        self._from = min(self._from or first, first)
        self._to = max(self._to, last)

    def to_json(self) -> dict[str, Any]:
        """Return what a plan's `input` says."""
        found = {"rows": self.rows, "from": self._from, "to": self._to, "sha256": self._sha256}
        skews = dict(self._source.skews) if self._source is not None else {}
        return found | ({"skew_s": skews} if skews else {})


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
                print_message(warning)
            yield table
        for warning in warnings.of_targets():
            print_message(warning)

    return dataclasses.replace(recording, tables=tables())


@dataclass(frozen=True, slots=True)
class Sample:
    """A table of observations, and the hash of all bytes up to its end."""

    table: pa.Table
    sha256: str
    is_last: bool
    """Whether it is known to be the last one of a stream."""


class Samples:
    """The tables of a recording or stream.

    `is_stream`: each table is a sample of its own. `is_live`: it also comes as it is taken; then
    nothing is read ahead, and no sample is known to be the last.
    """

    def __init__(self, recording: Recording, source: Hashed | Merged) -> None:
        """`source` is where the recording is read from."""
        self.is_stream = recording.streaming
        self.is_live = recording.streaming and not source.is_file
        self.source = source
        self._tables = recording.tables

    @property
    def are_closed(self) -> bool:
        """Whether a live stream, read to its end, was closed: its writer has not died."""
        from dltools.observations.formats.arrow import END_MARK

        return self.source.tail == END_MARK

    def __iter__(self) -> Iterator[Sample]:
        """Yield the samples. Raises `DataError`."""
        if self.is_live or not self.is_stream:
            for table in self._tables:
                yield Sample(table, self.source.sha256, is_last=False)
        else:
            yield from self._read_ahead()

    def _read_ahead(self) -> Iterator[Sample]:
        """Yield each sample once it is known whether another one follows."""
        waiting: Sample | None = None
        cut: DataError | None = None
        try:
            for table in self._tables:
                if waiting is not None:
                    yield waiting
                waiting = Sample(table, self.source.sha256, is_last=False)
        except DataError as error:
            cut = error
        if waiting is not None:
            yield dataclasses.replace(waiting, is_last=True)
        if cut is not None:
            raise cut
