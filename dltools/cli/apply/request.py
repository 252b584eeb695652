"""What dl-apply is asked for: its options, their defaults, and which contradict each other."""

from __future__ import annotations

import shlex
from dataclasses import dataclass, field
from enum import Enum, auto
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dltools.cli import options
from dltools.cli.formats import RecordFormat, RecordFormatOption
from dltools.cli.options import (
    Contexts,
    Engines,
    Hosts,
    Input,
    Patience,
    Quiet,
    StateDir,
    Swarm,
    Verbose,
    Version,
)

if TYPE_CHECKING:
    from dltools.apply.refusals import Rules

_ONE_TASK = "give only one of --undo, --restore, --status, --history and --release"


class Task(Enum):
    """What dl-apply is to do."""

    APPLY = auto()
    UNDO = auto()
    SHOW_STATUS = auto()
    SHOW_HISTORY = auto()
    RELEASE = auto()


class HookCommand(tuple[str, ...]):
    """A program and its arguments. (A plain tuple would make an option of several values.)"""

    __slots__ = ()


def hook_command(text: str) -> HookCommand:
    """Read a command and its arguments, quoted as in a shell. Raises `BadParameter`
    for a text that names no command."""
    try:
        words = HookCommand(shlex.split(text))
    except ValueError as error:
        raise typer.BadParameter(f"{text!r}: {error}") from error
    if not words:
        raise typer.BadParameter("it names no command")
    return words


def beside_process(text: str) -> int:
    """Read the number of a process, "any" as -1. Raises `BadParameter`."""
    if text == "any":
        return -1
    if not text.isascii() or not text.isdigit():
        raise typer.BadParameter(f"{text!r} is neither the number of a process nor any")
    return int(text)


