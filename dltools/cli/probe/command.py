"""The command line of dl-probe: its options, and the exit codes that it can give."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from dltools.cli import options
from dltools.cli.exits import Exit, exit_codes, guarded, run
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


@guarded
def probe(
    context: typer.Context,
    logs: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[LOG[:LINE]]...",
            help="Saved logs to read progress from, instead of containers; - is standard input. "
            "LOG:LINE says how the line of that number was read: what was found in it, what not "
            "and why, and which label helps.",
        ),
    ] = None,
    interval: Annotated[
        float | None,
        typer.Option(
            "-i",
            "--interval",
            parser=duration,
            metavar="TIME",
            help="Take a sample every TIME; by default a single one.",
        ),
    ] = None,
    count: Annotated[
        int | None,
        typer.Option(
            "-c", "--count", min=1, metavar="COUNT", help="Stop after COUNT samples; needs -i."
        ),
    ] = None,
    duration_: Annotated[
        float | None,
        typer.Option(
            "--duration", parser=duration, metavar="TIME", help="Stop after TIME; needs -i."
        ),
    ] = None,
    since: Annotated[
        float,
        typer.Option(
            parser=duration,
            metavar="TIME",
            envvar="DLTOOLS_SINCE",
            help="Read the newest part of each log at first, as long as this.",
            rich_help_panel=options.EXPERT,
        ),
    ] = "10m",  # type: ignore[assignment]
    window: Annotated[
        float,
        typer.Option(
            parser=duration,
            metavar="TIME",
            envvar="DLTOOLS_WINDOW",
            help="Take two samples of the counters, TIME apart, so that rates are current ones and "
            "not means of the container's whole life. 0s: one sample.",
            rich_help_panel=options.EXPERT,
        ),
    ] = "0s",  # type: ignore[assignment]
    label: Annotated[
        list[str] | None,
        typer.Option(metavar="KEY[=VALUE]", help="Select containers with this label. Repeatable."),
    ] = None,
    name: Annotated[
        list[str] | None,
        typer.Option(
            metavar="REGEX",
            help="Select containers whose name matches, as docker ps --filter name does. "
            "Repeatable: one match is enough.",
        ),
    ] = None,
    pattern: Annotated[
        str | None,
        typer.Option(
            metavar="REGEX",
            envvar="DLTOOLS_PATTERN",
            help="Find progress in logs by the named groups of REGEX, such as "
            "'val=(?P<val_loss>[0-9.]+)'. The label dltools.pattern overrides it.",
            rich_help_panel=options.EXPERT,
        ),
    ] = None,
    log: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME=PATH",
            help="Read the log of the container NAME from the file PATH, with --host cgroup: or "
            "slurm:, by default from the files into which its processes write. Repeatable.",
            rich_help_panel=options.EXPERT,
        ),
    ] = None,
    role: Roles = None,
    user_from: Annotated[
        str,
        typer.Option(
            metavar="SOURCE",
            envvar="DLTOOLS_USER_FROM",
            help="Take whose job a container is, where its label dltools.user does not say so, "
            "from SOURCE: container, the user that it runs as, or label:KEY, another label.",
            rich_help_panel=options.EXPERT,
        ),
    ] = "",
    metric: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="Keep progress of this metric only. Repeatable."),
    ] = None,
    start: Annotated[
        str | None,
        typer.Option(
            metavar="WHEN",
            help="Time at which the saved logs began, such as 2026-01-31T12:00Z; for logs that "
            "print only elapsed time or no year.  [default: 1970-01-01T00:00Z]",
            rich_help_panel=options.EXPERT,
        ),
    ] = None,
    list_metrics: Annotated[
        bool,
        typer.Option(
            "--list-metrics",
            help="List the metrics found, with their log family and number of points; say which "
            "one judges each job and why, and what was dropped as noise.",
        ),
    ] = False,
    doctor: Annotated[
        bool,
        typer.Option(
            "--doctor",
            help="Say what can be seen of the engine and of each container, what not, what "
            "dl-apply has left, and what costs trainings time, with the command to type next; "
            "and exit.",
        ),
    ] = False,
    notify: Annotated[
        str | None,
        typer.Option(
            metavar="CMD",
            help="Run CMD, without a shell, when a job finishes, fails, diverges, stalls, runs out "
            "of memory or meets its target, or holds a GPU and leaves it idle; it gets JSON on "
            "standard input. Once for each container; needs -i.",
        ),
    ] = None,
    output: Annotated[
        str | None,
        typer.Option(
            "-o",
            "--output",
            metavar="FILE|DIR/",
            help="Write to FILE, or add to the recordings in DIR, which are kept by day and host. "
            "FILE is written completely or not at all; a stream is written as it comes.",
        ),
    ] = None,
    rotate: Annotated[
        float,
        typer.Option(
            parser=duration,
            metavar="TIME",
            envvar="DLTOOLS_ROTATE",
            help="Begin a new file in DIR every TIME, in a stream.",
            rich_help_panel=options.EXPERT,
        ),
    ] = "1h",  # type: ignore[assignment]
    host: Hosts = None,
    context_: Contexts = None,
    swarm: Swarm = False,
    deadline: Annotated[
        float,
        typer.Option(
            parser=duration,
            metavar="TIME",
            envvar="DLTOOLS_DEADLINE",
            help="Wait this long for each of several hosts; a sample lacks those that are slower.",
            rich_help_panel=options.EXPERT,
        ),
    ] = "10s",  # type: ignore[assignment]
    patience: Patience = "60s",  # type: ignore[assignment]
    state_dir: StateDir = None,
    format_: Annotated[
        ObservationFormat,
        format_option(
            "the name of --output decides; else a table on a terminal, Parquet, or Arrow for a "
            "stream",
            "DLTOOLS_FORMAT",
        ),
    ] = ObservationFormat.AUTO,
    verbose: Verbose = False,
    quiet: Quiet = False,  # noqa: ARG001
    version: Version = False,  # noqa: ARG001
) -> None:
    """Measure the running containers of Docker hosts: CPU, memory, GPU, limits, progress.

    Prints observations, which dl-plan reads: Parquet with one row per host, container, progress
    point and event; with -i an Arrow stream with one batch per sample. Given LOG, it reads the
    progress in saved logs instead.
    """
    _leave_numpy_out()
    from dltools.cli.observation_formats import choose_observation_format, option_before_environment
    from dltools.cli.probe.request import (
        Request,
        Selection,
        parse_log_files,
        parse_logs,
        parse_start,
    )
    from dltools.cli.probe.run import run_request

    wanted = option_before_environment(format_, output, context)
    selection = Selection(
        labels=tuple(label or ()),
        names=tuple(name or ()),
        metrics=tuple(metric or ()),
        pattern=pattern,
        since_s=since,
        roles=tuple(role or ()),
        user_from=user_from,
        log_files=parse_log_files(log or ()),
    )
    saved_logs, explained_line = parse_logs(logs or ())
    request = Request(
        selection=selection,
        interval_s=interval,
        count=count,
        duration_s=duration_,
        engines=Engines(tuple(host or ()), tuple(context_ or ()), is_swarm=swarm),
        deadline_s=deadline,
        window_s=window,
        logs=saved_logs,
        logs_start=parse_start(start),
        lists_metrics=list_metrics,
        is_diagnosis=doctor,
        explained_line=explained_line,
        output=output,
        rotate_s=rotate,
        patience_s=patience,
        state_directory=state_dir,
        is_verbose=verbose,
        notify=notify,
        format=wanted
        if doctor
        else choose_observation_format(wanted, output, is_stream=interval is not None),
    )
    run_request(request)


def _leave_numpy_out() -> None:
    """Let Arrow do without numpy and pandas: it imports them where they are installed, which takes
    0.2 s, and dl-probe needs neither."""
    sys.modules.setdefault("numpy", None)  # type: ignore[arg-type]


app = options.app(probe)


def main() -> None:
    """Run dl-probe."""
    run(app)


EXITS = exit_codes(
    {
        Exit.OK: "Success, also when no container runs.",
        Exit.PARTIAL: "Of several hosts one did not answer: a sample lacks it. Or --doctor warns.",
        Exit.DATA: "A log or a recording is malformed.",
        Exit.UNAVAILABLE: "No engine answers, or --doctor has found a failure.",
        Exit.PERMISSION: "Permission denied: join the group docker, or be root.",
        Exit.CONFIG: "A setting is wrong, such as a pattern that is no regular expression or a "
        "DOCKER_HOST that is no address.",
    }
)
