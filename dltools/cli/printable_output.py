"""Data on standard output: unchanged in files and pipes, printable on a terminal."""

from __future__ import annotations

import codecs
import io
import sys
from typing import IO, TYPE_CHECKING

from dltools.text import printable_lines

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer as Buffer


def printable_on_terminal(text: str) -> str:
    """Return data for standard output; on a terminal, with control characters made printable."""
    return printable_lines(text) if sys.stdout.isatty() else text


def printable_file(file: IO[bytes]) -> IO[bytes]:
    """Return a file to write data to; one on a terminal makes control characters printable."""
    return _Printable(file) if file.isatty() else file  # type: ignore[return-value]


class _Printable(io.RawIOBase):
    """Text on its way to a terminal."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")

    def writable(self) -> bool:
        return True

    def write(self, data: Buffer, /) -> int:
        text = self._decoder.decode(bytes(data))
        self._file.write(printable_lines(text).encode())
        return memoryview(data).nbytes

    def flush(self) -> None:
        self._file.flush()