@dataclass(kw_only=True)
class Request:
    """What to do, and how. Times are seconds; `beside` is -1 for any process."""

    input: Input = "-"
    is_dry_run: Annotated[
        bool, typer.Option("-n", "--dry-run", help="Check everything, but change nothing.")
    ] = False
    is_offline: Annotated[
        bool,
        typer.Option(
            "--offline",
            help="With --dry-run: ask no engine, and assume that each container is as the plan "
            "says.",
            rich_help_panel=options.EXPERT,
        ),
    ] = False
    undoes: Annotated[
        bool,
        typer.Option("--undo", help="Restore every container that dl-apply has changed, and exit."),
    ] = False
    stops: Annotated[
        bool,
        typer.Option(
            "--stop", help="With --undo: first end the dl-apply that is running, as SIGTERM does."
        ),
    ] = False
    shows_status: Annotated[
        bool,
        typer.Option(
            "--status",
            help="Print every container that dl-apply has changed (settings before and now, since "
            "when, by which run) and every job that is being moved, and exit.",
        ),
    ] = False
    releases: Annotated[
        list[str],
        typer.Option(
            "--release",
            metavar="NAME",
            help="Put a container's settings back, and leave it alone from now on, whatever plans "
            "say; with --undo: no longer. Repeatable.",
        ),
    ] = field(default_factory=list)
    shows_history: Annotated[
        bool,
        typer.Option(
            "--history",
            help="Print what was changed, when, why, by which run and how that ended, the newest "
            "first, and exit; FILE is then a container's name or id.",
        ),
    ] = False
    restores: Annotated[
        bool,
        typer.Option(
            "--restore",
            help="Restore what this run changed when the input ends, or on SIGTERM, SIGHUP or "
            "Ctrl-C.",
        ),
    ] = False
    installs_service: Annotated[
        bool,
        typer.Option(
            "--install-service",
            help="Run the pipe as a service of systemd, now and at each boot, which puts "
            "everything back when it stops; with --dry-run print its unit.",
        ),
    ] = False
    removes_service: Annotated[
        bool,
        typer.Option(
            "--remove-service", help="Stop that service, put everything back, and remove it."
        ),
    ] = False
    policy: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="Scheduling policy of the service, flowcon by default.",
            rich_help_panel=options.EXPERT,
        ),
    ] = None
    labels: Annotated[
        list[str],
        typer.Option(
            "--label",
            metavar="KEY[=VALUE]",
            help="Change only containers with this label. Repeatable.",
        ),
    ] = field(default_factory=list)
    names: Annotated[
        list[str],
        typer.Option(
            "--name",
            metavar="REGEX",
            help="Change only containers whose name matches. Repeatable: one match is enough.",
        ),
    ] = field(default_factory=list)
    max_changes: Annotated[
        int | None,
        typer.Option(
            min=0,
            metavar="N",
            help="Change at most N containers of a host in each plan.",
            rich_help_panel=options.EXPERT,
        ),
    ] = None
    max_age_s: Annotated[
        float | None,
        typer.Option(
            "--max-age",
            parser=options.duration,
            metavar="TIME",
            help="Refuse plans whose newest observation is older than this.",
            rich_help_panel=options.EXPERT,
        ),
    ] = None
    hold_s: Annotated[
        float | None,
        typer.Option(
            "--hold",
            parser=options.duration,
            metavar="TIME",
            help="Let the containers of a single plan take turns this long; by default until none "
            "waits for its turn. The turns of a stream end with it.",
            rich_help_panel=options.EXPERT,
        ),
    ] = None
    hosts: Hosts = field(default_factory=list)
    contexts: Contexts = field(default_factory=list)
    is_swarm: Swarm = False
    is_forced: Annotated[
        bool,
        typer.Option(
            "--force",
            help="Also change settings that somebody else has changed, and move jobs that have no "
            "checkpoint: they begin anew elsewhere.",
        ),
    ] = False
    beside: Annotated[
        int | None,
        typer.Option(
            parser=beside_process,
            metavar="PID",
            envvar="DLTOOLS_BESIDE",
            help="Write although another dl-apply writes to the same engine: process PID, or any.",
            rich_help_panel=options.EXPERT,
        ),
    ] = None
    deliver_directory: Annotated[
        Path | None,
        typer.Option(
            "--deliver-dir",
            metavar="DIR",
            envvar="DLTOOLS_DELIVER_DIR",
            help="Deliver models into DIR, a folder for each; by default none is delivered.",
            rich_help_panel=options.EXPERT,
        ),
    ] = None
    deliver_hook: Annotated[
        HookCommand | None,
        typer.Option(
            parser=hook_command,
            metavar="COMMAND",
            help="Run this command, without a shell, for each model delivered, with its folder as "
            "the last argument; it is killed after ten minutes.",
            rich_help_panel=options.EXPERT,
        ),
    ] = None
    tell: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Keep in FILE, for all users to read, which containers wait, and until when.",
        ),
    ] = None
    contact: Annotated[
        str, typer.Option(metavar="TEXT", help="Whom to ask, as the file of --tell says.")
    ] = ""
    lease_s: Annotated[
        float | None,
        typer.Option(
            "--lease",
            parser=options.duration,
            metavar="TIME",
            help="Undo what this run has set when no plan has come for this long, 0s for never; by "
            "default three intervals between the plans of a stream or the runs of dl-plan --state, "
            "at least 10 s.",
            rich_help_panel=options.EXPERT,
        ),
    ] = None
    patience_s: Patience = "60s"  # type: ignore[assignment]
    state_directory: StateDir = None
    format: RecordFormatOption = RecordFormat.AUTO
    is_verbose: Verbose = False
    quiet: Quiet = False
    version: Version = False

    def __post_init__(self) -> None:
        """Raise `BadParameter` for options that contradict each other."""
        tasks = (self.undoes and not self.releases, self.shows_status, self.shows_history)
        if sum(map(bool, (*tasks, self.releases))) > 1:
            raise typer.BadParameter(_ONE_TASK)
        if self.is_offline and not self.is_dry_run:
            raise typer.BadParameter("--offline needs --dry-run")
        if self.deliver_hook and self.deliver_directory is None:
            raise typer.BadParameter("--deliver-hook needs --deliver-dir")
        if self.is_offline and self.engines.are_named:
            raise typer.BadParameter("--offline asks no engine: leave --host, --context, --swarm")
        if self.task is Task.UNDO and self.input != "-":
            raise typer.BadParameter(f"{self.input}: --undo takes no plan")
        if self.contact and self.tell is None and not self.installs_service:
            raise typer.BadParameter("--contact needs --tell")
        if self.tell is not None and self.task is not Task.APPLY:
            raise typer.BadParameter("--tell is for a run that applies plans")
        if self.stops and self.task is not Task.UNDO:
            raise typer.BadParameter("--stop needs --undo")
        if self.stops and self.is_dry_run:
            raise typer.BadParameter("--stop ends a run: leave --dry-run")
        if self.releases and (self.is_dry_run or self.input != "-"):
            raise typer.BadParameter("--release takes no plan, and no --dry-run")
        if self.restores and self.task is not Task.APPLY:
            raise typer.BadParameter(_ONE_TASK)

    @property
    def task(self) -> Task:
        """What is to be done."""
        if self.releases:
            return Task.RELEASE
        if self.undoes or self.removes_service:
            return Task.UNDO
        if self.shows_status:
            return Task.SHOW_STATUS
        return Task.SHOW_HISTORY if self.shows_history else Task.APPLY

    @property
    def engines(self) -> Engines:
        """The engines that are named."""
        return Engines(self.hosts, self.contexts, is_swarm=self.is_swarm)

    @property
    def rules(self) -> Rules:
        """What may be changed; where they are forced, jobs without a checkpoint are moved, too.
        Raises `ConfigError` for a wrong expression."""
        from dltools.apply.refusals import Rules
        from dltools.probe.progress.pattern import compiled

        names = [compiled(one, "--name") for one in self.names]
        labels = tuple(self.labels)
        return Rules(labels, names, self.max_changes, self.max_age_s, is_forced=self.is_forced)
