"""Plans on their way out: as JSON Lines or a table, and their states, in plans or in a file."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from dltools import inputs
from dltools.cli import destinations
from dltools.cli.console import make_console
from dltools.cli.data import for_screen
from dltools.cli.exits import complain
from dltools.errors import DataError

if TYPE_CHECKING:
    from dltools.plan.planner import Planner

_WIDE = 120
"""Columns from which the table shows signals and predictions apart."""


class Output(StrEnum):
    """What --format may be."""

    AUTO = "auto"
    TABLE = "table"
    JSONL = "jsonl"


def chosen(wanted: Output, *, explain: bool) -> Output:
    """Return the format to print in: by default a table on a terminal, else JSON Lines."""
    if explain and wanted is Output.JSONL:
        raise typer.BadParameter("--explain and --format jsonl exclude each other")
    if wanted is not Output.AUTO:
        return wanted
    return Output.TABLE if explain or sys.stdout.isatty() else Output.JSONL


def show(
    fold: Planner, input_: Mapping[str, Any], format_: Output, *, pending: bool, state: bool
) -> None:
    """Print the newest plan; its state only where it is wanted, and never on a terminal."""
    if format_ is Output.TABLE:
        _show_table(fold, pending=pending)
        return
    from dltools.plan.writing import dump_plan

    plan = fold.plan(input_, pending=pending, state=state and not sys.stdout.isatty())
    sys.stdout.write(for_screen(dump_plan(plan)))
    sys.stdout.flush()


def _show_table(fold: Planner, *, pending: bool) -> None:
    from dltools.cli.plan.tables import verdicts_table

    console = make_console()
    explanation = fold.explain(pending=pending)
    console.print(verdicts_table(explanation.decisions, wide=console.width >= _WIDE))
    for line in explanation.lines:
        console.print(line, soft_wrap=False)


def load_state(state: Path | None, save_state: Path | None) -> Mapping[str, Any] | None:
    """Return the state that the last plan of a file ends with; None where there is none to go on
    from. Raises `DataError`."""
    from dltools.plan.reading import load_plans

    if state is None:
        return None
    try:
        with state.open("rb") as stream:
            plans = list(load_plans(inputs.read_lines(stream, str(state)), str(state), complain))
    except FileNotFoundError:
        if state == save_state:
            return None  # the first run
        raise DataError(f"{state}: no such file") from None
    if not plans or not plans[-1].state:
        raise DataError(f"{state}: its last plan has no state: write one with --save-state")
    return plans[-1].state


@contextmanager
def going_on_from(file: Path | None) -> Iterator[None]:
    """Going on from a file, take what would be a bug without it for a damaged state: a state is
    checked only as it is used."""
    try:
        yield
    except (TypeError, ValueError, KeyError, AttributeError, IndexError, OverflowError) as error:
        if file is None or isinstance(error, OSError):
            raise
        raise DataError(
            f"{file}: damaged state: {type(error).__name__}: {error}; begin anew without it"
        ) from error


def save_state(file: Path, fold: Planner, input_: Mapping[str, Any]) -> None:
    """Write the newest plan, with its state, whole or not at all."""
    from dltools.plan.writing import dump_plan

    with destinations.output_file(file) as out:
        out.write(dump_plan(fold.plan(input_)).encode())
