"""What dl-plan is asked for: its options, their defaults, and which contradict each other."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import typer

from dltools.cli import destinations, options
from dltools.cli.formats import RecordFormat
from dltools.cli.options import MoreMessages, Realisation, argument, expert_flag, flag, option


@dataclass(frozen=True, kw_only=True)
class Request(MoreMessages, Realisation):
    """What to plan by and what to print."""

    inputs: list[str] = argument(
        "[FILE]...",
        "Input files, pipes or directories, merged by time; - is standard input.",
        ["-"],
    )
    policy: str = option(
        "-p, --policy NAME",
        "Scheduling policy; --list-policies lists them.",
        "flowcon",
        has_variable=True,
    )
    assignments: list[str] = option("--set NAME=VALUE", "Set a policy parameter. Repeatable.", [])
    targets_file: Path | None = option(
        "--targets FILE", "Read targets from a TOML file, for containers without target labels."
    )
    roles: list[str] = options.roles_option()
    is_only_labelled: bool = expert_flag(
        "--only-labelled",
        "Change only containers that their owners have labelled: dltools.role=training or server, "
        "or a target.",
        has_variable=True,
    )
    state_file: Path | None = option("--state FILE", "Continue from the plan or state in FILE.")
    saved_state_file: Path | None = option(
        "--save-state FILE",
        "Write the state to FILE instead of into the plans: at the end, and after each plan of "
        "a stream. FILE need not exist yet if --state names it too.",
    )
    plans_every_sample: bool = flag("--every", "Print a plan for every sample of a recording.")
    format: RecordFormat = option(
        "--format",
        "Output format. auto: a table with the reasons on a terminal, else JSON Lines.",
        RecordFormat.AUTO,
    )
    lists_policies: bool = flag(
        "--list-policies", "List the policies with their parameters and classes, and exit."
    )

    def __post_init__(self) -> None:
        """Raise `BadParameter` for an input that is named twice, and `OutputError` where the state
        cannot be saved."""
        for name in self.inputs:
            if self.inputs.count(name) > 1:
                raise typer.BadParameter(f"{name} is named twice")
        destinations.check(self.saved_state_file, [*self.inputs, self.targets_file or ""])
