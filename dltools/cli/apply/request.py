"""What a dl-apply command line asks for, validated."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, auto
from pathlib import Path

import typer

from dltools.cli.formats import RecordFormat


class Task(Enum):
    """What dl-apply is to do."""

    APPLY = auto()
    UNDO = auto()
    SHOW_STATUS = auto()


@dataclass(frozen=True, slots=True)
class Request:
    """What to do, and how.

    `hold_s` is how long turns go on after the input has ended (s), None for as long as containers
    wait; `patience_s` the longest wait for an engine that restarts (s).
    """

    task: Task
    input: str
    is_dry_run: bool
    is_offline: bool
    restores: bool
    hold_s: float | None
    patience_s: float
    state_directory: Path | None
    format: RecordFormat
    is_verbose: bool

    def __post_init__(self) -> None:
        """Raise `BadParameter` for options that contradict each other."""
        if self.is_offline and not self.is_dry_run:
            raise typer.BadParameter("--offline needs --dry-run")
        if self.task is Task.UNDO and self.input != "-":
            raise typer.BadParameter(f"{self.input}: --undo takes no plan")
        if self.restores and self.task in (Task.UNDO, Task.SHOW_STATUS):
            raise typer.BadParameter("give only one of --undo, --restore and --status")


def choose_task(*, is_undo: bool, is_status: bool) -> Task:
    """Return what the options ask for. Raises `BadParameter` if they contradict each other."""
    if is_undo and is_status:
        raise typer.BadParameter("give only one of --undo, --restore and --status")
    return Task.UNDO if is_undo else Task.SHOW_STATUS if is_status else Task.APPLY
