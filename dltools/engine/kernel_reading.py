"""Reading the small text files in which the kernel shows its counters and limits."""

from __future__ import annotations

import os
import resource
from collections.abc import Callable
from pathlib import Path

ROOT = Path("/")

_LARGEST = 1 << 16
_MOST_HANDLES = 65_536

Read = Callable[["Path | str"], str]
"""How a file is read: `read_text`, or the `read` of `HeldFiles`."""


def read_text(path: Path | str) -> str:
    """Return a file's text, "" if it cannot be read: a cgroup may vanish at any time.

    It makes the system calls itself: `Path.read_text` takes three times as long, and a sample reads
    15 files of each container.
    """
    try:
        handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return ""
    try:
        data = os.read(handle, _LARGEST)
        while data and (more := os.read(handle, _LARGEST)):
            data += more
        return data.decode()
    except (OSError, UnicodeDecodeError):
        return ""
    finally:
        os.close(handle)


def read_int(path: Path | str, read: Read = read_text) -> int | None:
    """Return the number in a one-number file, None if it holds none."""
    text = read(path).strip()
    return int(text) if text.lstrip("-").isdigit() else None


def read_flat(path: Path | str, read: Read = read_text) -> dict[str, int]:
    """Return a file of `key value` lines."""
    pairs = (line.partition(" ") for line in read(path).split("\n"))
    return {key: int(value) for key, _, value in pairs if value.lstrip("-").isdigit()}


def stat_of(pid: int | str, root: Path = ROOT) -> list[str]:
    """Return the words of a /proc/PID/stat from a process's or thread's state on, [] if it is not
    there. Its name before, which may hold anything, ends with the last bracket."""
    return read_text(f"{root}/proc/{pid}/stat").rpartition(")")[2].split()


def number_after(key: str, text: str) -> int | None:
    """Return the number between a key and the end of its line, None if there is none.

    Faster than `read_flat` for four of the forty lines of memory.stat.
    """
    at = text.find(key)
    if at < 0:
        return None
    number = text[at + len(key) : text.find("\n", at + len(key))]
    return int(number) if number.isdigit() else None


def pressure_seconds(path: Path | str, read: Read = read_text) -> float | None:
    """Return the total of a pressure file's `some` line, in seconds."""
    some, _, rest = read(path).partition("\n")[0].partition(" total=")
    return int(rest) / 1e6 if some.startswith("some ") and rest.isdigit() else None


class HeldFiles:
    """Files that stay open between reads after `hold_files` was called: opening a file takes five
    times as long as reading it (measured)."""

    _open_count = 0
    _most = 0

    def __init__(self) -> None:
        self._handles: dict[Path | str, int] = {}

    def __del__(self) -> None:
        """Close the files."""
        self.close()

    def read(self, path: Path | str) -> str:
        """Return a file's text, "" if it cannot be read."""
        handle = self._handles.get(path)
        if handle is None:
            if HeldFiles._open_count >= HeldFiles._most:
                return read_text(path)
            try:
                handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
            except FileNotFoundError:
                handle = -1  # a file that this kernel does not have
            except OSError:
                return ""
            self._handles[path] = handle
            HeldFiles._open_count += handle >= 0
        if handle < 0:
            return ""
        try:
            return os.pread(handle, _LARGEST, 0).decode()
        except (OSError, UnicodeDecodeError):
            return ""

    def close(self) -> None:
        """Close the files; a later read opens them again."""
        while self._handles:
            _, handle = self._handles.popitem()
            if handle >= 0:
                os.close(handle)
                HeldFiles._open_count -= 1


def hold_files() -> None:
    """Let every `HeldFiles` keep its files open from now on: half as many as the system allows,
    after raising the soft limit to the hard one."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    most = _MOST_HANDLES if hard == resource.RLIM_INFINITY else min(hard, _MOST_HANDLES)
    if soft != resource.RLIM_INFINITY and soft < most:
        try:
            resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))
            soft = most
        except (OSError, ValueError):
            pass
    HeldFiles._most = (most if soft == resource.RLIM_INFINITY else soft) // 2
