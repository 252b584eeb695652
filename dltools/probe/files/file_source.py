"""Reads progress from files in a container: files of well-known names, or those that a label names.

`inventory` asks for the source of each container. Files are read in place as they grow.
"""

from __future__ import annotations

import errno
import fnmatch
import os
import time
from collections.abc import Iterable, Sequence
from contextlib import closing, suppress
from datetime import UTC, datetime
from pathlib import Path

from dltools.engine.kernel_reading import read_text
from dltools.labels import FILES
from dltools.probe.files.readers import Reader, TextFile, Timed, Trackio, reader_of, reader_of_named
from dltools.probe.files.rooted import Root
from dltools.probe.progress.source import ProgressSource, Target, TimedPoint

_SEARCH_S = 30.0
"""Time between two searches for new files."""

_MOST_FILES = 64

_MOST_BYTES, _PIECE = 8 << 20, 512 << 10
"""Bytes of one file that one reading takes, and bytes that are read at once; the next reading takes
the rest."""

PATIENCE_S = 1.0
"""CPU seconds that reading the files of one container may take in a sample."""

_MOST_REMEMBERED = 20_000
_LONGEST_GAP = 120

_LAST_SECOND = 4e9
"""A number beyond this one (the year 2096) is no time."""


def file_source(target: Target) -> ProgressSource | None:
    """Return the source that reads a container's files; None if the label says so, or if the
    container's processes are not on this machine."""
    label = target.container.labels.get(FILES)
    is_refused = label is not None and label.strip() in ("", "none")
    if is_refused or not target.is_visible:
        return None
    paths = [path.strip() for path in label.split(",")][:_MOST_FILES] if label else None
    return FileSource(_root_of(target), paths, folders_of(target.container.pid))


def _root_of(target: Target) -> str:
    """Return the container's root directory as this process sees it."""
    return f"/proc/{target.container.pid}/root"


class FileSource(ProgressSource):
    """Reads the points in the files of one container. A file that is replaced is read again, but no
    point is returned twice."""

    def __init__(self, root: str, paths: Sequence[str] | None, folders: Sequence[str] = ()) -> None:
        """Take the container's root as seen from here, /proc/PID/root. `paths`: names and patterns
        inside it; None means well-known names in `folders`."""
        self._root: str | None = root
        self._paths = paths
        self._folders = folders
        self._forget()

    def _forget(self) -> None:
        self._followed: dict[str, FollowedFile] = {}
        self._searched = float("-inf")
        self._known: dict[object, None] = {}  # newest points that were returned

    def read(self, now: float, since: float = 0.0) -> list[TimedPoint]:
        """Return the new points in the files."""
        points: list[TimedPoint] = []
        self.gap = None
        if self._root is None:
            return points
        try:
            root = Root(self._root)
        except OSError as error:
            self.gap = f"files: {error.strerror}"
            return points
        with closing(root):
            if now - self._searched >= _SEARCH_S:
                self._searched = now
                self._search(root)
            until = time.thread_time() + PATIENCE_S
            for path in list(self._followed):
                if time.thread_time() > until:
                    self.gap = "files: reading them takes too long: the others are read later"
                    break
                self._followed[path] = self._followed.pop(path)  # the others come first next time
                try:
                    points += self._followed[path].read(root, until)
                except OSError as error:
                    if error.errno != errno.ENOENT:
                        self.gap = f"{path}: {error.strerror}"[:_LONGEST_GAP]
        return [point for point in points if point.time.timestamp() >= since]

    def stop(self) -> list[TimedPoint]:
        """Forget the files: they can be seen only while the container runs."""
        self._root, self.gap = None, None
        self._forget()
        return []

    def restart(self, target: Target) -> None:
        """Read the files through the new process."""
        if self._root is None:
            self._folders = folders_of(target.container.pid)
        self._root = _root_of(target) if target.is_visible else None

    def _search(self, root: Root) -> None:
        named = self._paths is not None
        paths = matching(root, self._paths or ()) if named else well_known(root, self._folders)
        for path in paths:
            if len(self._followed) >= _MOST_FILES:
                break
            reader = reader_of_named(path) if named else reader_of(path)
            if reader is not None and path not in self._followed:
                self._followed[path] = FollowedFile(path, reader, self._known)


def _moment(seconds: float | None, changed: float) -> datetime:
    """Return the time that the file gives for a point, or else when the file was changed."""
    moments = (moment for moment in (seconds, changed) if moment and 0 < moment < _LAST_SECOND)
    return datetime.fromtimestamp(next(moments, 0.0), UTC)


