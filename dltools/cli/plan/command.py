"""The command line of dl-plan: its options, and the exit codes that it can give."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from dltools.cli import options
from dltools.cli.exits import Exit, exit_codes, guarded, run
from dltools.cli.formats import RecordFormat, format_for_stdout, format_option
from dltools.cli.options import (
    Inputs,
    Quantum,
    Quiet,
    Realize,
    Roles,
    Verbose,
    Version,
    quantum_seconds,
)


@guarded
def plan(
    context: typer.Context,
    inputs: Inputs = None,
    policy: Annotated[
        str,
        typer.Option(
            "-p",
            "--policy",
            metavar="NAME",
            envvar="DLTOOLS_POLICY",
            help="Scheduling policy; --list-policies lists them.",
        ),
    ] = "flowcon",
    set_: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="NAME=VALUE", help="Set a policy parameter. Repeatable."),
    ] = None,
    params: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Read policy parameters from a TOML file; --set overrides it.",
            rich_help_panel=options.EXPERT,
        ),
    ] = None,
    realize: Realize = "auto",
    quantum: Quantum = "auto",
    targets: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Read targets from a TOML file, for containers whose labels have none.",
        ),
    ] = None,
    role: Roles = None,
    only_labelled: Annotated[
        bool,
        typer.Option(
            "--only-labelled",
            envvar="DLTOOLS_ONLY_LABELLED",
            help="Leave alone each container whose owner has not labelled it with "
            "dltools.role=training or server, or with a target.",
            rich_help_panel=options.EXPERT,
        ),
    ] = False,
    state: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Continue from the plan or state in FILE.")
    ] = None,
    save_state: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Write the state to FILE, and not into the plans: at the end, and after each plan "
            "of a stream. If --state names the same FILE, it need not exist.",
        ),
    ] = None,
    every: Annotated[
        bool, typer.Option("--every", help="Print a plan for every sample of a recording.")
    ] = False,
    format_: Annotated[
        RecordFormat, format_option("a table with the reasons on a terminal, else JSON Lines")
    ] = RecordFormat.AUTO,
    list_policies: Annotated[
        bool,
        typer.Option(
            "--list-policies", help="List the policies with their parameters and classes, and exit."
        ),
    ] = False,
    verbose: Verbose = False,
    quiet: Quiet = False,  # noqa: ARG001
    version: Version = False,  # noqa: ARG001
) -> None:
    """Decide from observations what each container should get.

    Reads the output of dl-probe in any of its formats, and prints plans as JSON Lines, or on a
    terminal as a table. A recording gives one plan, for its last sample; an Arrow stream gives one
    plan per sample as it arrives. Several inputs are merged by time. The same input and parameters
    always give the same plan.
    """
    if list_policies:
        from dltools.cli.policies import print_policies

        print_policies()
        return
    from dltools.cli.plan.run import Request, run_request

    request = Request(
        inputs=tuple(inputs or ["-"]),
        policy=policy,
        assignments=tuple(set_ or ()),
        parameters_file=params,
        mode=realize,
        quantum_s=quantum_seconds(quantum),
        targets_file=targets,
        roles=tuple(role or ()),
        is_only_labelled=only_labelled,
        state_file=state,
        saved_state_file=save_state,
        plans_every_sample=every,
        format=format_for_stdout(format_),
        is_verbose=verbose,
    )
    run_request(request, context)


app = options.app(plan)


def main() -> None:
    """Run dl-plan."""
    run(app)


EXITS = exit_codes(
    {
        Exit.OK: "Success, also when the plan is empty.",
        Exit.PARTIAL: "Of several inputs one could not be read to its end; the plans lack it.",
        Exit.USAGE: "Wrong usage, or standard input is a terminal.",
        Exit.DATA: "The input or the state is empty, cut off, malformed or of another version; "
        "or the file of --state holds no state.",
        Exit.CANT_CREATE: "The file of --save-state cannot be created.",
        Exit.CONFIG: "A policy, parameter or mode is unknown, a value is out of range, or the "
        "targets file is wrong.",
    }
)
