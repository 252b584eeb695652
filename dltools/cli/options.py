"""Options that mean the same in every tool, and how their values are read."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, BinaryIO

import typer

from dltools import __version__
from dltools.errors import ConfigError, InputOutputError
from dltools.notation.durations import parse_duration
from dltools.text import printable_lines

if TYPE_CHECKING:
    from datetime import datetime

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
    bool, typer.Option("-v", "--verbose", help="Say on standard error what is going on.")
]
Input = Annotated[str, typer.Argument(metavar="[FILE]", help="What to read; - is standard input.")]


def seconds(text: str) -> float:
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
        parser=seconds,
        metavar="TIME",
        envvar="DLTOOLS_PATIENCE",
        help="How long to wait for an engine that restarts.",
    ),
]
StateDir = Annotated[
    Path | None,
    typer.Option(
        metavar="DIR",
        envvar="DLTOOLS_STATE_DIR",
        help="Directory of dl-apply's journal and turns, if it is not the usual one.",
    ),
]


def assigned(assignments: Iterable[str]) -> dict[str, object]:
    """Read what --set gave: NAME=VALUE each. Raises `ConfigError`."""
    found: dict[str, object] = {}
    for assignment in assignments:
        key, equals, value = assignment.partition("=")
        if not equals:
            raise ConfigError(f"--set {assignment}: not NAME=VALUE")
        found[key.strip()] = value.strip()
    return found


def moment(text: str) -> datetime:
    """Read a moment in ISO 8601; one without a zone is in UTC."""
    from datetime import UTC

    from dltools.notation.times import parse_time

    try:
        return parse_time(text.strip(), UTC)
    except ValueError as error:
        raise typer.BadParameter(f"{text!r} is not a moment such as 2026-01-31T12:00Z") from error
    except OverflowError as error:
        raise typer.BadParameter(f"{text!r} is at the end of the calendar") from error


@contextmanager
def opened_log(name: str) -> Iterator[BinaryIO]:
    """Open a saved log; - is standard input. Raises `InputOutputError`."""
    if name == "-":
        if sys.stdin is None:
            raise InputOutputError("standard input is closed: give a FILE or pipe something in")
        yield sys.stdin.buffer
        return
    try:
        with Path(name).open("rb") as stream:
            yield stream
    except IsADirectoryError as error:
        raise InputOutputError(f"{name}: is a directory") from error
    except FileNotFoundError as error:
        raise InputOutputError(f"{name}: no such file") from error


def open_input(name: str, context: typer.Context) -> tuple[BinaryIO, str]:
    """Return the input stream and its name for messages; at a terminal, print usage and exit 2."""
    if name == "-":
        if sys.stdin is None:
            raise InputOutputError("standard input is closed: give a FILE or pipe something in")
        if sys.stdin.isatty():
            print(context.get_usage(), file=sys.stderr)
            print(
                "Standard input is a terminal: give a FILE or pipe something in; see --help.",
                file=sys.stderr,
            )
            raise typer.Exit(2)
        return sys.stdin.buffer, "standard input"
    try:
        return Path(name).open("rb"), name
    except IsADirectoryError as error:
        raise InputOutputError(f"{name}: is a directory") from error
    except FileNotFoundError as error:
        raise InputOutputError(f"{name}: no such file") from error


def colour() -> bool | None:
    """Tell whether the user wants colour: NO_COLOR, FORCE_COLOR, else None for "if a terminal"."""
    if os.environ.get("NO_COLOR"):
        return False
    return True if os.environ.get("FORCE_COLOR") else None


def console(file: Any = None) -> Any:
    """Return a rich console that obeys NO_COLOR, FORCE_COLOR and COLUMNS, and no escapes in what
    it is to print."""
    from rich.console import Console

    class _Console(Console):
        def on_broken_pipe(self) -> None:
            raise BrokenPipeError  # rich itself would exit with 1

        def render_str(self, text: str, **how: Any) -> Any:
            return super().render_str(printable_lines(text), **how)

    wanted = colour()
    return _Console(
        file=file,
        no_color=wanted is False,
        force_terminal=True if wanted else None,
        highlight=False,
        markup=False,
        emoji=False,
    )
