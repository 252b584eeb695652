"""What a container's files show of its progress: found or named by a label, read as they grow."""

from __future__ import annotations

import fnmatch
import os
from collections import deque
from collections.abc import Iterable, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path, PurePosixPath

from dltools.engine.kernel_files import read_text
from dltools.observations.metrics import is_metric, normal
from dltools.probe.files.events import Events
from dltools.probe.files.rooted import Root
from dltools.probe.files.tables import Csv, JsonLines, MLflow, Reader, Timed, TrainerState
from dltools.probe.progress.base import Point

_LOOK_S = 30.0
_MOST_BYTES = 8 << 20
"""Of one file, at one time; the rest comes the next time."""

_MOST_FILES = 64
_DEPTH, _NAMES = 5, 1_000
_REMEMBERED = 20_000
_VIRTUAL = ("proc", "sysfs", "tmpfs", "devpts", "mqueue", "cgroup", "cgroup2", "overlay")
_USUAL = ("/workspace", "/app", "/data", "/output", "/outputs", "/logs", "/runs", "/results",
          "/checkpoints", "/mlruns", "/lightning_logs", "/root", "/train")  # fmt: skip
"""Where jobs write whose working directory is the root directory."""

_SYSTEM = ("/etc/", "/proc", "/sys", "/dev", "/run/secrets", "/usr", "/lib")


class _Tensorboard:
    whole = False

    def __init__(self) -> None:
        self._events = Events()

    def feed(self, data: bytes) -> list[Timed]:
        return [
            (time, Point(normal(tag), value, step if abs(step) < 2**63 else None, None,
                         "tensorboard", tag))
            for time, step, tag, value in self._events.feed(data)
            if is_metric(normal(tag))
        ]  # fmt: skip


def reader_of(path: str) -> Reader | None:
    """Return the reader for a file by its well-known name, None for any other file."""
    name = PurePosixPath(path).name
    if "tfevents" in name:
        return _Tensorboard()
    if name == "trainer_state.json":
        return TrainerState()
    if "/metrics/" in path and "mlruns/" in path:
        return MLflow(path.partition("/metrics/")[2])
    if name.endswith((".jsonl", ".log.json")):
        return JsonLines()
    if name in ("results.csv", "metrics.csv", "training.csv", "history.csv", "training_log.csv",
                "progress.csv", "train.tsv", "log.csv"):  # fmt: skip
        return Csv()
    return None


class _Followed:
    """One file: its reader, and how far it has been read."""

    def __init__(self, reader: Reader) -> None:
        self.reader = reader
        self.inode = -1
        self.at = 0
        self.changed = -1.0


