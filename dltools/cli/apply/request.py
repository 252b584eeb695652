"""What dl-apply is asked for: its options, their defaults, and which contradict each other."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, auto
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from dltools.cli import options
from dltools.cli.formats import RecordFormat
from dltools.cli.options import EngineOptions, MoreMessages, expert_option, flag, option

if TYPE_CHECKING:
    from dltools.apply.refusals import Rules

_ONE_OPERATION = "give only one of --undo, --restore, --status, --history and --release"

_ONLY_OF_PLANS = "--label, --max-changes, --name and --tell are for a run that applies plans"


class Operation(Enum):
    """What dl-apply is to do."""

    APPLY = auto()
    CHECK_OFFLINE = auto()
    UNDO = auto()
    SHOW_STATUS = auto()
    SHOW_HISTORY = auto()
    RELEASE = auto()


_OF_PLANS = (Operation.APPLY, Operation.CHECK_OFFLINE)


def beside_process(text: str) -> int:
    """Read the number of a process, "any" as -1. Raises `BadParameter`."""
    if text == "any":
        return -1
    if not text.isascii() or not text.isdigit():
        raise typer.BadParameter(f"{text!r} is neither the number of a process nor any")
    return int(text)


@dataclass(frozen=True, kw_only=True)
class Request(MoreMessages, EngineOptions):
    """What to do, to which containers, in what way, and what is told of it. Times are seconds;
    `beside` is -1 for any process."""

    input: str = options.input_argument()
    is_dry_run: bool = flag("-n, --dry-run", "Check everything, but change nothing.")
    is_offline: bool = options.expert_flag(
        "--offline",
        "With --dry-run: ask no engine, and assume that each container is as the plan says.",
    )
    undoes: bool = flag("--undo", "Restore every container that dl-apply has changed, and exit.")
    stops: bool = flag(
        "--stop", "With --undo: first end the dl-apply that is running, as SIGTERM does."
    )
    shows_status: bool = flag(
        "--status",
        "Print every container that dl-apply has changed (settings before and now, since "
        "when, by which run) and every job on the move, and exit.",
    )
    releases: list[str] = option(
        "--release NAME",
        "Restore a container's settings, and leave it alone from now on, whatever plans say. "
        "With --undo: let plans change it again. Repeatable.",
        [],
    )
    shows_history: bool = flag(
        "--history",
        "Print every change, newest first: when, why, by which run, and how it ended; then exit. "
        "FILE is then a container's name or id.",
    )
    restores: bool = flag(
        "--restore",
        "Restore what this run changed when the input ends, or on SIGTERM, SIGHUP or Ctrl-C.",
    )
    installs_service: bool = flag(
        "--install-service",
        "Run the pipe as a systemd service, now and at each boot. The service restores all "
        "settings when it stops. With --dry-run: print its unit.",
    )
    removes_service: bool = flag(
        "--remove-service", "Stop that service, restore all settings, and remove it."
    )
    policy: str | None = expert_option(
        "--policy NAME", "Scheduling policy of the service; flowcon by default."
    )
    labels: list[str] = option(
        "--label KEY[=VALUE]", "Change only containers with this label. Repeatable.", []
    )
    names: list[str] = option(
        "--name REGEX",
        "Change only containers whose name matches. Repeatable: one match is enough.",
        [],
    )
    max_changes: int | None = expert_option(
        "--max-changes N", "Change at most N containers of a host in each plan.", min=0
    )
    max_age_s: float | None = expert_option(
        "--max-age TIME", "Refuse plans whose newest observation is older than this."
    )
    hold_s: float | None = expert_option(
        "--hold TIME",
        "Let the containers of a single plan take turns for this long; by default until none "
        "waits. The turns of a stream end with the stream.",
    )
    is_forced: bool = flag(
        "--force",
        "Also change settings that somebody else has changed, and move jobs that have no "
        "checkpoint: these start from scratch on the new host.",
    )
    beside: int | None = expert_option(
        "--beside PID",
        "Run beside another dl-apply that writes to the same engine: process PID, or any.",
        parser=beside_process,
        has_variable=True,
    )
    deliver_directory: Path | None = expert_option(
        "--deliver-dir DIR",
        "Deliver models into DIR, one archive each; by default none is delivered.",
        has_variable=True,
    )
    tell: Path | None = option(
        "--tell FILE", "List in FILE, for all users to read, which containers wait and until when."
    )
    contact: str = option("--contact TEXT", "Whom users may ask, for the file of --tell.", "")
    lease_s: float | None = expert_option(
        "--lease TIME",
        "Undo what this run has set when no plan has come for this long; 0s: never. The default "
        "is three times the interval between plans of a stream or runs of dl-plan --state, at "
        "least 10 s.",
    )
    format: RecordFormat = option(
        "--format",
        "Output format. auto: a table on a terminal, else JSON Lines.",
        RecordFormat.AUTO,
    )

    def __post_init__(self) -> None:
        """Raise `BadParameter` for options that contradict each other."""
        super().__post_init__()
        asked = (self.undoes or self.releases, self.shows_status, self.shows_history, self.restores)
        if sum(map(bool, asked)) > 1:
            raise typer.BadParameter(_ONE_OPERATION)
        if self.is_offline and not self.is_dry_run:
            raise typer.BadParameter("--offline needs --dry-run")
        if self.is_offline and self.names_engines:
            raise typer.BadParameter("--offline asks no engine: leave --host, --context, --swarm")
        if self.operation is Operation.UNDO and self.input != "-":
            raise typer.BadParameter(f"{self.input}: --undo takes no plan")
        if self.contact and self.tell is None and not self.installs_service:
            raise typer.BadParameter("--contact needs --tell")
        of_plans = (self.labels, self.names, self.max_changes is not None, self.tell)
        if any(of_plans) and self.operation not in _OF_PLANS:
            raise typer.BadParameter(_ONLY_OF_PLANS)
        if self.stops and self.operation is not Operation.UNDO:
            raise typer.BadParameter("--stop needs --undo")
        if self.stops and self.is_dry_run:
            raise typer.BadParameter("--stop ends a run: leave --dry-run")
        if self.releases and (self.is_dry_run or self.input != "-"):
            raise typer.BadParameter("--release takes no plan, and no --dry-run")

    @property
    def operation(self) -> Operation:
        """What is to be done."""
        if self.releases:
            return Operation.RELEASE
        if self.undoes or self.removes_service:
            return Operation.UNDO
        if self.shows_status:
            return Operation.SHOW_STATUS
        if self.shows_history:
            return Operation.SHOW_HISTORY
        return Operation.CHECK_OFFLINE if self.is_offline else Operation.APPLY

    @property
    def shows_table(self) -> bool:
        """Whether what is shown is a table, unless it was asked for otherwise."""
        return self.format is not RecordFormat.JSONL


def rules_of(request: Request) -> Rules:
    """Return what may be changed; where that is forced, jobs without a checkpoint are moved, too.
    Raises `ConfigError` for a wrong expression."""
    from dltools.apply.refusals import Rules
    from dltools.probe.progress.user_patterns import Expression

    names = [Expression(name, "--name") for name in request.names]
    bounds = (request.max_changes, request.max_age_s)
    return Rules(tuple(request.labels), names, *bounds, is_forced=request.is_forced)
