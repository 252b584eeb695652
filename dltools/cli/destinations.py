"""Where output goes: the files that -o names, standard output, and the console.

It decides which files are replaced, written in place or refused. Data on a terminal is made
printable; in files and pipes it is unchanged.
"""

from __future__ import annotations

import codecs
import io
import os
import re
import stat
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from dltools.errors import OutputError
from dltools.text import printable_lines
from dltools.whole_files import atomic_file, named

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer as Buffer
    from rich.console import Console, RenderableType

_DESCRIPTOR = re.compile(r"/proc/(\d+)/(?:task/\d+/)?fd/(\d+)")
_MOST_LINKS = 40


@contextmanager
def output_file(path: Path) -> Iterator[IO[bytes]]:
    """Open the file that -o names; symbolic links are followed.

    A regular file is replaced when the block ends without an error, else left alone. Anything else
    (a device, a FIFO, a descriptor such as /dev/stdout) is written in place.
    Raises `OutputError` where it cannot be created, also for a directory.
    """
    place = _place(path)
    opened = atomic_file(place) if _is_regular(place) else written_in_place(path)
    with opened as file:
        yield file


@contextmanager
def written_in_place(path: Path) -> Iterator[IO[bytes]]:
    """Open the file that -o names to write into it in place, as for a stream.

    A regular file is emptied first; a descriptor is not: its opener may append. Raises
    `OutputError`.
    """
    place = _place(path)
    try:
        match = _DESCRIPTOR.fullmatch(str(place))
        if match and int(match[1]) == os.getpid():
            handle = os.dup(int(match[2]))
        else:
            create = os.O_CREAT if _is_regular(place) else 0
            handle = os.open(place, os.O_WRONLY | os.O_TRUNC | os.O_NOCTTY | create, 0o666)
    except OSError as error:
        raise OutputError(f"cannot create {path}: {error.strerror}") from error
    with named(handle, path) as file:
        yield file


def check(path: Path | None, inputs: Iterable[str | Path] = ()) -> None:
    """Raise `OutputError` where the file that -o names, if any, cannot be written, or is one of the
    inputs; - is standard input."""
    if path is None:
        return
    place = _place(path)
    if _is_regular(place) and not place.parent.is_dir():
        raise OutputError(f"cannot create {path}: no directory {place.parent}")
    files = (Path("/dev/stdin" if file == "-" else file) for file in inputs)
    if place.is_file() and any(file.exists() and place.samefile(file) for file in files):
        raise OutputError(f"cannot create {path}: it is an input; name another file")


def is_replaceable(path: Path) -> bool:
    """Tell whether -o names a regular file, or none yet, which can be replaced."""
    return _is_regular(_place(path))


def _place(path: Path) -> Path:
    """Return the path with its links followed, except those of /proc, which are open files. Raises
    `OutputError` for a directory and for links in a circle."""
    place = path
    for _ in range(_MOST_LINKS):
        place = Path(os.path.realpath(place.parent)) / place.name
        if not place.is_symlink() or place.is_relative_to("/proc"):
            break
        place = place.parent / place.readlink()
    else:
        raise OutputError(f"cannot create {path}: too many levels of symbolic links")
    if place.is_dir():
        raise OutputError(f"cannot create {path}: it is a directory")
    return place


def _is_regular(place: Path) -> bool:
    if place.is_relative_to("/proc"):
        return False
    try:
        return stat.S_ISREG(place.stat().st_mode)
    except OSError:
        return True  # nothing is there yet


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


def make_console(file: Any = None) -> Any:
    """Return a rich console that obeys NO_COLOR, FORCE_COLOR and COLUMNS, and prints no escape
    sequence of a text."""
    from rich.console import Console

    class _Console(Console):
        def on_broken_pipe(self) -> None:
            raise BrokenPipeError  # rich itself would exit with 1

        def show_cursor(self, _: bool = True) -> bool:
            return False  # who is stopped or killed could not show it again

        def render_str(self, text: str, **how: Any) -> Any:
            return super().render_str(printable_lines(text), **how)

    if os.environ.get("COLUMNS") == "0":
        del os.environ["COLUMNS"]  # not known
    no_colour = bool(os.environ.get("NO_COLOR"))
    return _Console(
        file=file,
        no_color=no_colour,
        force_terminal=True if os.environ.get("FORCE_COLOR") and not no_colour else None,
        highlight=False,
        markup=False,
        emoji=False,
    )


@contextmanager
def redrawn(console: Console) -> Iterator[Callable[[RenderableType], None]]:
    """Yield what draws on a terminal, each time over the drawing before; the last one stays. Lines
    on standard error come above it."""
    from rich.live import Live

    size = console.size
    live = Live(
        console=console,
        auto_refresh=False,
        redirect_stdout=False,
        redirect_stderr=sys.stderr.isatty(),
        vertical_overflow="crop",
    )

    def draw(view: RenderableType) -> None:
        nonlocal size
        if console.size != size:
            console.clear()
        size = console.size
        live.update(view, refresh=True)

    with live:
        yield draw
