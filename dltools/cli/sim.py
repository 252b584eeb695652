"""dl-sim: run a workload in virtual time under any policies, and compare them."""

from __future__ import annotations

import csv
import dataclasses
import json
import math
import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dltools.cli import options
from dltools.cli.exits import guarded, run
from dltools.cli.options import Version
from dltools.errors import ConfigError, DataError

if TYPE_CHECKING:
    from dltools.sim.outcome import JobResult, Summary
    from dltools.sim.workload import NodeSpec, Workload


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
            help="Instead of a file: a cluster trace, gavel or alibaba, on --nodes of --cpus each.",
        ),
    ] = "",
    throughputs: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="With --trace gavel: the table of throughputs, JSON."),
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
            help="With --generate: mean time between two arrivals.",
        ),
    ] = "30s",  # type: ignore[assignment]
    cpus: Annotated[
        float, typer.Option(metavar="N", help="With --generate: CPUs of a node.")
    ] = 2.0,
    nodes: Annotated[int, typer.Option(metavar="N", help="With --generate: nodes.")] = 1,
    seed: Annotated[int, typer.Option(metavar="N", help="With --generate: the first seed.")] = 0,
    repeat: Annotated[
        int, typer.Option(metavar="N", help="With --generate: how many seeds to average over.")
    ] = 1,
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
            help="Write what dl-probe would have recorded of one policy's run, as Parquet.",
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
    if trace:
        workloads = [(0, _traced(trace, throughputs, _machines(cpus, nodes)))]
    elif from_:
        workloads = [(0, _recorded(from_, context))]
    else:
        workloads = _workloads(input_, context, generate, gap, cpus, nodes, seed, repeat)
    auto = Output.TABLE if sys.stdout.isatty() else Output.JSONL
    shape = auto if format_ is Output.AUTO else format_
    if best:
        if policy or set_ or realize != "auto" or output or jobs:
            raise typer.BadParameter(
                "--best tries all policies and settings: it takes no --policy, --set, --realize, "
                "--output or --jobs"
            )
        _print(_ranked(best, workloads, clairvoyant=clairvoyant), shape)
        return
    names = policy or ["noop", "flowcon", "tradl", "slaq", "las", "srtf"]
    runs = [(name, workload, number) for name in names for number, workload in workloads]
    tasks = [
        (workload, name, set_ or [], realize, clairvoyant, number)
        for name, workload, number in runs
    ]
    _check(names, set_ or [], realize)
    if output is not None:
        if len(tasks) > 1:
            raise typer.BadParameter("--output takes one --policy and one run")
        found = [_recorded_to(output, tasks[0], interval)]
        _print(_job_rows(tasks, found) if jobs else _policy_rows(names, tasks, found), shape)
        return
    found = list(_all(tasks))
    if jobs:
        _print(_job_rows(tasks, found), shape)
    else:
        _print(_policy_rows(names, tasks, found), shape)


def _workloads(
    input_: str, context: typer.Context, generate: str, gap: float, cpus: float, nodes: int,
    seed: int, repeat: int,
) -> list[tuple[int, Workload]]:  # fmt: skip
    from dltools.sim import workload as workloads

    if not generate:
        stream, name = options.open_input(input_, context)
        try:
            text = stream.read().decode()
        except UnicodeDecodeError as error:
            raise DataError(f"{name}: not a workload file: {error}") from error
        return [(0, workloads.read(text, name))]
    from dltools.sim.generate import ARRIVALS, trainings

    kind, _, count = generate.partition(":")
    if kind not in ARRIVALS or not count.isdecimal() or not 0 < int(count) <= 1_000_000:
        raise ConfigError(f"--generate {generate}: KIND:N, where KIND is {', '.join(ARRIVALS)}")
    if not 0 < repeat <= 100_000:
        raise ConfigError("--repeat is more than 0")
    machines = _machines(cpus, nodes)
    return [
        (number, workloads.checked(trainings(int(count), kind, gap, number), machines, generate))
        for number in range(seed, seed + repeat)
    ]


