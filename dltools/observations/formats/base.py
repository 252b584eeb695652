"""What a format of observations must offer: name, first bytes, writer and readers.

Each module beside this one makes a `Format`; the registry lists them.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, BinaryIO, Protocol

from dltools.errors import DataError, first_line

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass(frozen=True, slots=True)
class Format:
    """A way to write observations as bytes."""

    name: str
    """What --format calls it."""

    title: str
    """What messages call it."""

    suffixes: tuple[str, ...]
    """How names of its files end."""

    writer: Callable[[BinaryIO], Writer]
    """Returns a writer onto a stream, which writes nothing before the first sample."""

    readers: tuple[Reader, ...] = ()
    """What can read it back, () where nothing can."""

    is_binary: bool = False
    """Whether it is not for terminals."""

    holds_one_sample: bool = False
    """Whether a sample takes the place of the one before."""

    def __str__(self) -> str:
        """Return the name."""
        return self.name


class Writer(Protocol):
    """Writes samples one after the other; `close` completes the output."""

    def write(self, table: pa.Table) -> None:
        """Write one sample; when this returns, the system has it, or a later sample brings it."""

    def close(self) -> None:
        """Complete the output. The underlying stream stays open."""


@dataclass(frozen=True, slots=True)
class Reader:
    """Reads one kind of file or stream.

    `begins`: tells it by its first eight bytes. `tables`: yields the tables of a stream that has a
    name for messages, only the columns that are asked for where the format can; raises `DataError`.
    `is_stream`: each table is a sample that has just arrived; otherwise all tables together are a
    recording, in order of time.
    """

    begins: Callable[[bytes], bool]
    tables: Callable[[PrefixedStream, str, Collection[str] | None], Iterator[pa.Table]]
    is_stream: bool = False


class PrefixedStream(io.RawIOBase):
    """A stream of which the first bytes, `head`, have been read; they are read again first."""

    def __init__(self, head: bytes, rest: BinaryIO | io.RawIOBase) -> None:
        self._head = head
        self._rest = rest

    def readable(self) -> bool:
        """Tell that it can be read."""
        return True

    def read(self, size: int = -1) -> bytes:
        """Return that many bytes, fewer only at the end; all for -1."""
        if size < 0:
            head, self._head = self._head, b""
            return head + self._rest.read()
        head, self._head = self._head[:size], self._head[size:]
        return head if len(head) == size else head + read_exactly(self._rest, size - len(head))


def read_exactly(stream: BinaryIO | io.RawIOBase, size: int) -> bytes:
    """Return that many bytes of a stream that may give fewer at a time; fewer only at its end."""
    parts: list[bytes] = []
    while size > 0 and (part := stream.read(size)):
        parts.append(part)
        size -= len(part)
    return b"".join(parts)


class EncodingWriter:
    """Writes each sample at once, as the bytes that an encoder returns for it."""

    def __init__(self, out: BinaryIO, encode: Callable[[pa.Table], bytes]) -> None:
        self._out = out
        self._encode = encode

    def write(self, table: pa.Table) -> None:
        """Write one sample."""
        self._out.write(self._encode(table))
        self._out.flush()

    def close(self) -> None:
        """Complete the output."""
        self._out.flush()


@contextmanager
def decoding(name: str, what: str) -> Iterator[None]:
    """Turn whatever a decoder raises for damaged bytes into a `DataError` of one line."""
    try:
        yield
    except DataError:
        raise
    except Exception as error:  # Arrow alone has a dozen kinds for damaged input
        reason = first_line(error)
        raise DataError(f"{name}: damaged or truncated {what}: {reason}") from error
