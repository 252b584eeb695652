"""Where dl-sim's jobs come from: a workload file, a recording, a trace, or a rule."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from dltools import inputs
from dltools.cli.input_streams import open_input
from dltools.errors import ConfigError, DataError

if TYPE_CHECKING:
    import typer

    from dltools.sim.workload import HostSpec, Workload


def from_file(name: str, context: typer.Context, seeds: Sequence[int]) -> list[Workload]:
    """Read a workload file, - is standard input, for each seed."""
    from dltools.sim.workload_file import read

    stream, shown = open_input(name, context)
    try:
        text = inputs.read_small(stream, shown).decode()
    except UnicodeDecodeError as error:
        raise DataError(f"{shown}: not a workload file: {error}") from error
    folder = Path() if name == "-" else Path(name).parent

    def load(file: str) -> str:
        return inputs.read_text(folder / file, DataError)

    return [read(text, shown, seed, load) for seed in seeds]


def recorded(name: str, context: typer.Context) -> Workload:
    """Make the jobs of a recording: a file, a directory, or - for standard input."""
    from dltools.cli.recordings import open_recording
    from dltools.observations.table import concat
    from dltools.sim.from_recording import workload

    recording, _ = open_recording(name, context)
    return workload(concat(recording.tables), name)


def generated(what: str, gap: float, nodes: list[HostSpec], seed: int) -> Workload:
    """Make up the jobs that KIND:N asks for."""
    from dltools.sim.generate import ARRIVALS, trainings
    from dltools.sim.workload import checked

    kind, _, count = what.partition(":")
    if kind not in ARRIVALS or not count.isdecimal() or not 0 < int(count) <= 1_000_000:
        raise ConfigError(f"--generate {what}: KIND:N, where KIND is {', '.join(ARRIVALS)} and N "
                          "from 1 to 1,000,000")  # fmt: skip
    return checked(trainings(int(count), kind, gap, seed), nodes, what)


def traced(
    what: str, throughputs: Path | None, nodes: list[HostSpec], gap: float, seed: int
) -> Workload:
    """Read the jobs of the cluster trace that KIND:FILE names."""
    from dltools.sim import traces
    from dltools.sim.workload import checked

    kind, _, name = what.partition(":")
    if kind not in traces.KINDS or not name:
        raise ConfigError(f"--trace {what}: KIND:FILE, where KIND is {', '.join(traces.KINDS)}")
    text = inputs.read_text(Path(name), DataError)
    if kind == "alibaba":
        return checked(traces.alibaba(text, name), nodes, name)
    if kind == "pollux":
        return checked(traces.pollux(text, name), nodes, name)
    if kind == "philly":
        return checked(traces.philly(text, name, gap, seed), nodes, name)
    if throughputs is None:
        raise ConfigError("--trace gavel needs --throughputs: how fast its jobs are is not in it")
    try:
        table = json.loads(inputs.read_text(throughputs, DataError))
    except (ValueError, RecursionError) as error:
        raise DataError(f"{throughputs}: {error}") from error
    if not isinstance(table, dict):
        raise DataError(f"{throughputs}: not a table of throughputs")
    return checked(traces.gavel(text, table, name), nodes, name)


def listed(file: Path) -> list[HostSpec]:
    """Read a list of machines."""
    from dltools.sim.traces import machines

    found = machines(inputs.read_text(file, DataError), str(file))
    if not found:
        raise DataError(f"{file}: no machines")
    return found


def spinning(workload: Workload, spin: float) -> Workload:
    """Return a workload whose threads all suffer this part of the measured contention."""
    if not 0 <= spin <= 1:
        raise ConfigError("--spin is from 0 to 1")
    return replace(workload, jobs=tuple(replace(job, spin=spin) for job in workload.jobs))


def machines(cpus: float, nodes: int) -> list[HostSpec]:
    """Return that many nodes of one size."""
    from dltools.sim.workload import HostSpec

    if not 0 < cpus < 1e6 or not 0 < nodes <= 100_000:
        raise ConfigError("--cpus and --nodes are more than 0")
    return [HostSpec(f"node-{k + 1}", cpus) for k in range(nodes)]
