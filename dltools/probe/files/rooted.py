"""Opens files inside a container's file system from the host, so that no link leads out of it.

The kernel resolves a path with the container's root as its root (openat2 with RESOLVE_IN_ROOT, from
Linux 5.6 on). Only regular files are opened: a pipe would block, and a device may do anything.
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


class Root:
    """The root directory of a container, or any directory. Methods raise only `OSError`."""

    def __init__(self, path: str) -> None:
        """Open the directory."""
        self._handle = os.open(path, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)

    def close(self) -> None:
        """Close the directory."""
        os.close(self._handle)

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
        encoded = os.fsencode(path)
        if b"\0" in encoded:
            raise OSError(errno.EINVAL, os.strerror(errno.EINVAL), path)
        how = struct.pack("QQQ", flags, 0, _RESOLVE_IN_ROOT | _RESOLVE_NO_MAGICLINKS)
        handle: int = _libc.syscall(
            ctypes.c_long(_OPENAT2),
            ctypes.c_int(self._handle),
            ctypes.c_char_p(encoded),
            ctypes.c_char_p(how),
            ctypes.c_size_t(len(how)),
        )
        if handle < 0:
            code = ctypes.get_errno()
            raise OSError(code, os.strerror(code), path)
        return handle


_libc = ctypes.CDLL(None, use_errno=True)
