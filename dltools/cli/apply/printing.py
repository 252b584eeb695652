"""What dl-apply prints of several operations: results as they come, JSON lines, and messages."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dltools.actions.plan_lines import dump_result
from dltools.actions.plans import OnResult, Result
from dltools.apply.changed_containers import journal_entries, paused_elsewhere
from dltools.apply.refusals import PAUSED_ELSEWHERE
from dltools.cli.destinations import make_console, printable_on_terminal
from dltools.cli.formats import RecordFormat, format_for_stdout
from dltools.cli.remarks import as_root
from dltools.engine import state_folder, turn_notes
from dltools.notation.times import format_time
from dltools.text import listed

if TYPE_CHECKING:
    from dltools.engine.interface import Engine


class ResultsPrinter:
    """Prints each result as a JSON line, or all results of a plan as a table; those of a stream of
    plans as one table, which goes on."""

    def __init__(self, format_: RecordFormat) -> None:
        self._is_table = format_for_stdout(format_) is RecordFormat.TABLE
        self._is_stream = self._has_begun = False

    def go_on(self) -> None:
        """Print what comes from now on as one table."""
        self._is_stream = True

    def show(
        self, work: Callable[[OnResult], object], reasons: Mapping[int, str] | None = None
    ) -> list[Result]:
        """Do work that reports results, print these, and return them. A table gives the `reasons`,
        by the results' ids; that of a stream shows what changes or fails alone."""
        shown: list[Result] = []

        def on_result(result: Result) -> None:
            shown.append(result)
            if not self._is_table:
                sys.stdout.write(printable_on_terminal(dump_result(result)))
                sys.stdout.flush()

        try:
            work(on_result)
        finally:
            if shown and self._is_table:
                self._show_table(shown, reasons or {})
        return shown

    def _show_table(self, results: Sequence[Result], reasons: Mapping[int, str]) -> None:
        from dltools.cli.apply.tables import results_table

        if not self._is_stream:
            make_console().print(results_table(results, reasons))
        elif told := [result for result in results if result.status != "unchanged" or result.error]:
            now = format_time(datetime.now(UTC))[11:19]  # as in --status
            table = results_table(told, reasons, now, has_header=not self._has_begun)
            make_console().print(table)
            self._has_begun = True


def write_records(records: Iterable[Mapping[str, Any]]) -> None:
    """Print JSON lines."""
    sys.stdout.write("".join(json.dumps(record) + "\n" for record in records))


def left_paused_message(engine: Engine, directories: Sequence[Path]) -> str:
    """Say which containers an earlier run has left paused, "" if there are none."""
    noted = {
        key: note
        for key, note in turn_notes.read_notes(directories, engine.id).items()
        if not note.run.is_alive and note.paused_at is not None
    }
    if not noted:
        return ""
    paused = {container.id for container in engine.containers() if container.state == "paused"}
    names = [note.container_name for key, note in noted.items() if key in paused]
    return turn_notes.left_paused(names) if names else ""


def nothing_to_undo(engine: Engine, directories: Sequence[Path]) -> str:
    """Say that the journal is empty. Name other journals, and containers that are paused."""
    line = f"nothing to undo on {engine.host}: no entry in {directories[0] / 'journal'}"
    for directory in directories[1:]:
        if count := len(journal_entries(engine, directory)):
            line += f"; {count} in {directory}: use --state-dir {directory}"
    if names := paused_elsewhere(engine, directories):
        line += f"; {listed(names)}: {PAUSED_ELSEWHERE} of this state directory"
    if os.geteuid() != 0 and state_folder.SYSTEM.exists():
        line += f"; for what root has changed, as by the service: {as_root('dl-apply', '--status')}"
    return line
