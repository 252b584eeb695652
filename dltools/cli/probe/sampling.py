"""Sampling once, or at fixed times until something ends it."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable
from typing import TYPE_CHECKING

from dltools.cli.exits import print_message
from dltools.errors import UnavailableError

if TYPE_CHECKING:
    from dltools.cli.probe.request import Request
    from dltools.observations.formats.base import Writer
    from dltools.observations.table import Row
    from dltools.probe.sampler import Sampler

_RETRY_S = 0.5
"""Time between two attempts to reach an engine that is away."""


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


def follow(sampler: Sampler, writer: Writer, request: Request) -> None:
    """Write samples at fixed times, and at once when a container starts or exits.

    A slow sample delays only itself. --count counts the samples at fixed times.
    """
    assert request.interval_s is not None
    sampler.follow()
    wait = _wait_of(sampler, writer)
    begun = time.monotonic()
    taken = 0
    following = 0.0
    warned: set[str] = set()
    faults: dict[str, str] = {}
    while True:
        rows = _sample(sampler, request.patience_s)
        _warn_of_paused(sampler, warned)
        faults = _warn_of_faults(sampler.faults, faults)
        write_rows(writer, rows, is_verbose=request.is_verbose)
        elapsed = time.monotonic() - begun
        if elapsed >= following:
            taken += 1
            following = (elapsed // request.interval_s + 1) * request.interval_s
        if request.count is not None and taken >= request.count:
            return
        if request.duration_s is not None and following > request.duration_s:
            return
        if wait(max(0.0, begun + following - time.monotonic())):
            return


def _wait_of(sampler: Sampler, writer: Writer) -> Callable[[float], bool]:
    """Return what waits for the next sample, and tells whether the user quits.

    A live table watches the keys meanwhile, and is drawn at fixed times only.
    """
    drawn: Callable[[float], bool] | None = getattr(writer, "wait", None)
    if drawn is not None:
        return drawn

    def wait(seconds: float) -> bool:
        sampler.wait_for_change(seconds)
        return False

    return wait


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
    writer.write(to_table(rows))


def _sample(sampler: Sampler, patience_s: float) -> list[Row]:
    """Return a sample; where the engine goes away, one from when it is back. Raises
    `UnavailableError` where it stays away for longer than the patience."""
    until: float | None = None
    while True:
        try:
            if until is not None:
                sampler.resume()
            return sampler.sample()
        except UnavailableError as error:
            now = time.monotonic()
            if until is None and patience_s > 0:
                print_message(f"{error} asking again for {patience_s:g} s")
            until = now + patience_s if until is None else until
            if now >= until:
                raise
            time.sleep(min(_RETRY_S, until - now))


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
