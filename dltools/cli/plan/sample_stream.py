"""The samples that dl-plan reads: of one recording or stream, or of several, merged by time."""

from __future__ import annotations

import dataclasses
import os
import queue
import stat
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dltools.cli.exits import print_message
from dltools.cli.input_streams import Source, open_recording
from dltools.errors import DltoolsError
from dltools.notation.times import format_time, from_micros
from dltools.observations.formats.arrow import END_MARK
from dltools.observations.input_warnings import InputWarnings
from dltools.observations.samples_by_host import SAMPLE_COLUMNS
from dltools.threads import in_background

if TYPE_CHECKING:
    import pyarrow as pa

    from dltools.observations.formats.registry import Recording


MOST_AHEAD = 64
"""How many tables inputs may be ahead of the plans: beyond that, they wait (ours)."""

WAIT_S = 1.0
"""How long a sample of one input waits for those of the others (ours)."""


class Account:
    """What has been read so far: rows, and the span of their times."""

    def __init__(self) -> None:
        """Nothing has been read."""
        self._from = self._to = ""
        self.rows = 0

    def add(self, table: pa.Table) -> None:
        """Count a table in."""
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
        return {"rows": self.rows, "from": self._from, "to": self._to}


def with_warnings(recording: Recording, patterns: list[str]) -> Recording:
    """Return a recording that warns, while it is read, of what is probably a mistake in it and
    in the targets."""
    warnings = InputWarnings(patterns)

    def tables() -> Iterator[pa.Table]:
        for table in recording.tables:
            texts = warnings.of_labels(table) + warnings.of_sizes(table)
            if recording.streaming:
                texts += warnings.of_targets(" so far")
            for warning in texts:
                print_message(warning)
            yield table
        for warning in warnings.of_targets():
            print_message(warning)

    return dataclasses.replace(recording, tables=tables())


class Samples:
    """The `tables` of a recording or stream.

    `is_stream`: each table is a sample of its own. `is_live`: samples arrive as they are taken.
    """

    def __init__(self, recording: Recording, source: Source | Merged) -> None:
        """`source` is where the recording is read from."""
        self.tables = recording.tables
        self.is_stream = recording.streaming
        self.is_live = recording.streaming and not source.is_file
        self._source = source

    @property
    def are_closed(self) -> bool:
        """Whether a stream, read to its end, was closed: its writer has not died."""
        return self.is_stream and (not self.is_live or self._source.tail == END_MARK)


class Merged:
    """Several inputs as one. `is_complete` tells whether all could be read to their ends."""

    def __init__(self, names: Sequence[str]) -> None:
        """Nothing is opened yet: a FIFO waits for its writer."""
        self.is_file = all(_is_on_disk(name) for name in names)
        self.is_complete = True
        self._names = names
        self._sources: dict[str, Source] = {}
        self._streamed: set[str] = set()

    @property
    def tail(self) -> bytes:
        """The last eight bytes of each stream, b"" where they differ: some writer has died."""
        tails = {self._sources[name].tail for name in self._streamed}
        return tails.pop() if len(tails) == 1 else b""

    def recording(self) -> Recording:
        """Return the rows of all inputs: of files as one recording, else as a stream of samples.
        Raises the errors of `open_recording`."""
        from dltools.observations.formats.registry import Recording
        from dltools.observations.table import concat

        if not self.is_file:
            return Recording(True, self._live())
        tables = [table for name in self._names for table in self._tables(name)]
        return Recording(False, iter([concat(tables)]))

    def _tables(self, name: str) -> Iterator[pa.Table]:
        recording, self._sources[name] = open_recording(name)
        if recording.streaming:
            self._streamed.add(name)
        for table in recording.tables:
            yield table.select(list(SAMPLE_COLUMNS))

    def _live(self) -> Iterator[pa.Table]:
        """Yield what has come from all inputs, a table for each time that all have sent something,
        or a second has passed."""
        from dltools.observations.table import concat

        came: queue.Queue[tuple[str, pa.Table | DltoolsError | None]] = queue.Queue(MOST_AHEAD)
        for name in self._names:
            in_background(self._read, name, came)
        open_ = set(self._names)
        while open_:
            tables: list[pa.Table] = []
            waited_for = set(open_)
            until: float | None = None
            while waited_for:
                try:
                    wait_s = None if until is None else max(0.0, until - time.monotonic())
                    name, item = came.get(timeout=wait_s)
                except queue.Empty:
                    break
                waited_for.discard(name)
                if isinstance(item, DltoolsError):
                    self.is_complete = False
                    print_message(f"{item}; the plans continue without it")
                if item is None or isinstance(item, DltoolsError):
                    open_.discard(name)
                    continue
                until = until or time.monotonic() + WAIT_S
                tables.append(item)
            if tables:
                yield concat(tables)

    def _read(self, name: str, came: queue.Queue[Any]) -> None:
        try:
            for table in self._tables(name):
                came.put((name, table))
            came.put((name, None))
        except DltoolsError as error:
            came.put((name, error))
        except Exception as error:
            came.put((name, DltoolsError(f"{name}: {type(error).__name__}: {error}")))


def _is_on_disk(name: str) -> bool:
    """Tell whether all that there will be of an input is there already."""
    try:
        status = os.fstat(sys.stdin.fileno()) if name == "-" else Path(name).stat()
    except (OSError, ValueError, AttributeError):
        return True  # opening it says what is wrong
    return stat.S_ISREG(status.st_mode) or stat.S_ISDIR(status.st_mode)
