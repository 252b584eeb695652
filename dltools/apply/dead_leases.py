"""Undoing what a run of dl-apply held under lease that has died."""

from __future__ import annotations

from pathlib import Path

from dltools.apply.journal import Journal
from dltools.apply.undo import undo
from dltools.engine.containers import Engine
from dltools.engine.runs import UNKNOWN_RUN, ApplyRun
from dltools.plan.records import Result, Status


def end_dead_leases(engine: Engine, directory: Path, own: ApplyRun = UNKNOWN_RUN) -> list[Result]:
    """Restore the containers that are under lease of other runs than one's `own`, and return what
    became of each. The state in `directory` must be locked: so these runs are over.

    Raises `DataError`, or as the engine does.
    """
    journal = Journal(directory / "journal")
    leased = [entry.container_id for entry in journal.entries(engine.id)
              if entry.leased_by.pid not in (0, own.pid)]  # fmt: skip
    results = undo(engine, journal, lambda _: None, only=leased) if leased else []
    # What somebody else has changed since is not to be tried again and again.
    journal.keep(engine.id, {one.container_id for one in results if one.status is Status.SKIPPED})
    return results
