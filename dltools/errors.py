"""What can go wrong: one class of exceptions for each cause.

Each message is one line: what is wrong with which input, and what to do. `dltools.cli.exits` maps
the classes to exit codes, which no other package knows.
"""

import csv
from collections.abc import Iterator
from contextlib import contextmanager

from dltools.text import printable

LONGEST = 280
"""Characters of a message at most."""


class DltoolsError(Exception):
    """An error whose message a person reads: one printable line of bounded length, also where it
    quotes hostile input."""

    def __init__(self, message: str) -> None:
        """Make the message printable and cut it in its middle where it is too long."""
        line = printable(" ".join(message.split()))
        whole = len(line) <= LONGEST
        super().__init__(line if whole else f"{line[: LONGEST - 80]}...{line[-70:]}")


class DataError(DltoolsError):
    """The input is of another format or version, cut off, damaged or empty."""


class UnavailableError(DltoolsError):
    """An engine, a driver or a kernel interface does not answer."""


class OutputError(DltoolsError):
    """The output cannot be created."""


class InputOutputError(DltoolsError):
    """Reading or writing failed after it began: a full disk, a device error."""


class RetryError(DltoolsError):
    """Another run holds the lock, or what was read has changed since: trying again can help."""


class AccessError(DltoolsError):
    """The user lacks the permission."""


class ConfigError(DltoolsError):
    """A setting is unknown, of the wrong type or out of range."""


def first_line(error: BaseException) -> str:
    """Return the first line of an error's message, cut to a readable length."""
    return (str(error).strip().splitlines() or [type(error).__name__])[0][:200]


@contextmanager
def reading(where: str) -> Iterator[None]:
    """Turn what a text or number that cannot be read raises into a `DataError` that names its
    place."""
    try:
        yield
    except (ValueError, TypeError, OverflowError, RecursionError, csv.Error) as error:
        raise DataError(f"{where}: {error}") from error