def _machines(cpus: float, nodes: int) -> list[NodeSpec]:
    from dltools.sim.workload import NodeSpec

    if not 0 < cpus < 1e6 or not 0 < nodes <= 100_000:
        raise ConfigError("--cpus and --nodes are more than 0")
    return [NodeSpec(f"node-{k + 1}", cpus) for k in range(nodes)]


def _traced(trace: str, throughputs: Path | None, machines: list[NodeSpec]) -> Workload:
    from dltools.sim import traces
    from dltools.sim.workload import checked

    kind, _, name = trace.partition(":")
    if kind not in traces.KINDS or not name:
        raise ConfigError(f"--trace {trace}: KIND:FILE, where KIND is {' or '.join(traces.KINDS)}")
    text = _text(Path(name))
    if kind == "alibaba":
        return checked(traces.alibaba(text, name), machines, name)
    if throughputs is None:
        raise ConfigError("--trace gavel needs --throughputs: how fast its jobs are is not in it")
    try:
        table = json.loads(_text(throughputs))
    except ValueError as error:
        raise DataError(f"{throughputs}: {error}") from error
    if not isinstance(table, dict):
        raise DataError(f"{throughputs}: not a table of throughputs")
    return checked(traces.gavel(text, table, name), machines, name)


def _text(file: Path) -> str:
    try:
        return file.read_text()
    except (OSError, UnicodeDecodeError) as error:
        raise DataError(f"{file}: {getattr(error, 'strerror', None) or error}") from error


def _recorded(name: str, context: typer.Context) -> Workload:
    from dltools.cli.plan import opened
    from dltools.sim.recording import workload
    from dltools.streams import concat

    recording, _ = opened(name, context)
    return workload(concat(recording.tables), name)


Task = tuple[Any, str, list[str], str, bool, int]


def _check(names: Sequence[str], assignments: Sequence[str], realize: str) -> None:
    """Complain of a wrong setting before anything runs."""
    from dltools.policy.parameters import describe

    known: set[str] = set()
    for name in names:
        policy, _, _ = _chosen(name, assignments, realize)
        known |= {p["name"] for p in describe(policy.parameters)}
    for key in options.assigned(assignments):
        if key not in known:
            raise ConfigError(f"--set {key}: none of these policies has it")


def _chosen(name: str, assignments: Sequence[str], realize: str) -> tuple[Any, Any, Any]:
    from dltools.cli.plan import choice_of, plugins
    from dltools.policy import registry
    from dltools.policy.parameters import build, describe

    policy = registry.get(name, plugins())
    own = {p["name"] for p in describe(policy.parameters)}
    given = {key: value for key, value in options.assigned(assignments).items() if key in own}
    return policy, build(policy.parameters, given), choice_of(realize)


def _simulate(task: Task) -> list[JobResult]:
    from dltools.sim.engine import Simulation

    workload, name, assignments, realize, clairvoyant, _ = task
    policy, parameters, choice = _chosen(name, assignments, realize)
    return Simulation(workload, policy, parameters, choice, clairvoyant=clairvoyant).run()


def _recorded_to(file: Path, task: Task, every_s: float) -> list[JobResult]:
    """Simulate, and write the observations."""
    from dltools.files import atomic_file
    from dltools.sim.engine import Simulation
    from dltools.sim.observe import Recorder
    from dltools.streams import Format, writer

    if not every_s >= 0.01:
        raise ConfigError(f"--interval {every_s:g}: at least 0.01 s")
    workload, name, assignments, realize, clairvoyant, _ = task
    policy, parameters, choice = _chosen(name, assignments, realize)
    recorder = Recorder()
    found = Simulation(workload, policy, parameters, choice, clairvoyant=clairvoyant,
                       observer=recorder, every_s=every_s).run()  # fmt: skip
    with atomic_file(file) as out:
        target = writer(Format.PARQUET, out)  # type: ignore[arg-type]
        target.write(recorder.table())
        target.close()
    return found


