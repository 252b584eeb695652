"""dl-probe: measure the containers of one Docker host."""

from __future__ import annotations

import gc
import sys
import threading
import time
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dltools.cli import options
from dltools.cli.console import make_console
from dltools.cli.exits import complain, guarded, run
from dltools.cli.formats import by_name as format_of
from dltools.cli.input_streams import open_log
from dltools.cli.observation_formats import SUFFIXES, ObservationFormat
from dltools.cli.options import Patience, StateDir, Verbose, Version, duration
from dltools.cli.probe.outputs import chosen, opened

if TYPE_CHECKING:
    from datetime import datetime

    from dltools.observations.formats.base import Writer
    from dltools.observations.table import Row
    from dltools.probe.progress import Pattern
    from dltools.probe.sampler import Sampler

_AGAIN_S = 0.5
"""How often an engine that is away is asked again."""


@guarded
def probe(
    context: typer.Context,
    interval: Annotated[
        float | None,
        typer.Option(
            "-i",
            "--interval",
            parser=duration,
            metavar="TIME",
            help="Sample again and again, TIME apart. Without it: once.",
        ),
    ] = None,
    count: Annotated[
        int | None,
        typer.Option(
            "-n", "--count", min=1, metavar="COUNT", help="Stop after this many samples; needs -i."
        ),
    ] = None,
    duration: Annotated[
        float | None,
        typer.Option(parser=duration, metavar="TIME", help="Stop after this long; needs -i."),
    ] = None,
    since: Annotated[
        float,
        typer.Option(
            parser=duration,
            metavar="TIME",
            envvar="DLTOOLS_SINCE",
            help="How much of the log history to read at first.",
        ),
    ] = "10m",  # type: ignore[assignment]
    window: Annotated[
        float,
        typer.Option(
            parser=duration,
            metavar="TIME",
            envvar="DLTOOLS_WINDOW",
            help="Take two counter samples this far apart, so that rates are of now and "
            "not of the container's whole life. 0: one sample.",
        ),
    ] = "0",  # type: ignore[assignment]
    label: Annotated[
        list[str] | None,
        typer.Option(metavar="KEY[=VALUE]", help="Only containers with this label. Repeatable."),
    ] = None,
    name: Annotated[
        list[str] | None,
        typer.Option(
            metavar="REGEX",
            help="Only containers whose name matches, as docker ps "
            "--filter name has it. Repeatable: any of them.",
        ),
    ] = None,
    pattern: Annotated[
        str | None,
        typer.Option(
            metavar="REGEX",
            envvar="DLTOOLS_PATTERN",
            help="Find progress in logs by the named groups of REGEX, such as "
            "'val=(?P<val_loss>[0-9.]+)'. The label dltools.pattern wins.",
        ),
    ] = None,
    metric: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="Keep progress of this metric only. Repeatable."),
    ] = None,
    from_log: Annotated[
        list[str] | None,
        typer.Option(
            metavar="FILE",
            help="Read progress from a saved log instead of containers; - is standard input. "
            "Repeatable.",
        ),
    ] = None,
    start: Annotated[
        str | None,
        typer.Option(
            metavar="WHEN",
            help="When the saved logs began, such as 2026-01-31T12:00Z, for those that tell only "
            "elapsed time or no year.  [default: 1970-01-01T00:00Z]",
        ),
    ] = None,
    list_metrics: Annotated[
        bool,
        typer.Option(
            "--list-metrics", help="Say what progress is found, by which family, and how much."
        ),
    ] = False,
    output: Annotated[
        str | None,
        typer.Option(
            "-o",
            "--output",
            metavar="FILE|DIR/",
            help="Write to FILE, whole or not at all but for a stream; or add to the recordings "
            "in DIR, which are kept by day and host.",
        ),
    ] = None,
    rotate: Annotated[
        float,
        typer.Option(
            parser=duration,
            metavar="TIME",
            envvar="DLTOOLS_ROTATE",
            help="Begin a new file in DIR this often, in a stream.",
        ),
    ] = "1h",  # type: ignore[assignment]
    compact: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR", help="Merge the small files of a directory of recordings, and stop."
        ),
    ] = None,
    patience: Patience = "60",  # type: ignore[assignment]
    state_dir: StateDir = None,
    format_: Annotated[
        ObservationFormat,
        typer.Option(
            "--format",
            envvar="DLTOOLS_FORMAT",
            help="auto: as the name of --output ends; else a table on a terminal, Parquet, or "
            "Arrow for a stream.",
        ),
    ] = ObservationFormat.AUTO,
    verbose: Verbose = False,
    version: Version = False,  # noqa: ARG001
) -> None:
    """Measure the running containers of a Docker host: CPU, memory, GPU, limits, progress.

    Prints observations, a table with a row per node, container, progress point and event, in
    Parquet; with -i an Arrow stream with a batch per sample. dl-plan reads both.
    """  # fmt: skip
    # Arrow imports numpy and pandas where they are installed, and uses neither here: 0.2 s.
    sys.modules.setdefault("numpy", None)  # type: ignore[arg-type]
    if compact is not None:
        _compact(compact)
        return
    if interval is None and (count is not None or duration is not None):
        raise typer.BadParameter("--count and --duration need --interval")
    if interval is not None and interval <= 0:
        raise typer.BadParameter("--interval must be more than 0")
    if from_log and interval is not None:
        raise typer.BadParameter("--from-log reads a log once: --interval does not go with it")
    if start is not None and not from_log:
        raise typer.BadParameter("--start needs --from-log")
    if list_metrics and (interval is not None or output is not None):
        raise typer.BadParameter("--list-metrics goes with neither --interval nor --output")
    streaming = interval is not None
    format_ = chosen(_asked(format_, output, context), output, streaming=streaming)

    from dltools.probe.progress import Pattern
    from dltools.probe.progress.expressions import compiled

    regex = Pattern(pattern) if pattern else None
    names = tuple(compiled(one, "--name") for one in name or ())
    if from_log:
        logs = _saved_logs(from_log, regex, options.moment(start) if start else None)
        if list_metrics:
            _print_metrics(_picked(logs, metric))
            return
        with opened(format_, output, streaming=False, rotate=rotate, since=since) as writer:
            _write(writer, _picked(logs, metric), verbose)
        return

    # The engine's answers take as long as importing Arrow: both at once.
    threading.Thread(target=import_module, args=("pyarrow.parquet",), daemon=True).start()
    from dltools.engine import state_directory
    from dltools.engine.containers import Engine
    from dltools.probe.sampler import Options, Sampler

    filters = {key: value for key, value in (("label", label), ("name", name)) if value}
    asked = Options(filters, since, regex, frozenset(metric or ()), names,
                    state_directory.all_directories(state_dir))  # fmt: skip
    sampler = Sampler(Engine(), asked)
    if list_metrics:
        _print_metrics(sampler.sample())
        return
    with opened(format_, output, streaming=streaming, rotate=rotate, since=since) as writer:
        if interval is None:
            _once(sampler, writer, window, verbose)
        else:
            _stream(sampler, writer, interval, count, duration, patience, verbose)


