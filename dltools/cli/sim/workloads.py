"""The workloads that dl-sim runs: from a workload file, a recording, or generated."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from dltools import bounded_reading
from dltools.cli.exits import print_message
from dltools.cli.input_streams import open_input, open_recording
from dltools.errors import ConfigError, DataError
from dltools.input_kinds import refusal
from dltools.sim.workload import HostSpec, Workload, workload_of

if TYPE_CHECKING:
    from dltools.cli.sim.request import Request


def load_workloads(source: Request) -> list[Workload]:
    """Return a workload for each seed of a source; a recording gives a single one."""
    if source.generate:
        workloads = _generated(source)
    elif source.from_recording:
        workloads = [_recorded(source.from_recording)]
    else:
        workloads = _from_file(source)
    if source.spin is None:
        return workloads
    return [_with_spin(workload, source.spin) for workload in workloads]


def _from_file(source: Request) -> list[Workload]:
    from dltools.sim.workload_file import read_workload

    stream, shown = open_input(source.file)
    data = bounded_reading.read_small(stream, shown)
    if reason := refusal(data, "run its containers again with --from"):
        raise DataError(f"{shown}: {reason}")
    try:
        text = data.decode()
    except UnicodeDecodeError as error:
        raise DataError(f"{shown}: not a workload file: {error}") from error
    return [read_workload(text, shown, seed) for seed in source.seeds]


def _recorded(name: str) -> Workload:
    from dltools.sim.from_recording import recorded_workload

    recording, _ = open_recording(name)
    return recorded_workload(recording.tables, name, print_message)


def _generated(source: Request) -> list[Workload]:
    from dltools.sim.generate import ARRIVALS, trainings

    hosts = _hosts(source)
    kind, _, count = source.generate.partition(":")
    if kind not in ARRIVALS or not count.isdecimal() or not 0 < int(count) <= 1_000_000:
        raise ConfigError(
            f"--generate must be KIND:N, where KIND is one of {', '.join(ARRIVALS)} "
            f"and N is between 1 and 1000000, not {source.generate}"
        )
    return [
        workload_of(trainings(int(count), kind, source.mean_gap_s, seed), hosts, source.generate)
        for seed in source.seeds
    ]


def _hosts(source: Request) -> list[HostSpec]:
    """Return the hosts of generated jobs."""
    if not 0 < source.cpus < 1e6:
        raise ConfigError("--cpus must be more than 0 and less than 1000000")
    if not 1 <= source.nodes <= 100_000:
        raise ConfigError("--nodes must be between 1 and 100000")
    return [HostSpec(f"node-{k + 1}", source.cpus) for k in range(source.nodes)]


def _with_spin(workload: Workload, spin: float) -> Workload:
    """Return a workload whose jobs all lose this fraction of the measured contention."""
    return replace(workload, jobs=tuple(replace(job, spin=spin) for job in workload.jobs))
