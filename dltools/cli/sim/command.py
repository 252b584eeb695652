"""dl-sim: run a workload in virtual time under any policies, and compare them."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dltools.cli import destinations, options
from dltools.cli.console import make_console
from dltools.cli.data import for_screen
from dltools.cli.exits import guarded, run
from dltools.cli.observation_formats import SUFFIXES, WHOLE
from dltools.cli.observation_formats import Output as Recorded
from dltools.cli.options import Version
from dltools.cli.records import records
from dltools.errors import ConfigError, DataError

if TYPE_CHECKING:
    from dltools.observations.outcomes import JobResult
    from dltools.sim.simulation import Simulation
    from dltools.sim.workload import Workload


_BEST = 10
"""How many of a ranking a table shows."""


class Output(StrEnum):
    """What --format may be."""

    AUTO = "auto"
    TABLE = "table"
    JSONL = "jsonl"
    CSV = "csv"


@guarded
def sim(
    context: typer.Context,
    input_: options.Input = "-",
    policy: Annotated[
        list[str] | None,
        typer.Option(
            "-p",
            "--policy",
            metavar="NAME",
            help="Who decides; repeatable, the first is what the others are held against. "
            "By default noop, flowcon, tradl, slaq, las and srtf.",
        ),
    ] = None,
    set_: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            metavar="NAME=VALUE",
            help="Set a parameter of those policies that have it. Repeatable.",
        ),
    ] = None,
    realize: Annotated[
        str,
        typer.Option(
            metavar="MODE",
            envvar="DLTOOLS_REALIZE",
            help="How a share becomes a setting: auto, quota, weight, priority, rotate or cores.",
        ),
    ] = "auto",
    clairvoyant: Annotated[
        bool,
        typer.Option("--clairvoyant", help="Let policies know how many epochs a job will train."),
    ] = False,
    from_: Annotated[
        str,
        typer.Option(
            "--from",
            metavar="RECORDING",
            help="Instead of a file: run a recording's containers again; a file, - or a directory.",
        ),
    ] = "",
    trace: Annotated[
        str,
        typer.Option(
            metavar="KIND:FILE",
            help="Instead of a file: a cluster trace, gavel, pollux, philly or alibaba.",
        ),
    ] = "",
    throughputs: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="With --trace gavel: the table of throughputs, JSON."),
    ] = None,
    hosts: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="With --trace or --generate: the machines, an Alibaba node list."
        ),
    ] = None,
    generate: Annotated[
        str,
        typer.Option(
            metavar="KIND:N",
            help="Instead of a file: N trainings that arrive fixed, random, poisson or burst.",
        ),
    ] = "",
    gap: Annotated[
        float,
        typer.Option(
            parser=options.seconds,
            metavar="TIME",
            help="With --generate or run times of philly: mean time between two arrivals.",
        ),
    ] = "30s",  # type: ignore[assignment]
    cpus: Annotated[
        float, typer.Option(metavar="N", help="With --generate or --trace: CPUs of a node.")
    ] = 2.0,
    nodes: Annotated[int, typer.Option(metavar="N", help="With --generate or --trace: nodes.")] = 1,
    seed: Annotated[int, typer.Option(metavar="N", help="The first seed.")] = 0,
    repeat: Annotated[int, typer.Option(metavar="N", help="How many seeds to average over.")] = 1,
    spin: Annotated[
        float | None,
        typer.Option(
            metavar="PART",
            help="How much threads lose by waiting for each other: 0, they sleep, to 1, they spin; "
            "by default as the jobs say.",
        ),
    ] = None,
    best: Annotated[
        str,
        typer.Option(
            metavar="CRITERION",
            help="Try all policies and settings, and rank them by mean_completion, makespan, "
            "time_to_target or satisfied.",
        ),
    ] = "",
    output: Annotated[
        Path | None,
        typer.Option(
            "-o",
            "--output",
            metavar="FILE",
            help="Write what dl-probe would have recorded of one policy's run, in the format that "
            "FILE's name ends in, else Parquet.",
        ),
    ] = None,
    interval: Annotated[
        float,
        typer.Option(
            "-i",
            "--interval",
            parser=options.seconds,
            metavar="TIME",
            help="With --output: time between two samples.",
        ),
    ] = "5s",  # type: ignore[assignment]
    jobs: Annotated[
        bool, typer.Option("--jobs", help="Print a row per job instead of one per policy.")
    ] = False,
    format_: Annotated[
        Output, typer.Option("--format", help="auto: a table on a terminal, else JSON Lines.")
    ] = Output.AUTO,
    version: Version = False,  # noqa: ARG001
) -> None:
    """Run jobs on machines in virtual time, by the very policies and settings of dl-plan.

    Reads a workload file and prints for each policy what it comes to: makespan, completion times,
    times to targets, satisfied models. The same workload and seed always give the same digits.
    """  # fmt: skip
    if sum(map(bool, (from_, generate, trace))) > 1:
        raise typer.BadParameter("--from, --generate and --trace exclude each other")
    if input_ != "-" and (from_ or generate or trace):
        raise typer.BadParameter(f"{input_}: --from, --generate and --trace are instead of a FILE")
    if not 0 < repeat <= 100_000:
        raise ConfigError("--repeat is from 1 to 100,000")
    if hosts and not (generate or trace):
        raise typer.BadParameter("--hosts goes with --generate or --trace")
    if throughputs and not trace.startswith("gavel:"):
        raise typer.BadParameter("--throughputs goes with --trace gavel:FILE")
    from dltools.cli.sim import workloads

    if repeat > 1 and (from_ or trace):
        raise typer.BadParameter("--repeat: a recording and a trace leave nothing to chance")
    seeds = list(range(seed, seed + repeat))
    if generate or trace:
        nodes_ = workloads.listed(hosts) if hosts else workloads.machines(cpus, nodes)
    if generate:
        made = [workloads.generated(generate, gap, nodes_, number) for number in seeds]
    elif trace:
        made = [workloads.traced(trace, throughputs, nodes_, gap, seed)]
    elif from_:
        made = [workloads.recorded(from_, context)]
    else:
        made = workloads.from_file(input_, context, seeds)
    if spin is not None:
        made = [workloads.spinning(one, spin) for one in made]
    auto = Output.TABLE if sys.stdout.isatty() else Output.JSONL
    shape = auto if format_ is Output.AUTO else format_
    if best:
        if policy or set_ or realize != "auto" or output or jobs:
            raise typer.BadParameter(
                "--best tries all policies and settings: it takes no --policy, --set, --realize, "
                "--output or --jobs"
            )
        _print(_best(best, made, clairvoyant=clairvoyant), shape)
        return
    names = list(dict.fromkeys(policy or ["noop", "flowcon", "tradl", "slaq", "las", "srtf"]))
    _check(names, set_ or [], realize)
    tasks = [Task(one, name, tuple(set_ or ()), realize, clairvoyant)
             for name in names for one in made]  # fmt: skip
    if output is not None:
        if len(tasks) > 1:
            raise typer.BadParameter("--output takes one --policy and one run")
        found = iter([_recorded_to(output, tasks[0], interval)])
    else:
        found = iter(_all(tasks))
    from dltools.report import comparison

    runs = {name: [next(found) for _ in made] for name in names}
    _print(comparison.by_job(runs, seeds) if jobs else comparison.by_policy(runs), shape)


@dataclass(frozen=True, slots=True)
class Task:
    """One run: a workload under a policy with its settings."""

    workload: Workload
    policy: str
    assignments: tuple[str, ...]
    realize: str
    clairvoyant: bool

    def simulation(self, observer: Any = None, every_s: float = 5.0) -> Simulation:
        """Return what runs it."""
        from dltools.sim.simulation import Simulation

        policy, parameters, choice = _chosen(self.policy, self.assignments, self.realize)
        return Simulation(
            self.workload,
            policy,
            parameters,
            choice,
            clairvoyant=self.clairvoyant,
            observer=observer,
            every_s=every_s,
        )


def _check(names: Sequence[str], assignments: Sequence[str], realize: str) -> None:
    """Complain of a wrong setting before anything runs."""
    from dltools.cli.policies import complain_of_plugins
    from dltools.plan.policy.parameters import describe

    complain_of_plugins()
    known: set[str] = set()
    for name in names:
        policy, _, _ = _chosen(name, assignments, realize)
        known |= {p["name"] for p in describe(policy.parameters)}
    for key in options.assigned(assignments):
        if key not in known:
            raise ConfigError(f"--set {key}: none of these policies has it")


def _chosen(name: str, assignments: Sequence[str], realize: str) -> tuple[Any, Any, Any]:
    from dltools.cli.policies import allowed_plugins, realisation_options
    from dltools.plan.policy import registry
    from dltools.plan.policy.parameters import build, describe

    policy = registry.get(name, allowed_plugins())
    own = {p["name"] for p in describe(policy.parameters)}
    given = {key: value for key, value in options.assigned(assignments).items() if key in own}
    return policy, build(policy.parameters, given), realisation_options(realize)


def _simulate(task: Task) -> list[JobResult]:
    return task.simulation().run()


def _recorded_to(file: Path, task: Task, every_s: float) -> list[JobResult]:
    """Simulate, and write the observations."""
    from dltools.observations.formats.registry import FORMATS
    from dltools.sim.recorder import Recorder

    if not every_s >= 0.01:
        raise ConfigError(f"--interval {every_s:g}: at least 0.01 s")
    destinations.check(file)
    shape = destinations.format_of(Recorded.AUTO, Recorded.AUTO, file, SUFFIXES)
    recorder = Recorder()
    found = task.simulation(recorder, every_s).run()
    with destinations.output_file(file) as out:
        format_ = FORMATS[WHOLE if shape is Recorded.AUTO else shape]
        target = format_.writer(out)  # type: ignore[arg-type]
        target.write(recorder.table())
        target.close()
    return found


def _all(tasks: Sequence[Task]) -> Iterator[list[JobResult]]:
    """Simulate on all cores; in this process where there is little to do."""
    cores = len(os.sched_getaffinity(0))
    if cores == 1 or sum(len(task.workload.jobs) for task in tasks) < 500:
        yield from map(_simulate, tasks)
        return
    from concurrent.futures import ProcessPoolExecutor

    with ProcessPoolExecutor(min(cores, len(tasks))) as pool:
        yield from pool.map(_simulate, tasks)


def _best(criterion: str, made: Sequence[Workload], *, clairvoyant: bool) -> list[dict[str, Any]]:
    from dltools.sim.candidates import CRITERIA, candidates, ranked

    if criterion not in CRITERIA:
        raise ConfigError(f"--best {criterion}: one of {', '.join(CRITERIA)}")
    tried = list(candidates())
    found = _all([Task(workload, one.policy, one.assignments, one.mode, clairvoyant)
                  for one in tried for workload in made])  # fmt: skip
    rows = ranked(tried, [[next(found) for _ in made] for _ in tried], criterion)
    if not rows:
        raise DataError(f"--best {criterion}: no job of this workload has it")
    return rows


def _print(rows: Sequence[Mapping[str, Any]], shape: Output) -> None:
    if shape is Output.TABLE:
        from dltools.cli.runs_table import runs_table

        console = make_console()
        ranked = bool(rows) and "command" in rows[0]
        console.print(runs_table(rows[:_BEST] if ranked else rows))
        if ranked:
            console.print(f"The best of {len(rows)}:  {rows[0]['command']}", soft_wrap=True)
    else:
        sys.stdout.write(for_screen(records(rows, as_csv=shape is Output.CSV)))


app = options.app(sim)


def main() -> None:
    """Run dl-sim."""
    run(app)
