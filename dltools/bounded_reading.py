"""Reading inputs up to a bound: longer ones are refused, because an input may never end."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Protocol

from dltools.errors import ConfigError, DataError, DltoolsError
from dltools.input_kinds import ARROW_MARK, PARQUET_MARK
from dltools.notation.resources import format_bytes

SMALL = 64 << 20
"""Most bytes of a file that people write: targets, parameters, workloads, lists."""

LONGEST_LINE = 64 << 20
"""Most bytes of a line; the state in a plan takes some 5 KB for each container."""

FIRST_LINE = 8 << 20
"""Most bytes of the first line of a text."""

_PIECE = 1 << 20
_BINARY = (PARQUET_MARK, ARROW_MARK)


class Readable(Protocol):
    """An object from which bytes can be read."""

    def read(self, size: int = -1, /) -> bytes:
        """Return at most that many bytes, all for -1; none at the end."""


class LineSplitter:
    """Cuts bytes that come in pieces into lines, without their ends."""

    def __init__(self) -> None:
        self._begun: list[bytes] = []
        self.begun_bytes = 0
        """Bytes of the line that has begun and not ended."""

    def feed(self, data: bytes) -> list[bytes]:
        """Return the lines that are now whole."""
        *done, rest = data.split(b"\n")
        if done:
            done[0] = b"".join((*self._begun, done[0]))
            self._begun, self.begun_bytes = [], 0
        self._begun.append(rest)
        self.begun_bytes += len(rest)
        return done

    def end(self) -> list[bytes]:
        """Return the last line, if it has no end; none is begun after that."""
        rest, self._begun, self.begun_bytes = b"".join(self._begun), [], 0
        return [rest] if rest else []


class InputLines(LineSplitter):
    """Cuts an input into lines; `name` stands for it in messages."""

    def __init__(self, name: str) -> None:
        super().__init__()
        self._name = name

    def feed(self, data: bytes) -> list[bytes]:
        """Return the lines that are now whole. Raises `DataError` for one that is too long."""
        done = super().feed(data)
        if self.begun_bytes > LONGEST_LINE:
            longest = format_bytes(LONGEST_LINE)
            raise DataError(f"{self._name}: a line of more than {longest}: is it the right input?")
        return done


def read_lines(stream: Readable, name: str) -> Iterator[bytes]:
    """Yield the lines of a stream as they come. Raises `DataError` for one that is too long."""
    input_lines = InputLines(name)
    read = getattr(stream, "read1", stream.read)
    while data := read(_PIECE):
        yield from input_lines.feed(data)
    yield from input_lines.end()


def read_whole(stream: Readable, name: str) -> bytes:
    """Return all bytes of observations or tables.

    Raises `DataError` for text whose first line does not end.
    """
    data = stream.read(_PIECE)
    if not data.startswith(_BINARY):
        while b"\n" not in data and (more := stream.read(_PIECE)):
            data += more
            if len(data) > FIRST_LINE:
                raise DataError(
                    f"{name}: no line end in {format_bytes(FIRST_LINE)}: is it the right input?"
                )
    return data + stream.read()


def read_small(stream: Readable, name: str, kind: type[DltoolsError] = DataError) -> bytes:
    """Return all bytes of a file that a person wrote. Raises `kind` where they are too many."""
    data = stream.read(SMALL + 1)
    if len(data) > SMALL:
        raise kind(f"{name}: more than {format_bytes(SMALL)}: is it the right input?")
    return data


def read_text(file: Path, kind: type[DltoolsError] = ConfigError) -> str:
    """Return the text of a file that a person wrote. Raises `kind` where it cannot be read."""
    try:
        with file.open("rb") as stream:
            return read_small(stream, str(file), kind).decode()
    except OSError as error:
        raise kind(f"{file}: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise kind(f"{file}: not text: {error}") from error
