"""The files and pipes that the tools read, and observations in them."""

from __future__ import annotations

import os
import stat
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

import typer

from dltools.cli.exits import Exit, print_message
from dltools.errors import DataError, InputOutputError

if TYPE_CHECKING:
    from dltools.observations.formats.registry import Recording

_TAIL_BYTES = 8


def open_input(name: str) -> tuple[BinaryIO, str]:
    """Return the input stream and its name for messages; - is standard input.

    At a terminal, say what to pipe in, and exit with 2. Raises `InputOutputError`.
    """
    if name != "-":
        return _opened(name), name
    stream = _stdin()
    if stream.isatty():
        tool = Path(sys.argv[0]).name
        pipe = "dl-probe | dl-plan" + (" | dl-apply" if tool == "dl-apply" else "")
        said = f"standard input is a terminal: type {pipe}, or give a FILE; see {tool} --help"
        print_message(said)
        raise typer.Exit(Exit.USAGE)
    return stream, "standard input"


@contextmanager
def open_log(name: str) -> Iterator[BinaryIO]:
    """Open a saved log; - is standard input, also a terminal. Raises `InputOutputError`."""
    if name == "-":
        yield _stdin()
        return
    with _opened(name, "; --name selects containers") as stream:
        yield stream


def _stdin() -> BinaryIO:
    if sys.stdin is None:
        raise InputOutputError("standard input is closed: give a FILE or pipe something in")
    return sys.stdin.buffer


def _opened(name: str, advice: str = "") -> BinaryIO:
    try:
        return Path(name).open("rb")
    except IsADirectoryError as error:
        raise InputOutputError(f"{name}: is a directory") from error
    except FileNotFoundError as error:
        raise InputOutputError(f"{name}: no such file{advice}") from error


class Source:
    """A stream that recalls its end. `is_complete`: whether all could be read; else reading has
    raised an error."""

    is_complete = True

    def __init__(self, stream: BinaryIO) -> None:
        self._stream = stream
        self.tail = b""
        """The last eight bytes that were read."""

    def read(self, size: int = -1) -> bytes:
        """Read up to so many bytes, by default all."""
        data = self._stream.read(size)
        self.tail = (self.tail + data[-_TAIL_BYTES:])[-_TAIL_BYTES:]
        return data

    @property
    def is_file(self) -> bool:
        """Whether all that there will be is there already."""
        try:
            return stat.S_ISREG(os.fstat(self._stream.fileno()).st_mode)
        except OSError:
            return False


def open_recording(name: str) -> tuple[Recording, Source]:
    """Open observations: a file, standard input, or a directory of recordings."""
    from dltools.observations.formats.registry import Recording, read
    from dltools.observations.samples_by_host import SAMPLE_COLUMNS

    if name == "-" or not Path(name).is_dir():
        stream, shown = open_input(name)
        source = Source(stream)
        return read(source, shown, SAMPLE_COLUMNS), source  # type: ignore[arg-type]
    from dltools.observations.recording.directory import RecordingDirectory

    table = RecordingDirectory(Path(name)).read()
    if table.num_rows == 0:
        raise DataError(f"{name}: a directory without recordings")
    return Recording(False, iter([table])), Source(BytesIO())
