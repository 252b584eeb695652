"""From the text of a workload file to a workload. What it leaves to chance, a seed decides."""

from __future__ import annotations

import random
import tomllib
from typing import Any

from dltools.errors import DataError
from dltools.sim.workload import HostSpec, Workload, workload_of
from dltools.sim.workload_file.chance import read_stream, read_variation
from dltools.sim.workload_file.curves import Loader
from dltools.sim.workload_file.jobs import read_jobs, read_kinds
from dltools.sim.workload_file.values import Table, tables

_TABLES = ("node", "kind", "job", "stream", "vary")


def _no_files(file: str) -> str:
    raise DataError(f"{file}: a curve's file cannot be read here")


def read_workload(text: str, name: str, seed: int = 0, load: Loader = _no_files) -> Workload:
    """Return the workload of a file. `load` reads the curve files that it names. Raises `DataError`
    with the file, the table and what is wrong."""
    data = _parsed(text, name)
    vary = read_variation(data.get("vary", {}), name)
    hosts = [_host(table, number) for number, table in enumerate(tables(data, "node", name), 1)]
    kinds = read_kinds(tables(data, "kind", name), load)
    jobs = read_jobs(tables(data, "job", name), kinds, load)
    chance = random.Random(f"workload {seed}")
    for table in tables(data, "stream", name):
        jobs += read_stream(table, kinds, chance, len(jobs))
    jobs = [vary.applied_to(job, chance, seed) for job in jobs]
    return workload_of(jobs, hosts or [HostSpec("node", 2.0)], name)


def _parsed(text: str, name: str) -> dict[str, Any]:
    try:
        data = tomllib.loads(text)
    except (ValueError, RecursionError) as error:
        raise DataError(f"{name}: {error}") from error
    if unknown := sorted(set(data) - set(_TABLES)):
        raise DataError(
            f"{name}: unknown table [{unknown[0]}]; "
            "known: [[node]], [[kind]], [[job]], [[stream]], [vary]"
        )
    return data


def _host(table: Table, number: int) -> HostSpec:
    found = table.fields(HostSpec)
    if "cpus" not in found:
        raise table.error("cpus is missing: say how many CPUs the host has")
    host = HostSpec(**{"name": f"node-{number}", **found})
    if not 0 < host.cpus < 1e6:
        raise table.error("cpus must be more than 0 and less than 1000000")
    return host
