"""Exit codes, and the one place where errors become a line on standard error and a code."""

from __future__ import annotations

import contextlib
import functools
import os
import signal
import sys
from collections.abc import Callable, Iterator
from enum import IntEnum
from io import BufferedWriter, RawIOBase, TextIOWrapper
from types import FrameType
from typing import Any, NoReturn

import typer

from dltools import errors
from dltools.text import printable


class Exit(IntEnum):
    """How a tool ends; 65 to 78 are those of sysexits.h, 130 and up are 128 plus a signal."""

    OK = 0
    PARTIAL = 1
    USAGE = 2
    DATA = 65
    UNAVAILABLE = 69
    SOFTWARE = 70
    CANT_CREATE = 73
    IO = 74
    RETRY = 75
    PERMISSION = 77
    CONFIG = 78
    INTERRUPTED = 130
    PIPE = 141
    TERMINATED = 143


COMMON: dict[Exit, str] = {
    Exit.OK: "Success.",
    Exit.USAGE: "Wrong usage.",
    Exit.DATA: "The input is malformed, or does not fit into memory.",
    Exit.SOFTWARE: "A bug in dltools.",
    Exit.CANT_CREATE: "The output cannot be created.",
    Exit.IO: "Reading or writing failed; for example, the disk is full.",
    Exit.PERMISSION: "Permission denied.",
    Exit.CONFIG: "A setting is unknown or out of range.",
    Exit.INTERRUPTED: "Ended by Ctrl-C.",
    Exit.PIPE: "The reader of the output went away.",
    Exit.TERMINATED: "Ended by SIGTERM.",
}
"""The codes that every tool can give, and their meanings. A tool's package adds to them."""


def exit_codes(own: dict[Exit, str]) -> dict[Exit, str]:
    """Return a tool's exit codes and their meanings, in order: the common ones and its own."""
    return dict(sorted((COMMON | own).items()))


CODES: dict[type[errors.DltoolsError], Exit] = {
    errors.DataError: Exit.DATA,
    errors.UnavailableError: Exit.UNAVAILABLE,
    errors.OutputError: Exit.CANT_CREATE,
    errors.InputOutputError: Exit.IO,
    errors.RetryError: Exit.RETRY,
    errors.AccessError: Exit.PERMISSION,
    errors.ConfigError: Exit.CONFIG,
}


def run(app: Callable[[], None]) -> None:
    """Run a tool; exit with a code where its output cannot be written."""
    if sys.stdout is None:
        print_message("standard output is closed")
        sys.exit(Exit.IO)
    if isinstance(sys.stdout, TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")  # lone surrogates, as JSON writes them
        if isinstance(sys.stdout.buffer, RawIOBase):  # PYTHONUNBUFFERED: signals cut writes
            whole = BufferedWriter(sys.stdout.detach())
            sys.stdout = TextIOWrapper(whole, errors="backslashreplace", write_through=True)
    try:
        try:
            app()
        finally:
            sys.stdout.flush()
    except BrokenPipeError:
        _silence_stdout()
        sys.exit(Exit.PIPE)
    except OSError as error:
        print_message(f"output: {error.strerror or error}")
        _silence_stdout()
        sys.exit(Exit.IO)


def guarded(command: Callable[..., None]) -> Callable[..., None]:
    """Wrap a command so that every error ends in one line on standard error and an exit code.

    DLTOOLS_DEBUG=1 lets the traceback through.
    """

    @functools.wraps(command)
    def wrapper(*args: Any, **kwargs: Any) -> None:
        signal.signal(signal.SIGTERM, _terminate)
        try:
            command(*args, **kwargs)
            sys.stdout.flush()
        except typer.Exit:
            raise
        except BrokenPipeError:
            _silence_stdout()
            raise typer.Exit(Exit.PIPE) from None
        except KeyboardInterrupt:
            raise typer.Exit(Exit.INTERRUPTED) from None
        except Exception as error:
            if os.environ.get("DLTOOLS_DEBUG") == "1" or isinstance(error, typer.BadParameter):
                raise
            fail(error)

    return wrapper


@contextlib.contextmanager
def unbroken() -> Iterator[None]:
    """Let the first SIGINT or SIGTERM wait until a record is written: who reads it gets no part of
    one. The second does not wait: perhaps nobody reads."""
    handlers = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    caught: list[int] = []

    def wait(number: int, frame: FrameType | None) -> None:
        caught.append(number)
        if len(caught) > 1:
            handlers[signal.Signals(number)](number, frame)  # type: ignore[operator,misc]

    for number, handler in handlers.items():
        if callable(handler):
            signal.signal(number, wait)
    try:
        yield
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)
    if caught:
        signal.raise_signal(caught[0])


def fail(error: Exception) -> NoReturn:
    """Print an error in one line, and exit with its code."""
    if isinstance(error, errors.DltoolsError):
        code = next((c for kind, c in CODES.items() if isinstance(error, kind)), Exit.UNAVAILABLE)
        print_message(str(error))
    elif isinstance(error, MemoryError):
        code = Exit.DATA
        print_message("the input does not fit into memory")
    elif isinstance(error, PermissionError):
        code = Exit.PERMISSION
        print_message(f"{error.filename or 'output'}: permission denied")
    elif isinstance(error, OSError):
        code = Exit.IO
        print_message(f"{error.filename or 'output'}: {error.strerror or error}")
        if error.filename is None:
            _silence_stdout()  # what is still buffered would fail again
    else:
        code = Exit.SOFTWARE
        print_message(
            f"a bug in dltools: {type(error).__name__}: {error}; DLTOOLS_DEBUG=1 shows where"
        )
    raise typer.Exit(code) from None


def print_message(message: str) -> None:
    """Print one line on standard error, under the tool's name."""
    name = os.path.basename(sys.argv[0]) or "dltools"  # noqa: PTH119
    line = printable(" ".join(message.split()))
    print(f"{name}: {line}", file=sys.stderr)


def _terminate(*_: object) -> NoReturn:
    raise SystemExit(Exit.TERMINATED)  # so that files close and limits can be restored


def _silence_stdout() -> None:
    """Discard what is still buffered for standard output."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
