"""Options that mean the same in every tool, and how their values are read."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Annotated

import typer

from dltools import __version__
from dltools.notation.times import parse_duration

_LONGEST_S = 1e9

CONTEXT = {"help_option_names": ["-h", "--help"]}


def app(command: Callable[..., None]) -> typer.Typer:
    """Return a tool made of one command."""
    tool = typer.Typer(
        add_completion=False,
        rich_markup_mode=None,
        pretty_exceptions_enable=False,
        context_settings=CONTEXT,
    )
    tool.command()(command)
    return tool


def _version(value: bool) -> None:
    if value:
        print(f"{os.path.basename(sys.argv[0])} (dltools) {__version__}")  # noqa: PTH119
        raise typer.Exit


Version = Annotated[
    bool,
    typer.Option("--version", callback=_version, is_eager=True, help="Print the version and exit."),
]
Verbose = Annotated[
    bool, typer.Option("-v", "--verbose", help="Print progress messages on standard error.")
]
Input = Annotated[str, typer.Argument(metavar="[FILE]", help="Input file; - is standard input.")]

Inputs = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="[FILE]...",
        help="Input files, pipes or directories, merged by time; - is standard input.",
    ),
]


def duration(text: str) -> float:
    """Read a duration: a number of seconds, or one with the unit s, m, h or d."""
    try:
        found = parse_duration(text)
    except ValueError as error:
        raise typer.BadParameter(
            f"{text!r} is not a duration such as 30, 1.5s, 10m or 2h"
        ) from error
    if found > _LONGEST_S:
        raise typer.BadParameter(f"{text!r} is longer than thirty years")
    return found


Patience = Annotated[
    float,
    typer.Option(
        parser=duration,
        metavar="TIME",
        envvar="DLTOOLS_PATIENCE",
        help="Wait this long for an engine that restarts.",
    ),
]
Realize = Annotated[
    str,
    typer.Option(
        metavar="MODE",
        envvar="DLTOOLS_REALIZE",
        help="How allocations become settings: auto, quota, weight, priority, rotate or cores.",
    ),
]
Quantum = Annotated[
    str,
    typer.Option(
        metavar="TIME",
        help="Mean length of a turn, with --realize rotate. auto: so long that changing over "
        "costs 2 %.",
    ),
]


def quantum_seconds(text: str) -> float | None:
    """Read the value of --quantum in seconds, None for auto."""
    return None if text == "auto" else duration(text)


Roles = Annotated[
    list[str] | None,
    typer.Option(
        "--role",
        metavar="PATTERN=ROLE",
        help="Say what containers are, whatever else tells it: training, server, interactive or "
        "other. PATTERN is that of their names, or label:KEY[=VALUE]. Repeatable: the last one "
        "that fits counts.",
    ),
]

StateDir = Annotated[
    Path | None,
    typer.Option(
        metavar="DIR",
        envvar="DLTOOLS_STATE_DIR",
        help="Directory where dl-apply keeps its journal and turns, if not the default one.",
    ),
]
