"""Where dltools keeps its state, and the records in it that only their owner can change.

One directory for each user, whatever starts the tools: a shell, cron and systemd have different
environments, and a run that one of them starts must find what another run has changed. So root's
directory depends only on the option.

Whoever can write to the state decides what dl-apply, as root, does to containers. So no link is
followed, and nothing of another user is trusted, except of root.
"""

from __future__ import annotations

import os
import stat
import uuid
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from dltools.errors import AccessError, ConfigError, DataError, OutputError
from dltools.notation.resources import format_bytes
from dltools.whole_files import STAGED, home_directory, named

_LONGEST = 16 << 20
_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_GROWING = os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


SYSTEM = Path("/var/lib/dltools")
"""Root's directory; systemd's StateDirectory=dltools is the same."""


def state_directory(asked: Path | None = None) -> Path:
    """Return where state is kept: the directory asked for, else $XDG_STATE_HOME/dltools, else
    /var/lib/dltools for root and ~/.local/state/dltools for other users. Raises `ConfigError` where
    there is no home."""
    if asked is not None:
        return asked.absolute()
    base = os.environ.get("XDG_STATE_HOME") or ""
    if Path(base).is_absolute():
        return Path(base) / "dltools"
    path = SYSTEM if os.geteuid() == 0 else _in_home()
    if path is None:
        raise ConfigError("no home directory is known; set HOME, or name a --state-dir")
    return path


def state_directories(asked: Path | None = None) -> list[Path]:
    """Return every directory where state of this machine may be, the one in use first."""
    with suppress(ConfigError):
        asked = state_directory(asked)
    return list(dict.fromkeys(filter(None, (asked, SYSTEM, _in_home()))))


def _in_home() -> Path | None:
    home = home_directory()
    return home and home / ".local" / "state" / "dltools"


def prepare(home: Path) -> None:
    """Make a state directory, if need be, that its owner alone can enter.

    Raises `AccessError` for one that cannot be trusted, and `OutputError`.
    """
    with _trusted(home, is_made=True):
        pass


def check(home: Path) -> None:
    """Raise `AccessError` for a state directory that cannot be trusted; it need not be there."""
    with _trusted(home):
        pass


class StateFolder:
    """The records of one folder of a state directory, which are files whose names end with .json.

    Every method raises `AccessError` where the folder, its parent or the record cannot be trusted.
    """

    def __init__(self, path: Path) -> None:
        """The folder is made with the first record."""
        self.path = path

    def names(self) -> list[str]:
        """Return the names of all records, in order."""
        with self._opened() as folder:
            names = _names(folder)
        return sorted(name for name in names if name.endswith(".json"))

    def read(self, name: str) -> bytes | None:
        """Return a record, None if it is not there. Raises `DataError` where it is too long."""
        with self._opened() as folder:
            if folder is None:
                return None
            try:
                handle = os.open(name, _READ, dir_fd=folder)
            except FileNotFoundError:
                return None
            except OSError as error:
                raise AccessError(f"{self.path / name}: {_why(self.path / name, error)}") from error
            try:
                _check(handle, self.path / name, stat.S_ISREG)
                with open(handle, "rb", closefd=False) as file:
                    data = file.read(_LONGEST + 1)
            finally:
                os.close(handle)
        if len(data) > _LONGEST:
            raise DataError(f"{self.path / name}: more than {format_bytes(_LONGEST)}: no state")
        return data

    def write(self, name: str, data: bytes) -> None:
        """Write a record whole, or not at all: when this returns, it is on disk. Raises
        `OutputError` where it cannot be created, and OSError, which names it."""
        staged = f".{name}.{uuid.uuid4().hex[:8]}"
        with self._opened(is_made=True) as folder:
            handle = self._create(staged, _NEW, folder, name)
            try:
                with named(handle, self.path / name) as file:
                    file.write(data)
                    file.flush()
                    os.fsync(handle)
                    os.replace(staged, name, src_dir_fd=folder, dst_dir_fd=folder)
                if folder is not None:
                    os.fsync(folder)  # the name, too
            except BaseException:
                with suppress(FileNotFoundError):
                    os.unlink(staged, dir_fd=folder)
                raise

    def append(self, name: str, lines: bytes) -> int:
        """Append lines to a file by one write, and return its size then. Half a line that a killed
        run has left there is ended first. Raises `OutputError` and OSError."""
        with self._opened(is_made=True) as folder:
            handle = self._create(name, _GROWING, folder, name)
            try:
                _check(handle, self.path / name, stat.S_ISREG)
                size = os.fstat(handle).st_size
                is_cut = size > 0 and os.pread(handle, 1, size - 1) != b"\n"
                return size + os.write(handle, b"\n" * is_cut + lines)
            finally:
                os.close(handle)

    def _create(self, name: str, flags: int, folder: int | None, record: str) -> int:
        try:
            return os.open(name, flags, 0o600, dir_fd=folder)
        except OSError as error:
            raise OutputError(f"cannot create {self.path / record}: {error.strerror}") from error

    def rename(self, name: str, new: str) -> None:
        """Give a file another name, which may be that of one that is no longer needed."""
        with self._opened() as folder:
            os.replace(name, new, src_dir_fd=folder, dst_dir_fd=folder)

    def remove(self, name: str) -> None:
        """Remove a record, if it is there."""
        with self._opened() as folder, suppress(FileNotFoundError):
            if folder is not None:
                os.unlink(name, dir_fd=folder)

    def stamps(self, names: Collection[str]) -> dict[str, tuple[int, int]]:
        """Return what tells one version of a record from the next, for those of these records that
        are there."""
        stamps = {}
        with self._opened() as folder:
            for name in _names(folder):
                if name in names:
                    with suppress(FileNotFoundError):
                        status = os.stat(name, dir_fd=folder, follow_symlinks=False)
                        stamps[name] = status.st_ino, status.st_mtime_ns
        return stamps

    def remove_staged(self) -> None:
        """Remove what runs that were killed have begun to write. Nobody else may write now."""
        with self._opened() as folder:
            for name in _names(folder):
                if STAGED.fullmatch(name):
                    with suppress(FileNotFoundError):
                        os.unlink(name, dir_fd=folder)

    @contextmanager
    def _opened(self, *, is_made: bool = False) -> Iterator[int | None]:
        """Open the folder for the block, None if it is not there and is not to be made."""
        with _trusted(self.path.parent, is_made=is_made) as home:
            if home is None:
                yield None
                return
            with _trusted(self.path, home, is_made=is_made) as folder:
                yield folder


