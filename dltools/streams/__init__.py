"""Observations as bytes: reading any format, writing any format.

A single sample is a Parquet file; a stream of samples is an Arrow IPC stream with a batch a
sample, flushed, so that a killed recorder loses at most the batch in flight. Readers look at the
first bytes, never at a name. JSON Lines and CSV serve people and other tools: NaN and the
infinities are the strings "NaN", "Infinity" and "-Infinity" there.
"""

from dltools.streams.reading import Recording, concat, read, read_table
from dltools.streams.table import Row, conform, format_time, to_table
from dltools.streams.writing import Format, Writer, writer

__all__ = [
    "Format",
    "Recording",
    "Row",
    "Writer",
    "concat",
    "conform",
    "format_time",
    "read",
    "read_table",
    "to_table",
    "writer",
]
