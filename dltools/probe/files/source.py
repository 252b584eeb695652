"""Progress from a container's files: found or named by a label, read as they grow."""

from __future__ import annotations

import errno
from collections import deque
from collections.abc import Sequence
from datetime import UTC, datetime

from dltools.labels import FILES
from dltools.probe.files.followed import FollowedFile, News
from dltools.probe.files.readers import reader_of, reader_of_named
from dltools.probe.files.rooted import Root
from dltools.probe.files.search import folders_of, matching, well_known
from dltools.probe.progress.source import ProgressSource, Target, TimedPoint

_SEARCH_S = 30.0
"""Time between two searches for new files."""

_MOST_FILES = 64
_MOST_REMEMBERED = 20_000
_LONGEST_GAP = 120
_LAST_SECOND = 4e9
"""Times beyond this one (in the year 2096) are no times."""


def file_source(target: Target) -> ProgressSource | None:
    """Return the source that reads a container's files; None if the label says so, or if the
    container's processes are not on this machine."""
    label = target.container.labels.get(FILES)
    is_refused = label is not None and label.strip() in ("", "none")
    if is_refused or not target.is_visible:
        return None
    paths = [path.strip() for path in label.split(",")] if label else None
    return FileSource(_root_of(target), paths, folders_of(target.container.pid))


def _root_of(target: Target) -> str:
    """Return the container's root directory as this process sees it."""
    return f"/proc/{target.container.pid}/root"


class FileSource(ProgressSource):
    """Points from the files of one container. A file that is replaced is read again, but no point
    is given twice."""

    def __init__(self, root: str, paths: Sequence[str] | None, folders: Sequence[str] = ()) -> None:
        """`root` is the container's root as seen from here, /proc/PID/root; `paths` are names and
        patterns inside it; None means well-known names in `folders`."""
        self._root: str | None = root
        self._paths = paths
        self._folders = folders
        self._forget()

    def _forget(self) -> None:
        self._followed: dict[str, FollowedFile] = {}
        self._searched = float("-inf")
        self._given = _Given()

    def read(self, now: float, since: float = 0.0) -> list[TimedPoint]:
        """Return what is new in the files."""
        if self._root is None:
            return []
        try:
            root = Root(self._root)
        except OSError as error:
            self.gap = f"files: {error.strerror}"
            return []
        with root:
            if now - self._searched >= _SEARCH_S:
                self._searched = now
                self._search(root)
            found = [point for path in list(self._followed) for point in self._read(root, path)]
        return [point for point in found if point.time.timestamp() >= since]

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
                self._followed[path] = FollowedFile(path, reader)

    def _read(self, root: Root, path: str) -> list[TimedPoint]:
        try:
            news = self._followed[path].read(root)
        except OSError as error:
            is_absent = error.errno == errno.ENOENT
            self.gap = None if is_absent else f"{path}: {error.strerror}"[:_LONGEST_GAP]
            return []
        return self._given.new(path, news)


class _Given:
    """The points that were given, the newest of them: some files are written again as a whole."""

    def __init__(self) -> None:
        self._known: set[tuple[object, ...]] = set()
        self._order: deque[tuple[object, ...]] = deque()

    def new(self, path: str, news: News) -> list[TimedPoint]:
        """Return the points of a file that were not given before."""
        found = []
        for seconds, point in news.timed:
            key = (path, point.metric, point.step, point.epoch, repr(point.value), seconds)
            if key in self._known:
                continue
            self._known.add(key)
            self._order.append(key)
            if len(self._order) > _MOST_REMEMBERED:
                self._known.discard(self._order.popleft())
            found.append(TimedPoint(_moment(seconds, news.changed), point))
        return found


def _moment(seconds: float | None, changed: float) -> datetime:
    """Return the time that a file says, or when the file was changed."""
    known = seconds if seconds is not None and 0 < seconds < _LAST_SECOND else changed
    return datetime.fromtimestamp(known, UTC)
