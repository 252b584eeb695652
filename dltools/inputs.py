"""Reading what may never end: every input is read up to a bound, and refused beyond it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Protocol

from dltools.errors import ConfigError, DataError, DltoolsError

SMALL = 64 << 20
"""Bytes of a file that people write: targets, parameters, workloads, lists."""

LONGEST_LINE = 64 << 20
"""Bytes of a line; the state in a plan takes some 5 KB a container."""

FIRST_LINE = 8 << 20
"""Bytes within which the first line of a text ends."""

_PIECE = 1 << 20
_BINARY = (b"PAR1", b"ARROW1", b"\xff\xff\xff\xff")


class Readable(Protocol):
    """What bytes can be read from."""

    def read(self, size: int = -1, /) -> bytes:
        """Return that many bytes at most, all for -1, none at the end."""


class Lines:
    """Cuts text that comes in pieces into lines, without their ends."""

    def __init__(self, name: str) -> None:
        """`name` stands for the input in messages."""
        self._name = name
        self._begun: list[bytes] = []
        self._size = 0

    def feed(self, data: bytes) -> list[bytes]:
        """Return the lines that are now whole. Raises `DataError` for one that is too long."""
        *done, rest = data.split(b"\n")
        if done:
            done[0] = b"".join((*self._begun, done[0]))
            self._begun, self._size = [], 0
        self._begun.append(rest)
        self._size += len(rest)
        if self._size > LONGEST_LINE:
            raise DataError(f"{self._name}: a line of more than {LONGEST_LINE >> 20} MiB: not ours")
        return done

    def end(self) -> list[bytes]:
        """Return the last line, if it had no end."""
        rest, self._begun = b"".join(self._begun), []
        return [rest] if rest else []


def lines(stream: Readable, name: str) -> Iterator[bytes]:
    """Yield the lines of a stream as they come. Raises `DataError` for one that is too long."""
    found = Lines(name)
    read = getattr(stream, "read1", stream.read)
    while data := read(_PIECE):
        yield from found.feed(data)
    yield from found.end()


def whole(stream: Readable, name: str) -> bytes:
    """Return all bytes of observations or tables.

    Raises `DataError` for text whose first line does not end.
    """
    data = stream.read(_PIECE)
    if not data.startswith(_BINARY):
        while b"\n" not in data and (more := stream.read(_PIECE)):
            data += more
            if len(data) > FIRST_LINE:
                raise DataError(f"{name}: {FIRST_LINE >> 20} MiB without a line: not ours")
    return data + stream.read()


def small(stream: Readable, name: str, kind: type[DltoolsError] = DataError) -> bytes:
    """Return all bytes of what a person wrote. Raises `kind` where that is too much."""
    data = stream.read(SMALL + 1)
    if len(data) > SMALL:
        raise kind(f"{name}: more than {SMALL >> 20} MiB: is it the right file?")
    return data


def text(file: Path, kind: type[DltoolsError] = ConfigError) -> str:
    """Return the text of a file that a person wrote. Raises `kind` where there is none."""
    try:
        with file.open("rb") as stream:
            return small(stream, str(file), kind).decode()
    except OSError as error:
        raise kind(f"{file}: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise kind(f"{file}: not text: {error}") from error
