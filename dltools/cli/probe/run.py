"""Observations as a dl-probe command line asks for: sampled once, or at fixed times until something
ends it.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING, Any

import typer

from dltools.cli.exits import Exit, print_message, unbroken
from dltools.cli.formats import ObservationFormat
from dltools.cli.probe.outputs import open_output
from dltools.cli.remarks import Remarks, is_last_in_pipe, print_remark
from dltools.probe.progress import Pattern
from dltools.probe.progress.user_patterns import Expression
from dltools.text import listed
from dltools.threads import in_background

if TYPE_CHECKING:
    from dltools.cli.probe.request import Request
    from dltools.observations.formats.base import Writer
    from dltools.observations.table import Row
    from dltools.probe.sampler import Connector, Sampler


def run_request(request: Request) -> None:
    """Write observations of saved logs or of containers, or list their metrics."""
    pattern = Pattern(request.pattern) if request.pattern else None
    names = [Expression(name, "--name") for name in request.names]
    if request.logs:
        from dltools.cli.probe.given_logs import read_logs

        read_logs(request, pattern)
        return
    if request.is_diagnosis:
        from dltools.cli.probe.doctor import examine

        examine(request, partial(_sampler_of, request, pattern, names))
        return
    sampler = _sampler(request, pattern, names)
    if request.lists_metrics:
        _list_metrics(sampler, request)
    else:
        _write(sampler, request)
    if not sampler.is_complete:
        raise typer.Exit(Exit.PARTIAL)


def _list_metrics(sampler: Sampler, request: Request) -> None:
    from dltools.cli.probe.tables import print_metrics

    rows = sampler.sample()
    print_metrics(rows)
    if any(row["kind"] == "progress" for row in rows):
        return
    names = [str(row["container_name"]) for row in rows if row["kind"] == "container"]
    none_reports = f"no progress found in the logs of {listed(names)}; --pattern finds more"
    print_remark(none_reports if names else _none_runs(rows, request))


def _write(sampler: Sampler, request: Request) -> None:
    with open_output(request) as writer:
        if request.notify is not None:
            from dltools.cli.probe.notify_command import Notifier
            from dltools.probe.notices import Notices

            with Notifier(request.notify, Notices()) as notifier:
                follow(sampler, writer, request, notifier.take)
        elif request.is_stream:
            follow(sampler, writer, request)
        else:
            sample_once(sampler, writer, request)


def _sampler(request: Request, pattern: Pattern | None, names: Sequence[Any]) -> Sampler:
    """Return a sampler of the engines. Arrow is imported while these answer."""
    from dltools.engine.registry import open_engine, takes_log_files

    addresses = [
        replace(address, settings={"logs": request.log_files})
        if request.log_files and takes_log_files(address.url)
        else address
        for address in request.addresses()
    ]
    connectors = {address.name: partial(open_engine, address) for address in addresses}
    return _sampler_of(request, pattern, names, connectors)


def _sampler_of(
    request: Request,
    pattern: Pattern | None,
    names: Sequence[Any],
    connectors: Mapping[str, Connector],
) -> Sampler:
    in_background(import_module, "pyarrow.parquet")
    from dltools.engine import state_folder
    from dltools.observations.roles import Rules, parse_rule
    from dltools.probe.sampler import Options, Sampler

    filters = {"label": list(request.labels), "name": list(request.names)}
    options = Options(
        filters={key: values for key, values in filters.items() if values},
        since_s=request.since_s,
        pattern=pattern,
        names=names,
        state_directories=state_folder.state_directories(request.state_directory),
        roles=Rules(tuple(map(parse_rule, request.roles))),
        user_from=request.user_from,
    )
    deadline_s = min(request.deadline_s, request.interval_s or request.deadline_s)
    return Sampler(connectors, options, deadline_s)


def sample_once(sampler: Sampler, writer: Writer, request: Request) -> None:
    """Write a sample, with --window after an earlier one of the counters."""
    gc.disable()  # the process ends before there is garbage
    earlier: list[Row] = []
    if request.window_s > 0:
        earlier = sampler.counters()
        time.sleep(request.window_s)
    rows = sampler.sample()
    _warn_of_paused(sampler, set())
    _warn_of_faults(sampler.faults, {})
    write_rows(writer, earlier + rows, is_verbose=request.is_verbose)
    _remark(rows, request, Remarks())


def follow(
    sampler: Sampler,
    writer: Writer,
    request: Request,
    watch: Callable[[list[Row]], None] = lambda _: None,
) -> None:
    """Write samples at fixed times, and at once when a container starts or exits.

    A slow sample delays only itself. --count counts the samples at fixed times. `watch` gets the
    rows of each.
    """
    assert request.interval_s is not None
    sampler.follow()
    take = _taker(sampler, writer, request, watch)
    begun = time.monotonic()
    taken = 0
    following = 0.0
    while True:
        take()
        elapsed = time.monotonic() - begun
        if elapsed >= following:
            taken += 1
            following = (elapsed // request.interval_s + 1) * request.interval_s
        if request.count is not None and taken >= request.count:
            return
        if request.duration_s is not None and following > request.duration_s:
            return
        sampler.wait_for_change(max(0.0, begun + following - time.monotonic()))


def _taker(
    sampler: Sampler, writer: Writer, request: Request, watch: Callable[[list[Row]], None]
) -> Callable[[], None]:
    """Return what takes a sample, writes it, and says what is new."""
    sample = _patient(sampler, request.patience_s)
    warned: set[str] = set()
    faults: dict[str, str] = {}
    remarks = Remarks()

    def take() -> None:
        nonlocal faults
        rows = sample()
        _warn_of_paused(sampler, warned)
        faults = _warn_of_faults(sampler.faults, faults)
        write_rows(writer, rows, is_verbose=request.is_verbose)
        watch(rows)
        _remark(rows, request, remarks)

    return take


def write_rows(writer: Writer, rows: list[Row], *, is_verbose: bool) -> None:
    """Write a sample; with --verbose, say what it has and what it lacks."""
    from dltools.observations.table import to_table

    if is_verbose:
        kinds = [row["kind"] for row in rows]
        counts = ", ".join(f"{kinds.count(kind)} {kind}" for kind in dict.fromkeys(kinds))
        print_message(f"sampled {counts}")
        for row in rows:
            if row.get("gap"):
                print_message(f"{row.get('container_name') or row['host']}: {row['gap']}")
    with unbroken():
        writer.write(to_table(rows))


def _remark(rows: list[Row], request: Request, remarks: Remarks) -> None:
    """Say that there is no container to measure, unless the reader of the rows does, or the live
    table."""
    is_told = request.output is None and (
        not is_last_in_pipe() or (request.is_stream and request.format is ObservationFormat.TABLE)
    )
    if not is_told and not any(row["kind"] == "container" for row in rows):
        remarks.tell(f"nothing to measure: {_none_runs(rows, request)}")


def _none_runs(rows: list[Row], request: Request) -> str:
    hosts = listed(sorted({str(row["host"]) for row in rows if row["kind"] == "node"}))
    chosen = [f"--label {label}" for label in request.labels]
    chosen += [f"--name {name}" for name in request.names]
    which = f"no running container matches {' '.join(chosen)}" if chosen else "no container runs"
    return f"{which} on {hosts}" if hosts else which


def _patient(sampler: Sampler, patience_s: float) -> Callable[[], list[Row]]:
    """Return what gives a sample; where the engine goes away, one from when it is back. It raises
    `UnavailableError` where the engine stays away for longer than the patience."""
    from dltools.engine.patience import Patience

    patience = Patience(
        patience_s, lambda error: print_message(f"{error} retrying for {patience_s:g} s")
    )
    is_away = False

    def ask() -> list[Row]:
        nonlocal is_away
        if is_away:
            sampler.resume()
        is_away = True
        rows = sampler.sample()
        is_away = False
        return rows

    return lambda: patience.repeat(ask)


def _warn_of_paused(sampler: Sampler, warned: set[str]) -> None:
    """Warn of containers that a killed dl-apply has left paused, once of each."""
    from dltools.engine.turn_notes import left_paused

    names = [name for name in sampler.left_paused() if name not in warned]
    warned.update(names)
    if names:
        print_message(left_paused(names))


def _warn_of_faults(faults: dict[str, str], before: dict[str, str]) -> dict[str, str]:
    """Say which hosts are not in a sample that were in the one before, and which are again; return
    the faults."""
    for host, fault in faults.items():
        if host not in before:
            print_message(f"{host}: {fault}; the sample lacks it")
    for host in before.keys() - faults.keys():
        print_message(f"{host}: answers again")
    return faults
