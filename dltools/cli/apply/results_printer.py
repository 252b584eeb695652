"""Printing results as they come."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import TYPE_CHECKING

from dltools.cli.console import make_console
from dltools.cli.formats import RecordFormat
from dltools.cli.printable_output import printable_on_terminal

if TYPE_CHECKING:
    from dltools.apply.engine_actuator import OnResult
    from dltools.plan.records import Result


class ResultsPrinter:
    """Prints each result as a JSON line, or all results of a plan as a table."""

    def __init__(self, format_: RecordFormat) -> None:
        """`format_` is table or jsonl."""
        self._is_table = format_ is RecordFormat.TABLE

    def show(self, work: Callable[[OnResult], object]) -> list[Result]:
        """Do work that reports results, print these, and return them."""
        shown: list[Result] = []

        def on_result(result: Result) -> None:
            from dltools.plan.writing import dump_result

            shown.append(result)
            if not self._is_table:
                sys.stdout.write(printable_on_terminal(dump_result(result)))
                sys.stdout.flush()

        try:
            work(on_result)
        finally:
            if shown and self._is_table:
                from dltools.cli.apply.tables import results_table

                make_console().print(results_table(shown))
        return shown
