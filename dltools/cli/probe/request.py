"""What dl-probe is asked for: its options, their defaults, and which contradict each other."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any

import typer

from dltools.cli import options
from dltools.cli.formats import format_option
from dltools.cli.observation_formats import ObservationFormat
from dltools.cli.options import (
    Contexts,
    Engines,
    Hosts,
    Patience,
    Quiet,
    Roles,
    StateDir,
    Swarm,
    Verbose,
    Version,
    duration,
)
from dltools.notation.times import parse_time

_OF_DIAGNOSES = ("auto", "table", "jsonl")


def takes_log_files(url: str) -> bool:
    """Tell whether the engine at an address takes the files of --log."""
    return url.partition(":")[0] in ("cgroup", "slurm")


def parse_log_files(texts: Iterable[str]) -> dict[str, tuple[str, ...]]:
    """Return the paths that values of --log give, by the names of containers. Raises
    `BadParameter`."""
    found: dict[str, tuple[str, ...]] = {}
    for text in texts:
        name, equals, path = text.partition("=")
        if not (name and equals and path):
            raise typer.BadParameter(f"--log {text!r} is not NAME=PATH")
        found[name] = (*found.get(name, ()), path)
    return found


def parse_logs(texts: list[str]) -> tuple[list[str], int | None]:
    """Return the paths of saved logs, and the number of the line to explain where one is named so:
    LOG:LINE, unless there is a file of that name. Raises `BadParameter` where others are beside it.
    """
    for text in texts:
        log, _, line = text.rpartition(":")
        is_line = line.isdecimal() and int(line) > 0 and Path(log).exists()
        if not is_line or Path(text).exists():
            continue
        if len(texts) > 1:
            raise typer.BadParameter(f"{text} explains one line: give no other LOG beside it")
        return [log], int(line)
    return texts, None


def parse_start(text: str) -> datetime:
    """Return the time that --start gives, in ISO 8601; without a zone it is UTC. Raises
    `BadParameter`."""
    try:
        return parse_time(text.strip(), UTC)
    except ValueError as error:
        raise typer.BadParameter(f"{text!r} is not a time such as 2026-01-31T12:00Z") from error
    except OverflowError as error:
        raise typer.BadParameter(f"{text!r} is at the end of the calendar") from error


@dataclass(kw_only=True)
class Request:
    """What to sample, how often, and where to write it. Times are seconds.

    `log_files` are the paths of the logs of containers, by name. `explained_line` is the number of
    the line of a log to explain, None for none.
    """

    logs: Annotated[
        list[str],
        typer.Argument(
            metavar="[LOG[:LINE]]...",
            help="Saved logs to read progress from, instead of containers; - is standard input. "
            "LOG:LINE says how the line of that number was read: what was found in it, what not "
            "and why, and which label helps.",
        ),
    ] = field(default_factory=list)
    interval_s: Annotated[
        float | None,
        typer.Option(
            "-i",
            "--interval",
            parser=duration,
            metavar="TIME",
            help="Take a sample every TIME; by default a single one.",
        ),
    ] = None
    count: Annotated[
        int | None,
        typer.Option(
            "-c", "--count", min=1, metavar="COUNT", help="Stop after COUNT samples; needs -i."
        ),
    ] = None
    duration_s: Annotated[
        float | None,
        typer.Option(
            "--duration", parser=duration, metavar="TIME", help="Stop after TIME; needs -i."
        ),
    ] = None
    since_s: Annotated[
        float,
        typer.Option(
            "--since",
            parser=duration,
            metavar="TIME",
            envvar="DLTOOLS_SINCE",
            help="Read the newest part of each log at first, as long as this.",
            rich_help_panel=options.EXPERT,
        ),
    ] = "10m"  # type: ignore[assignment]
    window_s: Annotated[
        float,
        typer.Option(
            "--window",
            parser=duration,
            metavar="TIME",
            envvar="DLTOOLS_WINDOW",
            help="Take two samples of the counters, TIME apart, so that rates are current ones and "
            "not means of the container's whole life. 0s: one sample.",
            rich_help_panel=options.EXPERT,
        ),
    ] = "0s"  # type: ignore[assignment]
    labels: Annotated[
        list[str],
        typer.Option(
            "--label", metavar="KEY[=VALUE]", help="Select containers with this label. Repeatable."
        ),
    ] = field(default_factory=list)
    names: Annotated[
        list[str],
        typer.Option(
            "--name",
            metavar="REGEX",
            help="Select containers whose name matches, as docker ps --filter name does. "
            "Repeatable: one match is enough.",
        ),
    ] = field(default_factory=list)
    pattern: Annotated[
        str | None,
        typer.Option(
            metavar="REGEX",
            envvar="DLTOOLS_PATTERN",
            help="Find progress in logs by the named groups of REGEX, such as "
            "'val=(?P<val_loss>[0-9.]+)'. The label dltools.pattern overrides it.",
            rich_help_panel=options.EXPERT,
        ),
    ] = None
    log: Annotated[
        list[str],
        typer.Option(
            metavar="NAME=PATH",
            help="Read the log of the container NAME from the file PATH, with --host cgroup: or "
            "slurm:, by default from the files into which its processes write. Repeatable.",
            rich_help_panel=options.EXPERT,
        ),
    ] = field(default_factory=list)
    roles: Roles = field(default_factory=list)
    user_from: Annotated[
        str,
        typer.Option(
            metavar="SOURCE",
            envvar="DLTOOLS_USER_FROM",
            help="Take whose job a container is, where its label dltools.user does not say so, "
            "from SOURCE: container, the user that it runs as, or label:KEY, another label.",
            rich_help_panel=options.EXPERT,
        ),
    ] = ""
    metrics: Annotated[
        list[str],
        typer.Option(
            "--metric", metavar="NAME", help="Keep progress of this metric only. Repeatable."
        ),
    ] = field(default_factory=list)
    logs_start: Annotated[
        Any,
        typer.Option(
            "--start",
            parser=parse_start,
            metavar="WHEN",
            help="Time at which the saved logs began, such as 2026-01-31T12:00Z; for logs that "
            "print only elapsed time or no year.  [default: 1970-01-01T00:00Z]",
            rich_help_panel=options.EXPERT,
        ),
    ] = None
    lists_metrics: Annotated[
        bool,
        typer.Option(
            "--list-metrics",
            help="List the metrics found, with their log family and number of points; say which "
            "one judges each job and why, and what was dropped as noise.",
        ),
    ] = False
    is_diagnosis: Annotated[
        bool,
        typer.Option(
            "--doctor",
            help="Say what can be seen of the engine and of each container, what not, what "
            "dl-apply has left, and what costs trainings time, with the command to type next; "
            "and exit.",
        ),
    ] = False
    notify: Annotated[
        str | None,
        typer.Option(
            metavar="CMD",
            help="Run CMD, without a shell, when a job finishes, fails, diverges, stalls, runs out "
            "of memory or meets its target, or holds a GPU and leaves it idle; it gets JSON on "
            "standard input. Once for each container; needs -i.",
        ),
    ] = None
    output: Annotated[
        str | None,
        typer.Option(
            "-o",
            "--output",
            metavar="FILE|DIR/",
            help="Write to FILE, or add to the recordings in DIR, which are kept by day and host. "
            "FILE is written completely or not at all; a stream is written as it comes.",
        ),
    ] = None
    rotate_s: Annotated[
        float,
        typer.Option(
            "--rotate",
            parser=duration,
            metavar="TIME",
            envvar="DLTOOLS_ROTATE",
            help="Begin a new file in DIR every TIME, in a stream.",
            rich_help_panel=options.EXPERT,
        ),
    ] = "1h"  # type: ignore[assignment]
    hosts: Hosts = field(default_factory=list)
    contexts: Contexts = field(default_factory=list)
    is_swarm: Swarm = False
    deadline_s: Annotated[
        float,
        typer.Option(
            "--deadline",
            parser=duration,
            metavar="TIME",
            envvar="DLTOOLS_DEADLINE",
            help="Wait this long for each of several hosts; a sample lacks those that are slower.",
            rich_help_panel=options.EXPERT,
        ),
    ] = "10s"  # type: ignore[assignment]
    patience_s: Patience = "60s"  # type: ignore[assignment]
    state_directory: StateDir = None
    format: Annotated[
        ObservationFormat,
        format_option(
            "the name of --output decides; else a table on a terminal, Parquet, or Arrow for a "
            "stream",
            "DLTOOLS_FORMAT",
        ),
    ] = ObservationFormat.AUTO
    is_verbose: Verbose = False
    quiet: Quiet = False
    version: Version = False

    def __post_init__(self) -> None:
        """Raise `BadParameter` for options that contradict each other."""
        self.logs, self.explained_line = parse_logs(self.logs)
        self.log_files = parse_log_files(self.log)
        if not self.is_stream and (self.count is not None or self.duration_s is not None):
            raise typer.BadParameter("--count and --duration need --interval")
        if not self.is_stream and self.notify is not None:
            raise typer.BadParameter("--notify needs --interval")
        if self.interval_s is not None and self.interval_s <= 0:
            raise typer.BadParameter("--interval must be more than 0")
        if self.logs and self.is_stream:
            raise typer.BadParameter("--interval is for containers: a saved log is read once")
        if self.logs and self.engines.are_named:
            raise typer.BadParameter("saved logs need no engine: leave --host, --context, --swarm")
        if self.logs and self.roles:
            raise typer.BadParameter("--role is for containers: give it to dl-plan")
        if self.log_files and not any(map(takes_log_files, self.engines.hosts)):
            raise typer.BadParameter("--log is for --host cgroup: and slurm:")
        if self.deadline_s <= 0:
            raise typer.BadParameter("--deadline must be more than 0")
        if self.logs_start is not None and not self.logs:
            raise typer.BadParameter("--start is for saved logs: give a LOG")
        if self.lists_metrics and (self.is_stream or self.output is not None):
            raise typer.BadParameter("--list-metrics excludes --interval and --output")
        if self.is_diagnosis:
            if self.logs or self.is_stream or self.lists_metrics or self.output is not None:
                raise typer.BadParameter(
                    "--doctor excludes LOG, --interval, --list-metrics and --output"
                )
            if self.format.value not in _OF_DIAGNOSES:
                raise typer.BadParameter("--doctor prints lines, or --format jsonl")
        if self.explained_line is not None and (self.lists_metrics or self.output is not None):
            raise typer.BadParameter("LOG:LINE excludes --list-metrics and --output")
        source = self.user_from
        if source and source != "container" and not source.removeprefix("label:") != source:
            raise typer.BadParameter("--user-from is container or label:KEY")
        if source == "label:":
            raise typer.BadParameter("--user-from label: needs the key of a label")

    @property
    def is_stream(self) -> bool:
        """Whether samples are taken again and again."""
        return self.interval_s is not None

    @property
    def engines(self) -> Engines:
        """The engines that are named."""
        return Engines(self.hosts, self.contexts, is_swarm=self.is_swarm)
