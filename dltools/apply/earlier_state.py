"""Moving state from the directory of an earlier version, so that an upgrade loses nothing."""

from __future__ import annotations

from pathlib import Path

from dltools.errors import OutputError
from dltools.files import atomic_file, locked

_FOLDERS = ("journal", "rotation")


def move_state(source: Path, target: Path) -> int:
    """Move all entries of one state directory to another, and return their number.

    Of two entries for the same container the older one stays: it holds the original settings.
    Raises `RetryError` while a dl-apply runs that keeps its state in `source`, and `OutputError`.
    """
    found = [path for folder in _FOLDERS for path in sorted((source / folder).glob("*.json"))]
    if not found:
        return 0
    with locked(source / "apply.lock", "dl-apply"):
        for path in found:
            _move(path, target / path.parent.name / path.name)
    return len(found)


def _move(path: Path, target: Path) -> None:
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        if not (target.exists() and target.stat().st_mtime <= path.stat().st_mtime):
            with atomic_file(target) as file:
                file.write(path.read_bytes())
        path.unlink()
    except OSError as error:
        raise OutputError(f"cannot move {path} to {target}: {error.strerror}") from error