def _all(tasks: Sequence[Task]) -> Iterator[list[JobResult]]:
    """Simulate on all cores; in this process where there is little to do."""
    cores = len(os.sched_getaffinity(0))
    if cores == 1 or sum(len(task[0].jobs) for task in tasks) < 500:
        yield from map(_simulate, tasks)
        return
    from concurrent.futures import ProcessPoolExecutor

    with ProcessPoolExecutor(min(cores, len(tasks))) as pool:
        yield from pool.map(_simulate, tasks)


def _policy_rows(
    names: Sequence[str], tasks: Sequence[Task], found: Sequence[list[JobResult]]
) -> list[dict[str, Any]]:
    """Return a row per policy: means over the repeats, and ratios to the first policy."""
    from dltools.sim.outcome import summarise

    rows: list[dict[str, Any]] = []
    for name in names:
        summaries = [summarise(results) for task, results in zip(tasks, found, strict=True)
                     if task[1] == name]  # fmt: skip
        row = {"policy": name, **_means(summaries)}
        base = rows[0] if rows else row
        for key in ("makespan", "mean_completion", "time_to_first", "satisfied"):
            known = row[key] is not None and base[key]
            row[f"{key}_ratio"] = row[key] / base[key] if known else None
        rows.append(row)
    return rows


def _means(summaries: Sequence[Summary]) -> dict[str, Any]:
    means: dict[str, Any] = {}
    for field in dataclasses.fields(summaries[0]):
        values = [getattr(summary, field.name) for summary in summaries]
        known = [value for value in values if not math.isnan(value)]
        means[field.name] = math.fsum(known) / len(known) if known else None
    return means


def _ranked(
    criterion: str, workloads: Sequence[tuple[int, Workload]], *, clairvoyant: bool
) -> list[dict[str, Any]]:
    """Return a row per candidate, the best first, with the dl-plan command that does it."""
    from dltools.sim.candidates import CRITERIA, candidates, score
    from dltools.sim.outcome import summarise

    if criterion not in CRITERIA:
        raise ConfigError(f"--best {criterion}: one of {', '.join(CRITERIA)}")
    tried = list(candidates())
    tasks = [
        (workload, one.policy, list(one.assignments), one.mode, clairvoyant, number)
        for one in tried
        for number, workload in workloads
    ]
    found = iter(_all(tasks))
    ranked = []
    for place, one in enumerate(tried):
        summaries = [summarise(next(found)) for _ in workloads]
        scores = [score(summary, criterion) for summary in summaries]
        ranked.append((math.fsum(scores) / len(scores), place, one, _means(summaries)))
    if all(math.isinf(worth) for worth, *_ in ranked):
        raise DataError(f"--best {criterion}: no job of this workload has it")
    field = CRITERIA[criterion][0]
    base = ranked[0][3][field]
    return [
        {"policy": one.policy, "realize": one.mode, "set": " ".join(one.assignments), **means,
         f"{field}_ratio": means[field] / base if means[field] is not None and base else None,
         "command": one.command}
        for _, _, one, means in sorted(ranked, key=lambda entry: entry[:2])
    ]  # fmt: skip


def _job_rows(tasks: Sequence[Task], found: Sequence[list[JobResult]]) -> list[dict[str, Any]]:
    return [
        {"policy": task[1], "seed": task[5], **dataclasses.asdict(result),
         "completion": result.completion}
        for task, results in zip(tasks, found, strict=True) for result in results
    ]  # fmt: skip


def _print(rows: Sequence[Mapping[str, Any]], shape: Output) -> None:
    if shape is Output.TABLE:
        from dltools.cli.tables import simulation_table

        console = options.console()
        ranked = bool(rows) and "command" in rows[0]
        console.print(simulation_table(rows[:_BEST] if ranked else rows))
        if ranked:
            console.print(f"The best of {len(rows)}:  {rows[0]['command']}", soft_wrap=True)
    elif shape is Output.CSV:
        out = csv.DictWriter(sys.stdout, list(rows[0]) if rows else [], lineterminator="\n")
        out.writeheader()
        out.writerows(rows)
    else:
        for row in rows:
            print(json.dumps(row, separators=(",", ":")))


app = options.app(sim)


def main() -> None:
    """Run dl-sim."""
    run(app)
