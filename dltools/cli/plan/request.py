"""What a dl-plan command line asks for, validated."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import typer

from dltools.cli import destinations, formats
from dltools.cli.formats import RecordFormat


@dataclass(frozen=True, slots=True)
class Request:
    """What to plan by and what to print.

    `state_file` is read, `saved_state_file` written. `quantum_s` is the mean length of a turn,
    None for auto. `roles` are the values of --role.
    """

    inputs: tuple[str, ...]
    policy: str
    assignments: tuple[str, ...]
    parameters_file: Path | None
    mode: str
    quantum_s: float | None
    targets_file: Path | None
    roles: tuple[str, ...]
    is_only_labelled: bool
    state_file: Path | None
    saved_state_file: Path | None
    plans_every_sample: bool
    prints_state: bool
    format: RecordFormat
    is_verbose: bool

    def __post_init__(self) -> None:
        """Raise `BadParameter` for an input that is named twice, and `OutputError` where the state
        cannot be saved."""
        for name in self.inputs:
            if self.inputs.count(name) > 1:
                raise typer.BadParameter(f"{name} is named twice")
        if self.saved_state_file is not None:
            destinations.check(self.saved_state_file)


def choose_format(wanted: RecordFormat, *, explain: bool) -> RecordFormat:
    """Return the format to print in. Raises `BadParameter` for an explanation in JSON Lines."""
    if not explain:
        return formats.for_stdout(wanted)
    if wanted is RecordFormat.JSONL:
        raise typer.BadParameter("--explain and --format jsonl exclude each other")
    return RecordFormat.TABLE
