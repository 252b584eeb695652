"""The state directory, which one run of dl-apply at a time holds."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from dltools.engine.state_folder import StateFolder
from dltools.files import locked

SETTLING_S = 1.0
"""How long an engine may take to carry out what a killed run has asked of it (ours)."""


class LockedState:
    """A state directory while it is locked. `holder_died` says whether the last run was killed."""

    def __init__(self, home: Path, *, holder_died: bool) -> None:
        """`home` is the directory."""
        self.home = home
        self._holder_died = holder_died

    def settle(self) -> None:
        """Let an engine that has just answered carry out what a killed run has asked of it: what
        comes later would be taken for somebody else's change."""
        if self._holder_died:
            time.sleep(SETTLING_S)


@contextmanager
def locked_state(home: Path, advice: str = "try again") -> Iterator[LockedState]:
    """Lock a state directory until the block ends, and remove the files that a killed run had begun
    to write.

    Raises `RetryError`, which ends with the `advice`, where another run holds it, and
    `OutputError`.
    """
    with locked(home / "apply.lock", "dl-apply", advice) as holder_died:
        for folder in ("journal", "rotation"):
            StateFolder(home / folder).remove_staged()
        yield LockedState(home, holder_died=holder_died)
