"""What a dl-probe command line asks for, validated. Sampling, logs and outputs go by it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

import typer

from dltools.cli.observation_formats import ObservationFormat
from dltools.cli.options import Engines
from dltools.notation.times import parse_time

_OF_DIAGNOSES = ("auto", "table", "jsonl")


@dataclass(frozen=True, slots=True)
class Selection:
    """Which containers and which progress to observe.

    `labels` and `names` select containers, `roles` are the values of --role, `user_from` that of
    --user-from. The rest selects progress: `metrics` to keep (none: all), `pattern` of log lines,
    `since_s` seconds of log history. `log_files` are the paths of the logs of containers, by their
    names.
    """

    labels: tuple[str, ...]
    names: tuple[str, ...]
    metrics: tuple[str, ...]
    pattern: str | None
    since_s: float
    roles: tuple[str, ...] = ()
    user_from: str = ""
    log_files: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Raise `BadParameter` for a --user-from that is none."""
        source = self.user_from
        if source and source != "container" and not source.removeprefix("label:") != source:
            raise typer.BadParameter("--user-from is container or label:KEY")
        if source == "label:":
            raise typer.BadParameter("--user-from label: needs the key of a label")


@dataclass(frozen=True, slots=True)
class Request:
    """What to sample, how often, and where to write it.

    Hosts that have not answered by `deadline_s` are not in a sample.
    `interval_s` is None for a single sample; `window_s` lies between its two counter samples.
    `is_diagnosis`: say what can be seen here, and what stands in the way, instead.
    `logs` are saved logs to read instead of containers; they began at `logs_start`;
    `explained_line` is the number of the line of a log to explain. `notify` is the command that
    gets notices, None without one.
    """

    selection: Selection
    engines: Engines
    deadline_s: float
    interval_s: float | None
    count: int | None
    duration_s: float | None
    window_s: float
    logs: tuple[str, ...]
    logs_start: datetime | None
    lists_metrics: bool
    is_diagnosis: bool
    explained_line: int | None
    output: str | None
    rotate_s: float
    patience_s: float
    state_directory: Path | None
    format: ObservationFormat
    is_verbose: bool
    notify: str | None = None

    def __post_init__(self) -> None:
        """Raise `BadParameter` for options that contradict each other."""
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
        if self.logs and self.selection.roles:
            raise typer.BadParameter("--role is for containers: give it to dl-plan")
        if self.selection.log_files and not any(map(takes_log_files, self.engines.hosts)):
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

    @property
    def is_stream(self) -> bool:
        """Whether samples are taken again and again."""
        return self.interval_s is not None


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


def parse_logs(texts: Sequence[str]) -> tuple[tuple[str, ...], int | None]:
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
        return (log,), int(line)
    return tuple(texts), None


def parse_start(text: str | None) -> datetime | None:
    """Return the time that --start gives, in ISO 8601; without a zone it is UTC. Raises
    `BadParameter`."""
    if text is None:
        return None
    try:
        return parse_time(text.strip(), UTC)
    except ValueError as error:
        raise typer.BadParameter(f"{text!r} is not a time such as 2026-01-31T12:00Z") from error
    except OverflowError as error:
        raise typer.BadParameter(f"{text!r} is at the end of the calendar") from error
