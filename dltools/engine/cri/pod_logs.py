"""A container's log on a Kubernetes node: a file that kubelet rotates.

kubelet renames NAME.log to NAME.log.20260131-120000, has the runtime open a new one, and packs the
older ones (.gz). What came between is in the renamed files, in order of their names.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from dltools.engine.interface import Container, RefusedError
from dltools.engine.log_files import read_entries


@contextmanager
def readable(container: Container) -> Iterator[Path]:
    """Give the file of a container's log; turn errors in reading it into one of ours."""
    if not container.native.get("log_path"):
        raise RefusedError("its pod has no folder for logs")
    path = Path(container.native["log_path"])
    try:
        yield path
    except OSError as error:
        raise RefusedError(f"{path} cannot be read here: {error.strerror or error}") from error


def read(path: Path, since: float) -> Iterator[list[bytes]]:
    """Yield the entries of a log from a time on (seconds since 1970), those of rotated files first.
    Raises OSError."""
    for old in rotated(path):
        with suppress(FileNotFoundError):  # packed or removed meanwhile
            if old.stat().st_mtime >= since:
                yield from read_entries(old, since)
    yield from read_entries(path, since)


def rotated(path: Path) -> list[Path]:
    """Return the files that a log was in before, the oldest first."""
    try:
        names = sorted(one.name for one in path.parent.iterdir())
    except OSError:
        return []
    start = len(path.name) + 1
    found = (one for one in names if one.startswith(f"{path.name}.") and one[start].isdigit())
    return [path.with_name(one) for one in found]
