"""The files that -o names: which are replaced, which are written in place, which are refused."""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from dltools.errors import OutputError
from dltools.files import atomic_file, named

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
    if _is_regular(place):
        with atomic_file(place) as file:
            yield file
    else:
        with written_in_place(path) as file:
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


def check(path: Path) -> None:
    """Raise `OutputError` where the file that -o names cannot be written."""
    place = _place(path)
    if _is_regular(place) and not place.parent.is_dir():
        raise OutputError(f"cannot create {path}: no directory {place.parent}")


def is_replaceable(path: Path) -> bool:
    """Tell whether -o names a regular file, or none yet, which can be replaced."""
    return _is_regular(_place(path))


def is_terminal(path: str) -> bool:
    """Tell whether -o names a terminal, such as /dev/tty."""
    try:
        if not stat.S_ISCHR(Path(path).stat().st_mode):
            return False
        handle = os.open(path, os.O_WRONLY | os.O_NOCTTY)
    except OSError:
        return False
    try:
        return os.isatty(handle)
    finally:
        os.close(handle)


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
