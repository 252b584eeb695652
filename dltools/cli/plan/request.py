"""What dl-plan is asked for: its options, their defaults, and which contradict each other."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated

import typer

from dltools.cli import destinations, options
from dltools.cli.formats import RecordFormat, format_for_stdout, format_option
from dltools.cli.options import Inputs, Quantum, Quiet, Realize, Roles, Verbose, Version


@dataclass(kw_only=True)
class Request:
    """What to plan by and what to print."""

    inputs: Inputs = field(default_factory=list)
    policy: Annotated[
        str,
        typer.Option(
            "-p",
            "--policy",
            metavar="NAME",
            envvar="DLTOOLS_POLICY",
            help="Scheduling policy; --list-policies lists them.",
        ),
    ] = "flowcon"
    assignments: Annotated[
        list[str],
        typer.Option("--set", metavar="NAME=VALUE", help="Set a policy parameter. Repeatable."),
    ] = field(default_factory=list)
    parameters_file: Annotated[
        Path | None,
        typer.Option(
            "--params",
            metavar="FILE",
            help="Read policy parameters from a TOML file; --set overrides it.",
            rich_help_panel=options.EXPERT,
        ),
    ] = None
    mode: Realize = "auto"
    quantum_s: Quantum = "auto"  # type: ignore[assignment]
    targets_file: Annotated[
        Path | None,
        typer.Option(
            "--targets",
            metavar="FILE",
            help="Read targets from a TOML file, for containers whose labels have none.",
        ),
    ] = None
    roles: Roles = field(default_factory=list)
    is_only_labelled: Annotated[
        bool,
        typer.Option(
            "--only-labelled",
            envvar="DLTOOLS_ONLY_LABELLED",
            help="Leave alone each container whose owner has not labelled it with "
            "dltools.role=training or server, or with a target.",
            rich_help_panel=options.EXPERT,
        ),
    ] = False
    state_file: Annotated[
        Path | None,
        typer.Option("--state", metavar="FILE", help="Continue from the plan or state in FILE."),
    ] = None
    saved_state_file: Annotated[
        Path | None,
        typer.Option(
            "--save-state",
            metavar="FILE",
            help="Write the state to FILE, and not into the plans: at the end, and after each plan "
            "of a stream. If --state names the same FILE, it need not exist.",
        ),
    ] = None
    plans_every_sample: Annotated[
        bool, typer.Option("--every", help="Print a plan for every sample of a recording.")
    ] = False
    format: Annotated[
        RecordFormat, format_option("a table with the reasons on a terminal, else JSON Lines")
    ] = RecordFormat.AUTO
    lists_policies: Annotated[
        bool,
        typer.Option(
            "--list-policies", help="List the policies with their parameters and classes, and exit."
        ),
    ] = False
    is_verbose: Verbose = False
    quiet: Quiet = False
    version: Version = False

    def __post_init__(self) -> None:
        """Raise `BadParameter` for an input that is named twice, and `OutputError` where the state
        cannot be saved."""
        self.inputs = self.inputs or ["-"]
        self.format = format_for_stdout(self.format)
        for name in self.inputs:
            if self.inputs.count(name) > 1:
                raise typer.BadParameter(f"{name} is named twice")
        if self.saved_state_file is not None:
            destinations.check(self.saved_state_file)