class FileSource:
    """Points from the files of one container; one that is replaced is read anew, but what was
    given is not given again."""

    def __init__(self, root: str, paths: Sequence[str] | None, folders: Sequence[str] = ()) -> None:
        """`root` is the container's root as seen from here, /proc/PID/root; `paths` are names and
        patterns inside it; None: well-known names are looked for in `folders`."""
        self.root = root
        self._paths = paths
        self._folders = folders
        self._followed: dict[str, _Followed] = {}
        self._looked = float("-inf")
        self._given: set[tuple[object, ...]] = set()
        self._order: deque[tuple[object, ...]] = deque()
        self.gap: str | None = None

    def read(self, now: float) -> list[tuple[datetime, Point]]:
        """Return what is new since the last call; `now` is a time in seconds on any clock."""
        try:
            root = Root(self.root)
        except OSError as error:
            self.gap = f"files: {error.strerror}"
            return []
        with root:
            if now - self._looked >= _LOOK_S:
                self._looked = now
                self._look(root)
            found = []
            for path, followed in list(self._followed.items()):
                found += self._read(root, path, followed)
        return found

    def _look(self, root: Root) -> None:
        wanted = self._named(root) if self._paths is not None else self._found(root)
        for path in wanted:
            if len(self._followed) >= _MOST_FILES:
                break
            reader = reader_of(path)
            if reader is None and self._paths is not None:
                reader = JsonLines() if path.endswith((".json", ".log")) else Csv()
            if reader is not None and path not in self._followed:
                self._followed[path] = _Followed(reader)

    def _found(self, root: Root) -> Iterable[str]:
        for folder in dict.fromkeys(self._folders):
            for path in root.files(folder, depth=_DEPTH, most=_NAMES):
                if reader_of(path) is not None:
                    yield path

    def _named(self, root: Root) -> Iterable[str]:
        for pattern in self._paths or ():
            fixed = pattern.split("/")
            wild = next((i for i, part in enumerate(fixed) if any(c in part for c in "*?[")), None)
            if wild is None:
                yield pattern
                continue
            folder = "/".join(fixed[:wild]) or "/"
            for path in root.files(folder, depth=_DEPTH, most=_NAMES):
                if fnmatch.fnmatchcase(path, pattern):
                    yield path

    def _read(self, root: Root, path: str, followed: _Followed) -> list[tuple[datetime, Point]]:
        try:
            handle = root.open(path)
        except OSError as error:
            self.gap = None if error.errno == 2 else f"{path}: {error.strerror}"[:120]
            return []
        try:
            info = os.fstat(handle)
            first = followed.inode == -1
            if info.st_ino != followed.inode or info.st_size < followed.at:
                fresh = reader_of(path)
                if followed.inode != -1:
                    followed.reader = fresh or type(followed.reader)()
                followed.inode, followed.at = info.st_ino, 0
            if followed.reader.whole:
                if info.st_mtime == followed.changed or info.st_size > _MOST_BYTES:
                    return []
                followed.changed = info.st_mtime
                timed = followed.reader.feed(os.pread(handle, _MOST_BYTES, 0))
            else:
                data = os.pread(handle, _MOST_BYTES, followed.at)
                followed.at += len(data)
                timed = followed.reader.feed(data) if data else []
        except OSError as error:
            self.gap = f"{path}: {error.strerror}"[:120]
            return []
        finally:
            os.close(handle)
        return self._new(path, _newest(timed) if first else timed, info.st_mtime)

    def _new(self, path: str, timed: list[Timed], changed: float) -> list[tuple[datetime, Point]]:
        found = []
        for time, point in timed:
            key = (path, point.metric, point.step, point.epoch, repr(point.value), time)
            if key in self._given:
                continue
            self._given.add(key)
            self._order.append(key)
            if len(self._order) > _REMEMBERED:
                self._given.discard(self._order.popleft())
            found.append((_moment(time, changed), point))
        return found


def _newest(timed: list[Timed]) -> list[Timed]:
    """Return what a file holds that was there before us, less what had no time but the newest
    record: when the others were written is not known."""
    last = next((point for time, point in reversed(timed) if time is None), None)
    return [
        (time, point)
        for time, point in timed
        if time is not None or (last and (point.step, point.epoch) == (last.step, last.epoch))
    ]


def folders_of(pid: int) -> list[str]:
    """Return where a container's job may write, as paths inside it: its working directory and the
    volumes mounted into it."""
    found = []
    with suppress(OSError):
        found.append(str(Path(f"/proc/{pid}/cwd").readlink()))
    if found == ["/"]:
        found = list(_USUAL)
    for line in read_text(f"/proc/{pid}/mountinfo").splitlines():
        fields, _, kind = line.partition(" - ")
        place = fields.split()[4] if len(fields.split()) > 4 else "/"
        if place != "/" and kind.split(" ")[0] not in _VIRTUAL and not place.startswith(_SYSTEM):
            found.append(place.replace("\\040", " "))
    return [folder for folder in dict.fromkeys(found) if folder != "/"]


def _moment(time: float | None, changed: float) -> datetime:
    seconds = time if time is not None and 0 < time < 4e9 else changed
    return datetime.fromtimestamp(seconds, UTC)
