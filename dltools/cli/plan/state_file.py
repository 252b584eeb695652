"""The state of a policy in a file: the file of a plan that ends with it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dltools import inputs
from dltools.cli import destinations
from dltools.cli.exits import print_message
from dltools.errors import DataError
from dltools.plan.records import dump_plan, load_plans

if TYPE_CHECKING:
    from dltools.plan.records import Plan


def load_state(file: Path | None, *, may_be_missing: bool) -> Mapping[str, Any] | None:
    """Return the state of a file's last plan, None without a file. Raises `DataError`."""
    if file is None:
        return None
    try:
        with file.open("rb") as stream:
            plans = list(load_plans(inputs.read_lines(stream, str(file)), str(file), print_message))
    except FileNotFoundError:
        if may_be_missing:
            return None
        raise DataError(f"{file}: no such file") from None
    if not plans or not plans[-1].state:
        raise DataError(f"{file}: its last plan has no state: write one with --save-state")
    return plans[-1].state


def save_state(file: Path, plan: Plan) -> None:
    """Write a plan with its state, completely or not at all."""
    with destinations.output_file(file) as out:
        out.write(dump_plan(plan).encode())


@contextmanager
def blaming_state(file: Path | None) -> Iterator[None]:
    """Report errors as a damaged state where one was read from a file: a state is checked only when
    it is used. Raises `DataError`."""
    try:
        yield
    except (TypeError, ValueError, KeyError, AttributeError, IndexError, OverflowError) as error:
        if file is None or isinstance(error, OSError):
            raise
        raise DataError(
            f"{file}: damaged state: {type(error).__name__}: {error}; start again without it"
        ) from error
