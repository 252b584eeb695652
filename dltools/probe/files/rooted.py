"""Opens files inside a container's file system from the host, so that no link leads out of it.

The kernel resolves a path with the container's root as its root (openat2, RESOLVE_IN_ROOT). On a
kernel without this call, this module walks the components itself and resolves the links. Only
regular files are opened: a pipe would block, and a device may do anything.
"""

from __future__ import annotations

import ctypes
import errno
import os
import stat
import struct
from collections.abc import Iterator
from pathlib import PurePosixPath

_OPENAT2 = 437
_RESOLVE_IN_ROOT, _RESOLVE_NO_MAGICLINKS = 0x10, 0x02
_FLAGS = os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
_MOST_LINKS = 40


class Root:
    """The root directory of a container, or any directory. Methods raise only `OSError`."""

    def __init__(self, path: str) -> None:
        """Open the directory."""
        self._handle = os.open(path, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
        self._has_openat2 = True

    def close(self) -> None:
        """Close the directory."""
        if self._handle >= 0:
            os.close(self._handle)
            self._handle = -1

    def __enter__(self) -> Root:
        """Use as a context manager."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close."""
        self.close()

    def open(self, path: str) -> int:
        """Return a file descriptor of a regular file; anything else is a PermissionError."""
        handle = self._open(path, _FLAGS)
        try:
            if not stat.S_ISREG(os.fstat(handle).st_mode):
                raise PermissionError(errno.EPERM, "not a regular file", path)
        except BaseException:
            os.close(handle)
            raise
        return handle

    def files(self, path: str, *, depth: int, most: int) -> Iterator[str]:
        """Yield the paths of the regular files below a directory: no deeper than `depth`, and no
        more than `most` names. Links are not followed, other file systems not entered."""
        left = most
        folders = [(path, depth)]
        first: int | None = None
        while folders and left > 0:
            folder, deeper = folders.pop(0)
            try:
                handle = self._open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
            except OSError:
                continue
            try:
                device = os.fstat(handle).st_dev
                first = device if first is None else first
                if device != first:
                    continue
                with os.scandir(handle) as entries:
                    for entry in entries:
                        left -= 1
                        if left <= 0:
                            break
                        inner = str(PurePosixPath(folder) / entry.name)
                        if entry.is_file(follow_symlinks=False):
                            yield inner
                        elif deeper > 0 and entry.is_dir(follow_symlinks=False):
                            folders.append((inner, deeper - 1))
            except OSError:
                continue
            finally:
                os.close(handle)

    def _open(self, path: str, flags: int) -> int:
        if self._has_openat2:
            handle = _openat2(self._handle, path, flags)
            if handle >= 0:
                return handle
            code = -handle
            if code not in (errno.ENOSYS, errno.EPERM):
                raise OSError(code, os.strerror(code), path)
            if code == errno.ENOSYS:
                self._has_openat2 = False
        return self._walk(path, flags)

    def _walk(self, path: str, flags: int) -> int:
        """Open a path without openat2; the directory above the root is the root."""
        parts = _parts(path)
        done: list[int] = [os.dup(self._handle)]
        links = 0
        try:
            while parts:
                part = parts.pop(0)
                if part == "..":
                    _close_beyond(done, max(1, len(done) - 1))
                    continue
                found = os.open(part, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=done[-1])
                if not stat.S_ISLNK(os.fstat(found).st_mode):
                    done.append(found)
                    continue
                target = _target_of(found)
                links += 1
                if links > _MOST_LINKS:
                    raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), path)
                if target.startswith("/"):
                    _close_beyond(done, 1)
                parts = _parts(target) + parts
            return _reopened(done[-1], path, flags)
        finally:
            _close_beyond(done, 0)


def _parts(path: str) -> list[str]:
    return [part for part in path.split("/") if part not in ("", ".")]


def _close_beyond(handles: list[int], count: int) -> None:
    """Close the last handles, so that `count` are left."""
    while len(handles) > count:
        os.close(handles.pop())


def _target_of(link: int) -> str:
    """Return the target of a link, and close its handle."""
    try:
        return os.readlink("", dir_fd=link)
    finally:
        os.close(link)


def _reopened(handle: int, path: str, flags: int) -> int:
    """Open for reading the file of a handle that was opened as a path only (O_PATH).

    This cannot race: the descriptor is the file that the walk found.
    """
    mode = os.fstat(handle).st_mode
    if not (stat.S_ISREG(mode) or stat.S_ISDIR(mode)):
        raise PermissionError(errno.EPERM, "not a regular file", path)
    return os.open(f"/proc/self/fd/{handle}", flags)


_libc = ctypes.CDLL(None, use_errno=True)


def _openat2(folder: int, path: str, flags: int) -> int:
    """Return a file descriptor, or the negative error code."""
    how = struct.pack("QQQ", flags, 0, _RESOLVE_IN_ROOT | _RESOLVE_NO_MAGICLINKS)
    try:
        encoded = os.fsencode(path)
        found: int = _libc.syscall(
            ctypes.c_long(_OPENAT2),
            ctypes.c_int(folder),
            ctypes.c_char_p(encoded),
            ctypes.c_char_p(how),
            ctypes.c_size_t(len(how)),
        )
    except ValueError:
        return -errno.EINVAL
    if b"\0" in encoded:
        return -errno.EINVAL
    return found if found >= 0 else -(ctypes.get_errno() or errno.EIO)