def _asked(
    format_: ObservationFormat, output: str | None, context: typer.Context
) -> ObservationFormat:
    """Return what --format asks for; before DLTOOLS_FORMAT, a default, the name of a file goes."""
    source = context.get_parameter_source("format_")
    if output is None or source is None or source.name != "ENVIRONMENT":
        return format_
    by_name = format_of(ObservationFormat.AUTO, output, SUFFIXES)
    return format_ if by_name is ObservationFormat.AUTO else by_name


def _saved_logs(files: list[str], regex: Pattern | None, start: datetime | None) -> list[Row]:
    from dltools.probe import replay
    from dltools.probe.progress import Automatic

    rows: list[Row] = []
    for file, name in zip(files, replay.names(files), strict=True):
        with open_log(file) as stream:
            rows += replay.observations(stream, name, regex or Automatic(), start or replay.START)
    if not rows:
        complain("no progress found in " + ", ".join(files))
    return rows


def _picked(rows: list[Row], metrics: list[str] | None) -> list[Row]:
    return rows if not metrics else [row for row in rows if row["metric"] in metrics]


def _print_metrics(rows: list[Row]) -> None:
    from dltools.cli.probe.tables import metrics_table

    console = make_console()
    progress = (row for row in rows if row["kind"] == "progress")
    console.print(metrics_table(progress, wide=console.width >= 100))


