"""Where dl-apply finds its engine and its state, and what earlier runs have left there."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING

from dltools.cli.exits import complain

if TYPE_CHECKING:
    from dltools.apply.actuator import Actuator
    from dltools.apply.turns import Rotation
    from dltools.engine.containers import Engine
    from dltools.errors import UnavailableError


class Place:
    """Where this run's engine and state are."""

    def __init__(self, asked: Path | None, patience: float) -> None:
        """`asked` is the state directory if one was given, `patience` the longest wait for an
        engine that restarts (s)."""
        self._asked = asked
        self._patience = patience
        self._rotation: Rotation | None = None
        self.mended = False  # whether somebody was left paused

    def every(self) -> list[Path]:
        """Return the state directories to look into, the one in force first."""
        from dltools.engine import state_directory

        return state_directory.places(self._asked)

    def connected(self) -> Engine:
        """Connect. Where no engine answers, the error says who is left paused."""
        from dltools.engine import pauses
        from dltools.engine.connect import connect
        from dltools.engine.containers import Engine
        from dltools.engine.patience import Patient
        from dltools.errors import UnavailableError

        try:
            return Engine(Patient(connect(), self._patience, self._waiting))
        except UnavailableError as error:
            left = [note.name for note in pauses.notes(self.every(), None).values()
                    if not note.run.alive]  # fmt: skip
            if not left:
                raise
            told = pauses.still_paused(left, sure=False)
            raise UnavailableError(f"{error} {told}") from error

    def _waiting(self, error: UnavailableError) -> None:
        names = self._rotation.waiting() if self._rotation else []
        paused = f"{', '.join(names[:5])} {'is' if len(names) == 1 else 'are'} paused; "
        complain(f"{error} {paused if names else ''}asking again for {self._patience:g} s")

    @contextmanager
    def actuator(self, dry_run: bool) -> Iterator[Actuator]:
        """Connect, and keep every other dl-apply that would write away until the block ends.

        Whom an earlier run has left paused is let run first.
        """
        from dltools.apply.actuator import Actuator
        from dltools.apply.journal import Journal
        from dltools.apply.turns import Rotation
        from dltools.cli.apply.held import left_paused
        from dltools.engine import state_directory
        from dltools.engine.pauses import Run
        from dltools.files import locked

        home = state_directory.directory(self._asked)
        with nullcontext() if dry_run else locked(home / "apply.lock", "dl-apply"):
            if not dry_run and (earlier := state_directory.earlier(self._asked)):
                _adopt(home, earlier)
            engine = self.connected()
            run = Run.this(" ".join(["dl-apply", *sys.argv[1:]]))
            rotation = self._rotation = Rotation(engine, home / "rotation", run)
            if dry_run:
                if left := left_paused(engine, self.every()):
                    complain(left)
            else:
                self._mend(rotation)
            yield Actuator(engine, Journal(home / "journal"), rotation, dry_run=dry_run)

    def _mend(self, rotation: Rotation) -> None:
        for name, refusal in rotation.mend():
            self.mended = True
            why = f"and stays so: {refusal}" if refusal else "it runs again"
            complain(f"{name}: left paused by a run that was killed; {why}")


def _adopt(home: Path, earlier: Path) -> None:
    from dltools.apply.adoption import adopt

    if count := adopt(home, earlier):
        complain(f"{count} entries brought from {earlier} to {home}, where state is kept now")
