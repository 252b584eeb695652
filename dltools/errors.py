"""What can go wrong, as one exception class a cause.

Each message is one line that says what is wrong and what to do. `dltools.cli.exits` maps the
classes to exit codes; nothing below `cli` knows an exit code.
"""

from dltools.text import printable

LONGEST = 280


class DltoolsError(Exception):
    """Base of every error that a person is meant to read.

    Its message is one printable line of bounded length, whatever hostile input it quotes.
    """

    def __init__(self, message: str) -> None:
        """Keep the message, made printable."""
        line = printable(" ".join(message.split()))
        whole = len(line) <= LONGEST
        super().__init__(line if whole else f"{line[: LONGEST - 80]}...{line[-70:]}")


class DataError(DltoolsError):
    """The input is not what it should be: foreign, truncated, empty or of another version."""


class UnavailableError(DltoolsError):
    """An engine, a driver or a kernel interface that is needed does not answer."""


class OutputError(DltoolsError):
    """The output cannot be created."""


class InputOutputError(DltoolsError):
    """Reading or writing failed half-way: disk full, device error."""


class RetryError(DltoolsError):
    """Another run holds the lock, or the world has moved on since the plan."""


class AccessError(DltoolsError):
    """The user may not do this."""


class ConfigError(DltoolsError):
    """A setting is unknown, of the wrong type or out of range."""
