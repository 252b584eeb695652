"""Observes what a request asks for, and writes it."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Any

from dltools.cli.console import make_console
from dltools.cli.exits import print_message
from dltools.cli.input_streams import open_log
from dltools.cli.probe.outputs import open_output
from dltools.cli.probe.sampling import follow, sample_once, write_rows
from dltools.probe.progress import Pattern
from dltools.probe.progress.expressions import compiled

if TYPE_CHECKING:
    from dltools.cli.probe.request import Request
    from dltools.observations.table import Row
    from dltools.probe.sampler import Sampler


def run_request(request: Request) -> None:
    """Write observations of saved logs or of containers, or list their metrics."""
    pattern = Pattern(request.selection.pattern) if request.selection.pattern else None
    names = [compiled(one, "--name") for one in request.selection.names]
    if request.logs:
        _read_logs(request, pattern)
        return
    sampler = _sampler(request, pattern, names)
    if request.lists_metrics:
        _print_metrics(sampler.sample())
        return
    with open_output(request) as writer:
        if request.is_stream:
            follow(sampler, writer, request)
        else:
            sample_once(sampler, writer, request)


def _read_logs(request: Request, pattern: Pattern | None) -> None:
    rows = _observed_logs(request, pattern)
    if request.selection.metrics:
        rows = [row for row in rows if row["metric"] in request.selection.metrics]
    if request.lists_metrics:
        _print_metrics(rows)
        return
    with open_output(request) as writer:
        write_rows(writer, rows, is_verbose=request.is_verbose)


def _observed_logs(request: Request, pattern: Pattern | None) -> list[Row]:
    from dltools.probe import saved_logs
    from dltools.probe.progress import Automatic

    start = request.logs_start or saved_logs.START
    rows: list[Row] = []
    for file, name in zip(request.logs, saved_logs.container_names(request.logs), strict=True):
        with open_log(file) as stream:
            rows += saved_logs.progress_rows(stream, name, pattern or Automatic(), start)
    if not rows:
        print_message("no progress found in " + ", ".join(request.logs))
    return rows


def _sampler(request: Request, pattern: Pattern | None, names: Sequence[Any]) -> Sampler:
    """Return a sampler of the engine. Arrow is imported while the engine answers."""
    threading.Thread(target=import_module, args=("pyarrow.parquet",), daemon=True).start()
    from dltools.engine import state_directory
    from dltools.engine.containers import Engine
    from dltools.probe.sampler import Options, Sampler

    selection = request.selection
    filters = {"label": list(selection.labels), "name": list(selection.names)}
    options = Options(
        filters={key: values for key, values in filters.items() if values},
        since_s=selection.since_s,
        pattern=pattern,
        metrics=frozenset(selection.metrics),
        names=names,
        state_directories=state_directory.all_directories(request.state_directory),
    )
    return Sampler(Engine(), options)


def _print_metrics(rows: list[Row]) -> None:
    from dltools.cli.probe.tables import metrics_table

    console = make_console()
    progress = (row for row in rows if row["kind"] == "progress")
    console.print(metrics_table(progress, wide=console.width >= 100))
