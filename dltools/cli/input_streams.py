"""The files and pipes that a tool reads."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

import typer

from dltools.cli.exits import Exit
from dltools.errors import InputOutputError


def open_input(name: str, context: typer.Context) -> tuple[BinaryIO, str]:
    """Return the input stream and its name for messages; - is standard input.

    At a terminal, print the usage and exit with 2. Raises `InputOutputError`.
    """
    if name != "-":
        return _opened(name), name
    stream = _stdin()
    if stream.isatty():
        _refuse_terminal(context)
    return stream, "standard input"


@contextmanager
def open_log(name: str) -> Iterator[BinaryIO]:
    """Open a saved log; - is standard input, also a terminal. Raises `InputOutputError`."""
    if name == "-":
        yield _stdin()
        return
    with _opened(name) as stream:
        yield stream


def _stdin() -> BinaryIO:
    if sys.stdin is None:
        raise InputOutputError("standard input is closed: give a FILE or pipe something in")
    return sys.stdin.buffer


def _opened(name: str) -> BinaryIO:
    try:
        return Path(name).open("rb")
    except IsADirectoryError as error:
        raise InputOutputError(f"{name}: is a directory") from error
    except FileNotFoundError as error:
        raise InputOutputError(f"{name}: no such file") from error


def _refuse_terminal(context: typer.Context) -> None:
    print(context.get_usage(), file=sys.stderr)
    print(
        "Standard input is a terminal: give a FILE or pipe something in; see --help.",
        file=sys.stderr,
    )
    raise typer.Exit(Exit.USAGE)
