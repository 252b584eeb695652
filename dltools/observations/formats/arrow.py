"""Observations as an Arrow stream, a batch for each sample."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import TYPE_CHECKING, Any, BinaryIO

from dltools.input_kinds import ARROW_MARK
from dltools.observations.formats.base import Format, PrefixedStream, Reader, decoding
from dltools.observations.schema import arrow_schema
from dltools.observations.table import conform

if TYPE_CHECKING:
    import pyarrow as pa

_STREAM = "Arrow stream"

END_MARK = ARROW_MARK + b"\0\0\0\0"
"""The last bytes of a stream whose writer has closed it."""


class ArrowWriter:
    """Writes each sample as a batch of an Arrow stream, at once."""

    def __init__(self, out: BinaryIO) -> None:
        self._out = out
        self._writer: Any = None

    def write(self, table: pa.Table) -> None:
        """Write one sample."""
        import pyarrow as pa

        if self._writer is None:
            self._writer = pa.ipc.new_stream(self._out, arrow_schema())
        if table.num_rows:
            self._writer.write_batch(table.combine_chunks().to_batches()[0])
        self._out.flush()

    def close(self) -> None:
        """Write the mark of the stream's end."""
        if self._writer is not None:
            self._writer.close()
            self._out.flush()


def _stream_tables(
    stream: PrefixedStream, name: str, _: Collection[str] | None
) -> Iterator[pa.Table]:
    """Yield each batch; streams joined by cat are read one after the other."""
    import pyarrow as pa

    while True:
        with decoding(name, _STREAM):
            reader = pa.ipc.open_stream(pa.PythonFile(stream, mode="r"))
            conform(reader.schema.empty_table(), name)
        yield from _batches(reader, name)
        if not (head := stream.read(4)):
            return
        stream = PrefixedStream(head, stream)


def _batches(reader: Any, name: str) -> Iterator[pa.Table]:
    import pyarrow as pa

    while True:
        with decoding(name, _STREAM):
            try:
                batch = reader.read_next_batch()
            except StopIteration:
                return
            batch.validate(full=True)  # hostile offsets would crash the process later
            table = conform(pa.Table.from_batches([batch]), name)
        yield table


FORMAT = Format(
    "arrow",
    "Arrow",
    (".arrow", ".arrows"),
    ArrowWriter,
    (Reader(lambda head: head.startswith(ARROW_MARK), _stream_tables, is_stream=True),),
    is_binary=True,
)