def _compact(root: Path) -> None:
    from dltools.cli.words import size
    from dltools.errors import InputOutputError
    from dltools.observations.recording.compaction import compact
    from dltools.observations.recording.directory import RecordingDirectory

    if not root.is_dir():
        raise InputOutputError(f"{root}: no such directory")
    done = compact(RecordingDirectory(root))
    if done.files_before:
        complain(
            f"{root}: {done.files_before} files of {size(done.bytes_before)} became "
            f"{done.files_after} of {size(done.bytes_after)}, {done.rows} rows"
        )


def _once(sampler: Sampler, writer: Writer, window: float, verbose: bool) -> None:
    gc.disable()  # the process ends before there is anything to collect
    earlier: list[Row] = []
    if window > 0:
        earlier = sampler.counters()
        time.sleep(window)
    rows = sampler.sample()
    _tell_of_paused(sampler, set())
    _write(writer, earlier + rows, verbose)


def _stream(
    sampler: Sampler,
    writer: Writer,
    interval: float,
    count: int | None,
    duration: float | None,
    patience: float,
    verbose: bool,
) -> None:
    """Sample at fixed times: a slow sample delays none but itself."""
    sampler.follow()
    wait = getattr(writer, "wait", _sleep)  # a live table watches the keys meanwhile
    begun = time.monotonic()
    taken = 0
    told: set[str] = set()
    while True:
        rows = _sampled(sampler, patience)
        _tell_of_paused(sampler, told)
        _write(writer, rows, verbose)
        taken += 1
        elapsed = time.monotonic() - begun
        following = (elapsed // interval + 1) * interval
        if count is not None and taken >= count:
            return
        if duration is not None and following > duration:
            return
        if wait(max(0.0, begun + following - time.monotonic())):
            return


def _sleep(seconds: float) -> bool:
    time.sleep(seconds)
    return False


def _sampled(sampler: Sampler, patience: float) -> list[Row]:
    """Take a sample; of an engine that goes away, once it is back. Raises `UnavailableError` where
    it stays away for longer than `patience` (s)."""
    from dltools.errors import UnavailableError

    until: float | None = None
    while True:
        try:
            if until is not None:
                sampler.resume()
            return sampler.sample()
        except UnavailableError as error:
            now = time.monotonic()
            if until is None and patience > 0:
                complain(f"{error} asking again for {patience:g} s")
            until = now + patience if until is None else until
            if now >= until:
                raise
            time.sleep(min(_AGAIN_S, until - now))


def _tell_of_paused(sampler: Sampler, told: set[str]) -> None:
    """Say once of each container that it is left paused by a dl-apply that is gone."""
    from dltools.engine.turn_notes import left_paused

    names = [name for name in sampler.left_paused() if name not in told]
    told.update(names)
    if names:
        complain(left_paused(names))


def _write(writer: Writer, rows: list[Row], verbose: bool) -> None:
    from dltools.observations.table import to_table

    if verbose:
        kinds = [row["kind"] for row in rows]
        counts = ", ".join(f"{kinds.count(kind)} {kind}" for kind in dict.fromkeys(kinds))
        complain(f"sampled {counts}")
        for row in rows:
            if row.get("gap"):
                complain(f"{row.get('container_name') or row['host']}: {row['gap']}")
    writer.write(to_table(rows))


app = options.app(probe)


def main() -> None:
    """Run dl-probe."""
    run(app)
