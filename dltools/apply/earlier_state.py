"""Moving state from the directory of an earlier version, so that an upgrade loses nothing."""

from __future__ import annotations

from pathlib import Path

from dltools.engine.state_folder import StateFolder
from dltools.errors import OutputError
from dltools.files import locked

_FOLDERS = ("journal", "rotation")


def move_state(source: Path, target: Path) -> int:
    """Move all entries of one state directory to another, and return their number.

    Of two entries for the same container the older one stays: it holds the original settings.
    Raises `RetryError` while a dl-apply runs that keeps its state in `source`, and `OutputError`.
    """
    found = [(folder, name) for folder in _FOLDERS for name in StateFolder(source / folder).names()]
    if not found:
        return 0
    with locked(source / "apply.lock", "dl-apply"):
        for folder, name in found:
            _move(name, StateFolder(source / folder), StateFolder(target / folder))
    return len(found)


def _move(name: str, source: StateFolder, target: StateFolder) -> None:
    try:
        data, written, known = source.read(name), source.modified(name), target.modified(name)
        if data is not None and written is not None and not (known and known <= written):
            target.write(name, data)
        source.remove(name)
    except OSError as error:
        where = source.path / name
        raise OutputError(f"cannot move {where} to {target.path}: {error.strerror}") from error
