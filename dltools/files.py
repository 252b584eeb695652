"""Files that appear whole or not at all, and locks."""

from __future__ import annotations

import fcntl
import io
import os
import shlex
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, TYPE_CHECKING

from dltools.errors import OutputError, RetryError

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer as Buffer


@contextmanager
def atomic_file(path: Path) -> Iterator[IO[bytes]]:
    """Open a file that appears whole under its name when the block ends well, or not at all.

    Raises `OutputError` where it cannot be created.
    """
    try:
        handle, staged = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    except OSError as error:
        raise OutputError(f"cannot create {path}: {error.strerror}") from error
    try:
        with named(handle, path) as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        umask = os.umask(0)
        os.umask(umask)
        Path(staged).chmod(0o666 & ~umask)
        try:
            Path(staged).replace(path)
        except IsADirectoryError as error:
            raise OutputError(f"cannot create {path}: it is a directory") from error
    except BaseException:
        Path(staged).unlink(missing_ok=True)
        raise


def named(handle: int, path: Path) -> IO[bytes]:
    """Return a descriptor as a file whose errors name the path."""
    return io.BufferedWriter(_Named(handle, path))


class _Named(io.FileIO):
    def __init__(self, handle: int, path: Path) -> None:
        super().__init__(handle, "wb")
        self._path = str(path)

    def write(self, data: Buffer, /) -> int:
        try:
            return super().write(data)
        except OSError as error:
            raise OSError(error.errno, error.strerror, self._path) from error


@contextmanager
def locked(path: Path, who: str) -> Iterator[None]:
    """Hold an exclusive lock on a file, which is made if need be and says who holds it.

    Raises `RetryError` where another process holds it, naming that; the kernel frees it when a
    process dies.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise OutputError(f"cannot create {path}: {error.strerror}") from error
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            holder = os.pread(handle, _LONGEST_HOLDER, 0).decode(errors="replace").strip()
            raise RetryError(
                f"another {who} is running{holder and f', {holder}'} (it holds {path}); try again"
            ) from error
        with suppress(OSError):  # a full disk: the lock holds all the same
            os.ftruncate(handle, 0)
            os.pwrite(handle, _myself().encode(errors="replace")[:_LONGEST_HOLDER], 0)
        yield
    finally:
        os.close(handle)


_LONGEST_HOLDER = 200
"""Bytes that a lock says of who holds it."""


def _myself() -> str:
    """Return this process's number and command line."""
    name, *arguments = sys.argv
    return f"process {os.getpid()}: {shlex.join([Path(name).name, *arguments])}\n"
