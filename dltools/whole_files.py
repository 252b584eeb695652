"""Files that appear whole or not at all, and locks."""

from __future__ import annotations

import fcntl
import io
import os
import re
import shlex
import sys
import uuid
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import IO, TYPE_CHECKING

from dltools.errors import OutputError, RetryError

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer as Buffer


def home_directory() -> Path | None:
    """Return the user's home directory, None where neither HOME nor the list of users has one."""
    try:
        return Path.home()
    except RuntimeError:
        return None


@contextmanager
def atomic_file(path: Path, mode: int | None = None) -> Iterator[IO[bytes]]:
    """Open a file that appears whole under its name when the block ends well, or not at all. Its
    mode is that of a new file, or as given.

    Raises `OutputError` where it cannot be created.
    """
    staged = path.with_name(f".{path.name}.{uuid.uuid4().hex[:8]}")
    with ExitStack() as open_file:
        try:
            file = open_file.enter_context(staged_file(staged, path, mode))
        except OSError as error:
            raise OutputError(f"cannot create {path}: {error.strerror}") from error
        yield file


@contextmanager
def staged_file(staged: Path, path: Path, mode: int | None = None) -> Iterator[IO[bytes]]:
    """Open a new file under the name `staged`, private to its owner. When the block ends well, it
    is synced and takes the name `path`, whose folder is made; otherwise it is removed.

    Raises OSError; errors of writing name `path`. Raises `OutputError` where that is a directory.
    """
    handle = os.open(staged, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    try:
        with named(handle, path) as file:
            yield file
            file.flush()
            os.fsync(handle)
            os.fchmod(handle, 0o666 & ~_umask() if mode is None else mode)
            path.parent.mkdir(parents=True, exist_ok=True)
            staged.replace(path)
    except BaseException as error:
        staged.unlink(missing_ok=True)
        if isinstance(error, IsADirectoryError):
            raise OutputError(f"cannot create {path}: it is a directory") from error
        raise


STAGED = re.compile(r"\..+\.[0-9a-f]{8}")
"""Names of files that are being written, or that a killed run had begun to write."""


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


def sync_folder(folder: Path) -> None:
    """Make the names in a folder durable. Raises OSError."""
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


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
def locked(path: Path, holder: str, advice: str = "try again") -> Iterator[bool]:
    """Hold an exclusive lock on a file, which is made if need be, and tell whether the last process
    that held it was killed. The file says which process holds it; `holder` is the word for such a
    process, as "dl-apply".

    Raises `RetryError`, which names the process and gives the advice, where another one holds it.
    The kernel frees the lock when a process dies. Raises `OutputError` where the file cannot be
    made.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise OutputError(f"cannot create {path}: {error.strerror}") from error
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            other = os.pread(handle, _LONGEST_PROCESS, 0).decode(errors="replace").strip()
            raise RetryError(
                f"another {holder} is running{other and f', {other}'} (it holds {path}); {advice}"
            ) from error
        holder_died = os.fstat(handle).st_size > 0
        with suppress(OSError):  # a full disk: the lock is held all the same
            os.ftruncate(handle, 0)
            os.pwrite(handle, _this_process().encode(errors="replace")[:_LONGEST_PROCESS], 0)
        try:
            yield holder_died
        finally:
            with suppress(OSError):
                os.ftruncate(handle, 0)
    finally:
        os.close(handle)


_LONGEST_PROCESS = 200
"""Bytes that a lock's file says of the process that holds it."""


def _this_process() -> str:
    """Return this process's number and command line."""
    name, *arguments = sys.argv
    return f"process {os.getpid()}: {shlex.join([Path(name).name, *arguments])}\n"
