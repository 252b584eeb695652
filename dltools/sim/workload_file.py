"""Reads a workload file (TOML, dltools-workload(5)).

A seed decides what the file leaves to chance: streams of jobs, and variations of jobs.
"""

from __future__ import annotations

import random
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from dltools.errors import DataError, reading
from dltools.sim.generate import ARRIVALS, TRAININGS, arrivals
from dltools.sim.workload import HostSpec, Job, Workload, workload_of
from dltools.sim.workload_keys import MOST, Kinds, Table, kind_of, read_jobs, read_kinds, tables

_TABLES = ("node", "kind", "job", "stream", "vary")


def read_workload(text: str, name: str, seed: int = 0) -> Workload:
    """Return the workload of a file. Raises `DataError` with the file, the table and the error."""
    data = _parsed(text, name)
    vary = read_variation(data.get("vary", {}), name)
    hosts = [_host(table, number) for number, table in enumerate(tables(data, "node", name), 1)]
    kinds = read_kinds(tables(data, "kind", name))
    jobs = read_jobs(tables(data, "job", name), kinds)
    chance = random.Random(f"workload {seed}")
    for table in tables(data, "stream", name):
        jobs += read_stream(table, kinds, chance, len(jobs))
    jobs = [vary.applied_to(job, chance, seed) for job in jobs]
    return workload_of(jobs, hosts or [HostSpec("node", 2.0)], name)


def _parsed(text: str, name: str) -> dict[str, Any]:
    with reading(name):
        data = tomllib.loads(text)
    if unknown := sorted(set(data) - set(_TABLES)):
        raise DataError(
            f"{name}: unknown table [{unknown[0]}]; "
            "known: [[node]], [[kind]], [[job]], [[stream]], [vary]"
        )
    return data


def _host(table: Table, number: int) -> HostSpec:
    fields = table.fields(HostSpec)
    if "cpus" not in fields:
        raise table.error("cpus is missing: say how many CPUs the host has")
    host = HostSpec(**{"name": f"node-{number}", **fields})
    if not 0 < host.cpus < 1e6:
        raise table.error("cpus must be more than 0 and less than 1000000")
    return host


_LONGEST_S = 1e9


@dataclass(frozen=True, slots=True)
class Stream:
    """A rule that makes `count` jobs of some kinds, which are picked at random or in turn."""

    count: int = 1
    arrivals: str = "poisson"
    gap: float = 30.0
    begin: float = 0.0
    pick: str = "random"


@dataclass(frozen=True, slots=True)
class Variation:
    """How jobs vary with the seed: works and requests by at most this fraction up or down; arrivals
    by at most this many seconds later."""

    work: float = 0.0
    request: float = 0.0
    arrival: float = 0.0

    def applied_to(self, job: Job, chance: random.Random, seed: int) -> Job:
        """Return the variation of a job under a seed."""
        return replace(
            job,
            seed=seed,
            work=job.work * (1 + self.work * chance.uniform(-1, 1)),
            request=job.request * (1 + self.request * chance.uniform(-1, 1)),
            arrival=job.arrival + self.arrival * chance.random(),
        )


def read_variation(data: Any, name: str) -> Variation:
    """Return the variation of a file's table [vary]. Raises `DataError`."""
    if not isinstance(data, dict):
        raise DataError(f"{name}: write [vary] once")
    table = Table(f"{name}: vary", data)
    variation = Variation(**table.fields(Variation))
    for key in ("work", "request"):
        if not 0 <= getattr(variation, key) < 1:
            raise table.error(f"{key} must be at least 0 and less than 1")
    if variation.arrival < 0:
        raise table.error("arrival must not be below 0")
    return variation


def read_stream(table: Table, kinds: Kinds, chance: random.Random, before: int) -> list[Job]:
    """Return the jobs of a stream; `before` is the number of jobs before them, for their names.
    Raises `DataError`."""
    stream = _stream(table)
    models = _models(table, kinds)
    times = arrivals(stream.arrivals, stream.count, stream.gap, chance)
    width = len(str(before + stream.count))
    jobs = []
    for number, time in enumerate(times):
        turn = stream.pick == "turn"
        model = models[number % len(models)] if turn else chance.choice(models)
        name = f"{model.name}-{before + number + 1:0{width}d}"
        jobs.append(replace(model, name=name, arrival=stream.begin + time))
    return jobs


def _models(table: Table, kinds: Kinds) -> Sequence[Job]:
    named = table.data.get("kinds", [kind.name for kind in TRAININGS])
    if not isinstance(named, list) or not named:
        raise table.error("kinds must be a list of names of kinds")
    return [kind_of(name, kinds, table) for name in named]


def _stream(table: Table) -> Stream:
    stream = Stream(**table.without("kinds").fields(Stream))
    if stream.arrivals not in ARRIVALS:
        raise table.error(f"arrivals must be one of {', '.join(ARRIVALS)}")
    if stream.pick not in ("random", "turn"):
        raise table.error("pick must be random or turn")
    if not 0 < stream.count <= MOST:
        raise table.error(f"count must be between 1 and {MOST}")
    for key in ("gap", "begin"):
        if not 0 <= getattr(stream, key) <= _LONGEST_S:
            raise table.error(f"{key} must be between 0 and {_LONGEST_S:.0f} seconds")
    return stream
