"""Observes what a request asks for, and writes it."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING, Any

import typer

from dltools.cli.exits import Exit
from dltools.cli.probe.metrics import print_metrics
from dltools.cli.probe.outputs import open_output
from dltools.cli.probe.sampling import follow, sample_once
from dltools.probe.progress import Pattern
from dltools.probe.progress.expressions import compiled

if TYPE_CHECKING:
    from dltools.cli.probe.request import Request
    from dltools.engine.docker.addresses import Address
    from dltools.engine.interface import Engine
    from dltools.probe.hosts import Hosts
    from dltools.probe.sampler import Sampler


def run_request(request: Request) -> None:
    """Write observations of saved logs or of containers, list their metrics, or explain a line."""
    pattern = Pattern(request.selection.pattern) if request.selection.pattern else None
    names = [compiled(one, "--name") for one in request.selection.names]
    if request.explained_line is not None:
        from dltools.cli.probe.explain import print_line

        print_line(request.logs[0], request.explained_line, pattern)
        return
    if request.logs:
        from dltools.cli.probe.logs import read_logs

        read_logs(request, pattern)
        return
    sampler = _sampler(request, pattern, names)
    if request.lists_metrics:
        print_metrics(sampler.sample())
    else:
        with open_output(request) as writer:
            if request.is_stream:
                follow(sampler, writer, request)
            else:
                sample_once(sampler, writer, request)
    if not sampler.is_complete:
        raise typer.Exit(Exit.PARTIAL)


def _sampler(request: Request, pattern: Pattern | None, names: Sequence[Any]) -> Sampler | Hosts:
    """Return a sampler of the engines. Arrow is imported while these answer."""
    threading.Thread(target=import_module, args=("pyarrow.parquet",), daemon=True).start()
    from dltools.engine import state_folder
    from dltools.observations.roles import Rules, parse_rule
    from dltools.probe.hosts import Hosts
    from dltools.probe.sampler import Options, Sampler

    selection = request.selection
    filters = {"label": list(selection.labels), "name": list(selection.names)}
    options = Options(
        filters={key: values for key, values in filters.items() if values},
        since_s=selection.since_s,
        pattern=pattern,
        metrics=frozenset(selection.metrics),
        names=names,
        state_directories=state_folder.state_directories(request.state_directory),
        roles=Rules(tuple(map(parse_rule, selection.roles))),
    )
    addresses = request.engines.addresses()
    if len(addresses) == 1:
        return Sampler(_connected(addresses[0]), options)
    connectors = {one.name: partial(_connected, one) for one in addresses}
    deadline_s = min(request.deadline_s, request.interval_s or request.deadline_s)
    return Hosts(connectors, options, deadline_s)


def _connected(address: Address) -> Engine:
    from dltools.engine.members.opening import open_engine

    return open_engine(address)
