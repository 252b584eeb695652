"""The command line of dl-sim: its options, and the exit codes that it can give."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from dltools.cli import options
from dltools.cli.exits import Exit, exit_codes, guarded, run
from dltools.cli.formats import RowFormat, RowFormatOption
from dltools.cli.options import Input, Quantum, Quiet, Realize, Version, duration, quantum_seconds


@guarded
def sim(
    context: typer.Context,
    input_: Input = "-",
    policy: Annotated[
        list[str] | None,
        typer.Option(
            "-p",
            "--policy",
            metavar="NAME",
            help="Scheduling policy. Repeatable; the first one is the baseline of the ratios. "
            "By default noop, flowcon, tradl, slaq, las and srtf.",
        ),
    ] = None,
    set_: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            metavar="NAME=VALUE",
            help="Set a parameter of the policies that have it. Repeatable.",
        ),
    ] = None,
    realize: Realize = "auto",
    quantum: Quantum = "auto",
    clairvoyant: Annotated[
        bool,
        typer.Option(
            "--clairvoyant",
            help="Tell the policies how many epochs each job will train.",
            rich_help_panel=options.EXPERT,
        ),
    ] = False,
    from_: Annotated[
        str,
        typer.Option(
            "--from",
            metavar="RECORDING",
            help="Run the containers of a recording again, instead of FILE: a file, a directory, "
            "or - for standard input.",
        ),
    ] = "",
    trace: Annotated[
        str,
        typer.Option(
            metavar="KIND:FILE",
            help="Read a cluster trace instead of FILE; KIND is gavel, pollux, philly or alibaba.",
        ),
    ] = "",
    throughputs: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Table of throughputs for --trace gavel, in JSON.",
            rich_help_panel=options.EXPERT,
        ),
    ] = None,
    generate: Annotated[
        str,
        typer.Option(
            metavar="KIND:N",
            help="Generate N trainings instead of reading FILE; KIND is how they arrive: fixed, "
            "random, poisson or burst.",
        ),
    ] = "",
    gap: Annotated[
        float,
        typer.Option(
            parser=duration,
            metavar="TIME",
            help="Mean time between two arrivals, for --generate and a philly trace of run times.",
        ),
    ] = "30s",  # type: ignore[assignment]
    cpus: Annotated[
        float, typer.Option(metavar="N", help="CPUs of each host, for --generate and --trace.")
    ] = 2.0,
    nodes: Annotated[
        str,
        typer.Option(
            metavar="N|FILE",
            help="Hosts for --generate and --trace: their number, or an Alibaba node list.",
        ),
    ] = "1",
    seed: Annotated[int, typer.Option(metavar="N", help="First random seed.")] = 0,
    repeat: Annotated[int, typer.Option(metavar="N", help="Number of seeds to average over.")] = 1,
    spin: Annotated[
        float | None,
        typer.Option(
            metavar="FRACTION",
            help="Loss to contention: 0 (waiting threads sleep) to 1 (they spin). By default each "
            "job's own.",
            rich_help_panel=options.EXPERT,
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
            help="Write the observations that dl-probe would have recorded of one policy's run. "
            "The name of FILE chooses the format; by default Parquet.",
        ),
    ] = None,
    interval: Annotated[
        float,
        typer.Option(
            "-i",
            "--interval",
            parser=duration,
            metavar="TIME",
            help="Time between two samples, also those of --output: how soon policies see what "
            "jobs report.",
            rich_help_panel=options.EXPERT,
        ),
    ] = "2s",  # type: ignore[assignment]
    jobs: Annotated[
        bool, typer.Option("--jobs", help="Print one row per job instead of one per policy.")
    ] = False,
    format_: RowFormatOption = RowFormat.AUTO,
    quiet: Quiet = False,  # noqa: ARG001
    version: Version = False,  # noqa: ARG001
) -> None:
    """Simulate jobs on hosts in virtual time, with the policies and settings of dl-plan.

    Reads a workload file and prints one row per policy: makespan, completion times, times to
    target, satisfied models. The same workload and seed always give the same result.
    """
    from dltools.cli.sim.run import Request, run_request
    from dltools.cli.sim.workloads import Source, nodes_of

    source = Source(
        file=input_,
        recording=from_,
        trace=trace,
        throughputs=throughputs,
        generate=generate,
        mean_gap_s=gap,
        cpus=cpus,
        nodes=nodes_of(nodes),
        seed=seed,
        repeat=repeat,
        spin=spin,
    )
    request = Request(
        source=source,
        given_policies=tuple(policy or ()),
        assignments=tuple(set_ or ()),
        mode=realize,
        quantum_s=quantum_seconds(quantum),
        is_clairvoyant=clairvoyant,
        criterion=best,
        recording=output,
        sample_interval_s=interval,
        is_by_job=jobs,
        format=format_,
    )
    run_request(request, context)


app = options.app(sim)


def main() -> None:
    """Run dl-sim."""
    run(app)


EXITS = exit_codes(
    {
        Exit.USAGE: "Wrong usage, or standard input is a terminal.",
        Exit.DATA: "The workload, recording or trace is malformed.",
        Exit.CONFIG: "A policy, parameter or mode is unknown, or a value is out of range.",
    }
)