@contextmanager
def _trusted(
    path: Path, above: int | None = None, *, is_made: bool = False
) -> Iterator[int | None]:
    """Open a directory that can be trusted for the block, by its name in the one above or by its
    whole path; None if it is not there and is not to be made."""
    if is_made:
        _make(path, above)
    handle = _open(path, above)
    if handle is None:
        if is_made:
            raise OutputError(f"cannot create {path}: something else has its name")
        yield None
        return
    try:
        _check(handle, path, stat.S_ISDIR)
        if os.fstat(handle).st_mode & (stat.S_IWGRP | stat.S_IWOTH):
            raise AccessError(f"{path}: other users can write to it: chmod go-w {path}")
        yield handle
    finally:
        os.close(handle)


def _make(path: Path, above: int | None) -> None:
    try:
        if above is None:
            path.mkdir(0o700, parents=True)
        else:
            os.mkdir(path.name, 0o700, dir_fd=above)
    except FileExistsError:
        return
    except OSError as error:
        raise OutputError(f"cannot create {path}: {error.strerror}") from error
    if above is not None:
        os.fsync(above)


def _open(path: Path, above: int | None) -> int | None:
    try:
        return os.open(path if above is None else path.name, _DIRECTORY, dir_fd=above)
    except OSError as error:
        if isinstance(error, FileNotFoundError | NotADirectoryError) and not path.is_symlink():
            return None
        raise AccessError(f"{path}: {_why(path, error)}") from error


def _names(folder: int | None) -> list[str]:
    return [] if folder is None else os.listdir(folder)  # noqa: PTH208 (a descriptor, no path)


def _check(handle: int, path: Path, is_kind: Callable[[int], bool]) -> None:
    """Raise `AccessError` for what another user owns, and for devices, pipes and the like."""
    status = os.fstat(handle)
    if not is_kind(status.st_mode):
        raise AccessError(f"{path}: it is not a regular file: remove it")
    if status.st_uid not in (0, os.geteuid()):
        raise AccessError(
            f"{path}: it belongs to another user ({status.st_uid}), whose state is not trusted: "
            "remove it, or choose another --state-dir"
        )


def _why(path: Path, error: OSError) -> str:
    if path.is_symlink():
        return "a link, which is not followed to state: remove it, or name what it points to"
    return (error.strerror or str(error)).lower()
