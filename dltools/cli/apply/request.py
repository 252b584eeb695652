"""What a dl-apply command line asks for, validated."""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from enum import Enum, auto
from pathlib import Path

import typer

from dltools.cli.engines import Engines
from dltools.cli.formats import RecordFormat


class Task(Enum):
    """What dl-apply is to do."""

    APPLY = auto()
    UNDO = auto()
    SHOW_STATUS = auto()


@dataclass(frozen=True, slots=True)
class Bounds:
    """What may be changed: containers with these labels and names, so many of them in a plan, by a
    plan of this age (s), and also what somebody else has changed."""

    labels: tuple[str, ...] = ()
    names: tuple[str, ...] = ()
    max_changes: int | None = None
    max_age_s: float | None = None
    is_forced: bool = False


@dataclass(frozen=True, slots=True)
class Request:
    """What to do, and how.

    `beside`: the process of another dl-apply that may write to the same engine, -1 for any, None
    for none. `forces`: whether jobs without a checkpoint are moved, too.
    `hold_s` is how long the turns of a single plan go on (s), None for as long as containers wait;
    `lease_s` how long settings hold without a plan (s), None for the default; `patience_s`
    the longest wait for an engine that restarts (s); `deliver_hook` the command to run for each
    model that is delivered into `deliver_directory`, in `hook_limit_s` at most.
    """

    task: Task
    engines: Engines
    input: str
    is_dry_run: bool
    is_offline: bool
    restores: bool
    hold_s: float | None
    lease_s: float | None
    patience_s: float
    state_directory: Path | None
    forces: bool
    deliver_directory: Path | None
    deliver_hook: tuple[str, ...]
    hook_limit_s: float
    format: RecordFormat
    is_verbose: bool
    bounds: Bounds = Bounds()
    beside: int | None = None

    def __post_init__(self) -> None:
        """Raise `BadParameter` for options that contradict each other."""
        if self.is_offline and not self.is_dry_run:
            raise typer.BadParameter("--offline needs --dry-run")
        if self.deliver_hook and self.deliver_directory is None:
            raise typer.BadParameter("--deliver-hook needs --deliver-dir")
        if self.is_offline and self.engines.are_named:
            raise typer.BadParameter("--offline asks no engine: leave --host, --context, --swarm")
        if self.task is Task.UNDO and self.input != "-":
            raise typer.BadParameter(f"{self.input}: --undo takes no plan")
        if self.restores and self.task in (Task.UNDO, Task.SHOW_STATUS):
            raise typer.BadParameter("give only one of --undo, --restore and --status")


def hook_command(text: str | None) -> tuple[str, ...]:
    """Read a command and its arguments, quoted as in a shell; None is none. Raises `BadParameter`
    for a text that names no command."""
    if text is None:
        return ()
    try:
        words = tuple(shlex.split(text))
    except ValueError as error:
        raise typer.BadParameter(f"--deliver-hook {text!r}: {error}") from error
    if not words:
        raise typer.BadParameter("--deliver-hook names no command")
    return words


def beside_process(text: str) -> int:
    """Read the number of a process, "any" as -1. Raises `BadParameter`."""
    if text == "any":
        return -1
    if not text.isascii() or not text.isdigit():
        raise typer.BadParameter(f"{text!r} is neither the number of a process nor any")
    return int(text)


def choose_task(*, is_undo: bool, is_status: bool) -> Task:
    """Return what the options ask for. Raises `BadParameter` if they contradict each other."""
    if is_undo and is_status:
        raise typer.BadParameter("give only one of --undo, --restore and --status")
    return Task.UNDO if is_undo else Task.SHOW_STATUS if is_status else Task.APPLY
