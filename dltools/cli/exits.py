"""Exit codes, and the one place where errors become a line on standard error and a code."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import sys
from collections.abc import Callable, Iterator
from enum import IntEnum
from functools import partial
from io import BufferedWriter, RawIOBase, TextIOWrapper
from types import FrameType
from typing import NoReturn, TextIO

import typer
import typer.main
from typer._click.exceptions import UsageError

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


def run(app: typer.Typer) -> NoReturn:
    """Run a tool on the command line, and exit. Every error ends in one line on standard error and
    an exit code; DLTOOLS_DEBUG=1 lets the traceback through."""
    signal.signal(signal.SIGTERM, _terminate)
    _prepare_streams()
    code = _ended(partial(_invoke, app))
    if code != Exit.PIPE:
        code = _ended(sys.stdout.flush) or code
    try:
        sys.stderr.flush()
    except OSError:
        _silence(sys.stderr)  # it would fail again, and change the code
    sys.exit(code)


def _prepare_streams() -> None:
    """Let standard output take any text, in writes that no signal cuts; and let standard error be
    open, so that nothing else takes its number."""
    sys.stderr = sys.stderr or open(os.devnull, "w")  # noqa: PTH123, SIM115
    if sys.stdout is None:
        print_message("standard output is closed")
        sys.exit(Exit.IO)
    if isinstance(sys.stdout, TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")  # lone surrogates, as JSON writes them
        if isinstance(sys.stdout.buffer, RawIOBase):  # PYTHONUNBUFFERED: signals cut writes
            whole = BufferedWriter(sys.stdout.detach())
            sys.stdout = TextIOWrapper(whole, errors="backslashreplace", write_through=True)


def _invoke(app: typer.Typer) -> None:
    if any(re.fullmatch("(--[a-z-]+=)?", word) for word in sys.argv[1:]):
        raise UsageError("an argument is empty: is a variable unset?")
    tool = typer.main.get_command(app)
    with tool.make_context(_name(), sys.argv[1:]) as context:
        tool.invoke(context)


def _ended(work: Callable[[], object]) -> int:
    """Do work, and return its exit code, having told an error in one line."""
    try:
        work()
    except typer.Exit as end:
        return end.exit_code
    except SystemExit as end:
        return int(end.code or 0)
    except KeyboardInterrupt:
        return Exit.INTERRUPTED
    except BrokenPipeError:
        _silence(sys.stdout)
        return Exit.PIPE
    except UsageError as error:
        print_message(f"{error.format_message().rstrip('.')}; see {_name()} --help")
        return Exit.USAGE
    except Exception as error:
        if os.environ.get("DLTOOLS_DEBUG") == "1":
            raise
        code, line = _told(error)
        print_message(line)
        if isinstance(error, OSError) and error.filename is None:
            _silence(sys.stdout)  # what is still buffered would fail again
        return code
    return Exit.OK


def _told(error: Exception) -> tuple[Exit, str]:
    """Return the exit code for an error, and what to say."""
    if isinstance(error, errors.DltoolsError):
        codes = (code for kind, code in CODES.items() if isinstance(error, kind))
        return next(codes, Exit.UNAVAILABLE), str(error)
    if isinstance(error, MemoryError):
        return Exit.DATA, "the input does not fit into memory"
    if isinstance(error, PermissionError):
        return Exit.PERMISSION, f"{error.filename or 'output'}: permission denied"
    if isinstance(error, OSError):
        return Exit.IO, f"{error.filename or 'output'}: {error.strerror or error}"
    said = f"a bug in dltools: {type(error).__name__}: {error}; DLTOOLS_DEBUG=1 shows where"
    return Exit.SOFTWARE, said


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


def print_message(message: str) -> None:
    """Print one line on standard error, under the tool's name. Where nobody can get it, the work
    goes on without."""
    line = printable(" ".join(message.split()))
    with contextlib.suppress(OSError):
        print(f"{_name()}: {line}", file=sys.stderr)


def _name() -> str:
    return os.path.basename(sys.argv[0]) or "dltools"  # noqa: PTH119


def _terminate(*_: object) -> NoReturn:
    raise SystemExit(Exit.TERMINATED)  # so that files close and limits can be restored


def _silence(stream: TextIO) -> None:
    """Discard what is still buffered for a stream."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