class FollowedFile:
    """A file with its reader, and the position up to which it has been read. `known`: the newest
    points of all files, which are not returned again."""

    def __init__(self, path: str, reader: Reader, known: dict[object, None]) -> None:
        self._path = path
        self._reader = reader
        self._known = known
        self._inode: int | None = None
        self._at = 0
        self._changed = -1.0

    def read(self, root: Root, until: float) -> list[TimedPoint]:
        """Return the new points. `until`: the CPU time of this thread at which to stop. Raises
        OSError."""
        timed: list[Timed] = []
        with os.fdopen(root.open(self._path), "rb") as file:
            info, changed = os.fstat(file.fileno()), 0.0
            is_first, whole = self._inode is None, self._reader.whole
            self._note_replacement(info)
            if isinstance(self._reader, Trackio):
                self._reader.log, changed = self._log_beside(root)
            is_new, begin = self._is_new(info, max(changed, info.st_mtime)), self._at
            if is_first and isinstance(self._reader, TextFile) and info.st_size > 2 * _PIECE:
                self._reader.feed(file.readline(_PIECE))  # of a table, the names
                file.seek(info.st_size - _PIECE)
                file.readline(_PIECE)
                self._at = begin = file.tell()
            while is_new and info.st_size > self._at < begin + _MOST_BYTES:
                data = os.pread(file.fileno(), _MOST_BYTES if whole else _PIECE, self._at)
                timed += self._reader.feed(data)
                self._at += 0 if whole else len(data)
                is_new = bool(data) and not whole and time.thread_time() < until
        new = self._not_known(timed)
        kept = _newest(new) if is_first or len(timed) > _MOST_REMEMBERED else new
        return [TimedPoint(_moment(seconds, info.st_mtime), point) for seconds, point in kept]

    def _not_known(self, timed: list[Timed]) -> list[Timed]:
        """Return the points that are not known; some files are written anew as a whole."""
        new = []
        for seconds, point in timed:
            key = (self._path, point.metric, point.step, point.epoch, repr(point.value), seconds)
            if key not in self._known:
                self._known[key] = None
                new.append(Timed(seconds, point))
            if len(self._known) > _MOST_REMEMBERED:
                del self._known[next(iter(self._known))]
        return new

    def _note_replacement(self, info: os.stat_result) -> None:
        """Start at the beginning of a file that was replaced or truncated."""
        if info.st_ino == self._inode and info.st_size >= self._at:
            return
        if self._inode is not None:
            self._reader = reader_of(self._path) or type(self._reader)()
        self._inode, self._at = info.st_ino, 0

    def _log_beside(self, root: Root) -> tuple[bytes, float]:
        """Return the write-ahead log of a database, and when it was changed."""
        with suppress(OSError), os.fdopen(root.open(f"{self._path}-wal"), "rb") as log:
            return log.read(_MOST_BYTES), os.fstat(log.fileno()).st_mtime
        return b"", 0.0

    def _is_new(self, info: os.stat_result, changed: float) -> bool:
        """Tell whether there may be more: a file that is read as a whole has changed."""
        is_known = changed == self._changed or info.st_size > _MOST_BYTES
        self._changed = changed
        return not (self._reader.whole and is_known)


def _newest(timed: list[Timed]) -> list[Timed]:
    """Return the points to use of a file that existed before: those with a time, and those of the
    newest record, because the times of older records are unknown."""
    last = next((point for seconds, point in reversed(timed) if seconds is None), None)
    newest = last and (last.step, last.epoch)
    return [
        entry
        for entry in timed
        if entry.seconds is not None or (entry.point.step, entry.point.epoch) == newest
    ]


_DEPTH, _NAMES = 5, 1_000
_VIRTUAL = ("proc", "sysfs", "tmpfs", "devpts", "mqueue", "cgroup", "cgroup2", "overlay")

_USUAL = (
    "/workspace",
    "/app",
    "/data",
    "/output",
    "/outputs",
    "/logs",
    "/runs",
    "/results",
    "/checkpoints",
    "/mlruns",
    "/lightning_logs",
    "/root",
    "/train",
)
"""Folders where jobs write if their working directory is the root directory."""

_SYSTEM = ("/etc/", "/proc", "/sys", "/dev", "/run/secrets", "/usr", "/lib")


def folders_of(pid: int) -> list[str]:
    """Return the folders where a container's job may write, as paths inside it: its working
    directory and its volumes."""
    folders = []
    with suppress(OSError):
        folders.append(str(Path(f"/proc/{pid}/cwd").readlink()))
    if folders == ["/"]:
        folders = list(_USUAL)
    for line in read_text(f"/proc/{pid}/mountinfo").splitlines():
        fields, _, kind = line.partition(" - ")
        place = fields.split()[4] if len(fields.split()) > 4 else "/"
        if place != "/" and kind.split(" ")[0] not in _VIRTUAL and not place.startswith(_SYSTEM):
            folders.append(place.replace("\\040", " "))
    return [folder for folder in dict.fromkeys(folders) if folder != "/"]


def well_known(root: Root, folders: Sequence[str]) -> Iterable[str]:
    """Yield the paths of the files with well-known names below these folders."""
    for folder in dict.fromkeys(folders):
        for path in root.files(folder, depth=_DEPTH, most=_NAMES):
            if reader_of(path) is not None:
                yield path


def matching(root: Root, patterns: Sequence[str]) -> Iterable[str]:
    """Yield the paths that match these patterns. A pattern without a wildcard is a path."""
    for pattern in patterns:
        parts = pattern.split("/")
        wild = next((i for i, part in enumerate(parts) if any(c in part for c in "*?[")), None)
        if wild is None:
            yield pattern
            continue
        folder = "/".join(parts[:wild]) or "/"
        for path in root.files(folder, depth=_DEPTH, most=_NAMES):
            if fnmatch.fnmatchcase(path, pattern):
                yield path
