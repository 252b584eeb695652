"""Bringing state from where an earlier version kept it, so that an upgrade loses nothing."""

from __future__ import annotations

from pathlib import Path

from dltools.errors import OutputError
from dltools.files import atomic_file, locked

_FOLDERS = ("journal", "rotation")


def adopt(home: Path, earlier: Path) -> int:
    """Move all entries of one state directory to another, and return how many these were.

    Of two entries for the same container the older one stays: it holds the original settings.
    Raises `RetryError` while a dl-apply runs that keeps its state in `earlier`, and `OutputError`.
    """
    found = [path for folder in _FOLDERS for path in sorted((earlier / folder).glob("*.json"))]
    if not found:
        return 0
    with locked(earlier / "apply.lock", "dl-apply"):
        for path in found:
            target = home / path.parent.name / path.name
            try:
                target.parent.mkdir(parents=True, exist_ok=True)
                if target.exists() and target.stat().st_mtime <= path.stat().st_mtime:
                    path.unlink()
                    continue
                with atomic_file(target) as file:
                    file.write(path.read_bytes())
                path.unlink()
            except OSError as error:
                raise OutputError(f"cannot move {path} to {target}: {error.strerror}") from error
    return len(found)
