"""What dl-probe is asked for: its options, their defaults, and which contradict each other."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import typer

from dltools.cli import options
from dltools.cli.formats import ObservationFormat
from dltools.cli.options import EngineOptions, MoreMessages, argument, expert_option, flag, option
from dltools.notation.times import parse_time

_OF_DIAGNOSES = ("auto", "table", "jsonl")


def parse_log_files(texts: Iterable[str]) -> dict[str, tuple[str, ...]]:
    """Return the paths that values of --log give, by the names of containers. Raises
    `BadParameter`."""
    paths: dict[str, tuple[str, ...]] = {}
    for text in texts:
        name, equals, path = text.partition("=")
        if not (name and equals and path):
            raise typer.BadParameter(f"--log {text!r} is not NAME=PATH")
        paths[name] = (*paths.get(name, ()), path)
    return paths


def parse_start(text: str) -> datetime:
    """Return the time that --start gives, in ISO 8601; without a zone it is UTC. Raises
    `BadParameter`."""
    try:
        return parse_time(text.strip(), UTC)
    except ValueError as error:
        raise typer.BadParameter(f"{text!r} is not a time such as 2026-01-31T12:00Z") from error
    except OverflowError as error:
        raise typer.BadParameter(f"{text!r} is at the end of the calendar") from error


@dataclass(frozen=True, kw_only=True)
class Request(MoreMessages, EngineOptions):
    """What to sample, how often, and where to write it. Times are seconds."""

    logs: list[str] = argument(
        "[LOG]...",
        "Saved logs to read progress from, instead of containers; - is standard input.",
        [],
    )
    interval_s: float | None = option(
        "-i, --interval TIME", "Take a sample every TIME; by default only one."
    )
    count: int | None = option("-c, --count COUNT", "Stop after COUNT samples; needs -i.", min=1)
    duration_s: float | None = option("--duration TIME", "Stop after TIME; needs -i.")
    since_s: float = expert_option(
        "--since TIME", "How far back to read each log at the start.", "10m", has_variable=True
    )
    window_s: float = expert_option(
        "--window TIME",
        "Read the counters twice, TIME apart, so that rates are current and not averages over the "
        "container's whole life. 0s: read them once.",
        "0s",
        has_variable=True,
    )
    labels: list[str] = option(
        "--label KEY[=VALUE]", "Select containers with this label. Repeatable.", []
    )
    names: list[str] = option(
        "--name REGEX",
        "Select containers whose name matches, as docker ps --filter name does. Repeatable: "
        "one match is enough.",
        [],
    )
    pattern: str | None = expert_option(
        "--pattern REGEX",
        "Find progress in logs by the named groups of REGEX, such as "
        "'val=(?P<val_loss>[0-9.]+)'. The label dltools.pattern overrides it.",
        has_variable=True,
    )
    log: list[str] = expert_option(
        "--log NAME=PATH",
        "With --host cgroup: or slurm:, read the log of container NAME from the file PATH; by "
        "default from the files that its processes write. Repeatable.",
        [],
    )
    roles: list[str] = options.roles_option()
    user_from: str = expert_option(
        "--user-from SOURCE",
        "Where to find the user of a container that has no label dltools.user: container (the "
        "user that it runs as) or label:KEY (another label).",
        "",
        has_variable=True,
    )
    logs_start: Any = expert_option(
        "--start WHEN",
        "When the saved logs began, such as 2026-01-31T12:00Z; for logs that print only elapsed "
        "time or no year.  [default: 1970-01-01T00:00Z]",
        parser=parse_start,
    )
    lists_metrics: bool = flag(
        "--list-metrics",
        "List the metrics found, with their log family and number of points; say which metric "
        "judges each job and why, and what was dropped as noise.",
    )
    is_diagnosis: bool = flag(
        "--doctor",
        "Check the engine and each container, and exit: print what dl-probe can and cannot see, "
        "what dl-apply has left behind, what slows trainings, and the command to type next.",
    )
    notify: Any = option(
        "--notify CMD",
        "Run CMD, without a shell, when a job finishes, fails, diverges, stalls, runs out of "
        "memory, meets its target, or holds an idle GPU. CMD gets JSON on standard input, once per "
        "container and event. Needs -i.",
        parser=options.command,
    )
    output: str | None = option(
        "-o, --output FILE|DIR/",
        "Write to FILE, or add to the recordings in DIR, which are kept by day and host. FILE "
        "appears complete or not at all; a stream is written as it comes.",
    )
    rotate_s: float = expert_option(
        "--rotate TIME", "In a stream, begin a new file in DIR every TIME.", "1h", has_variable=True
    )
    deadline_s: float = expert_option(
        "--deadline TIME",
        "With several hosts, wait this long for each; a sample leaves out slower ones.",
        "10s",
        has_variable=True,
    )
    format: ObservationFormat = option(
        "--format",
        "Output format. auto: the name of --output decides; else a table on a terminal, "
        "Parquet, or Arrow for a stream.",
        ObservationFormat.AUTO,
    )

    def __post_init__(self) -> None:
        """Raise `BadParameter` for options that contradict each other."""
        super().__post_init__()
        if not self.is_stream and (self.count is not None or self.duration_s is not None):
            raise typer.BadParameter("--count and --duration need --interval")
        if not self.is_stream and self.notify is not None:
            raise typer.BadParameter("--notify needs --interval")
        if self.interval_s is not None and self.interval_s <= 0:
            raise typer.BadParameter("--interval must be more than 0")
        if self.logs and self.is_stream:
            raise typer.BadParameter("--interval is for containers: a saved log is read once")
        if self.logs and self.names_engines:
            raise typer.BadParameter("saved logs need no engine: leave --host, --context, --swarm")
        if self.logs and self.roles:
            raise typer.BadParameter("--role is for containers: give it to dl-plan")
        if self.log_files:
            from dltools.engine.registry import takes_log_files

            if not any(map(takes_log_files, self.hosts)):
                raise typer.BadParameter("--log is for --host cgroup: and slurm:")
        if self.deadline_s <= 0:
            raise typer.BadParameter("--deadline must be more than 0")
        if self.logs_start is not None and not self.logs:
            raise typer.BadParameter("--start is for saved logs: give a LOG")
        if self.lists_metrics and (self.is_stream or self.output is not None):
            raise typer.BadParameter("--list-metrics excludes --interval and --output")
        self._check_diagnosis()
        if not re.fullmatch("|container|label:.+", self.user_from):
            raise typer.BadParameter("--user-from is container or label:KEY")

    @property
    def log_files(self) -> dict[str, tuple[str, ...]]:
        """The paths of the logs of containers, by name. Raises `BadParameter`."""
        return parse_log_files(self.log)

    def _check_diagnosis(self) -> None:
        if not self.is_diagnosis:
            return
        if self.logs or self.is_stream or self.lists_metrics or self.output is not None:
            raise typer.BadParameter("--doctor excludes LOG, -i, --list-metrics and --output")
        if self.format.value not in _OF_DIAGNOSES:
            raise typer.BadParameter("--doctor prints lines, or --format jsonl")

    @property
    def is_stream(self) -> bool:
        """Whether samples are taken again and again."""
        return self.interval_s is not None
