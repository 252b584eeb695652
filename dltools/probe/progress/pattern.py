"""Compiles regular expressions of users, from labels and options, and finds points by them.

Google's RE2 matches them in time linear in the text, so that no expression can stop a tool. Its
syntax is that of Perl without lookaround and backreferences; the Docker engine uses it too. The
command line also compiles the option --name here.
"""

from __future__ import annotations

import re
from itertools import islice
from typing import Any

from dltools.errors import ConfigError
from dltools.probe.progress.base import Point, number

_SPECIAL = ("step", "epoch", "metric", "value")

_MOST_MATCHES = 100
"""Most matches of one line that are used: each may search the rest of the line."""


class Pattern:
    """Finds points by a user's regular expression: its named groups are the metrics.

    `(?P<loss>...)` gives metric loss; the groups `step` and `epoch` are what they say; the pair
    `metric` and `value` takes the metric's name from the text.
    """

    name = "pattern"

    def __init__(self, expression: str) -> None:
        """Raises `ConfigError` for an expression that does not compile or names no metric."""
        self._regex = compiled(expression, "pattern")
        groups = sorted(self._regex.groupindex, key=self._regex.groupindex.get)
        self._metrics = [name for name in groups if name not in _SPECIAL]
        self._pair = "metric" in groups and "value" in groups
        if not self._metrics and not self._pair:
            raise ConfigError(f"pattern {expression!r} has no named group such as (?P<loss>...)")

    def points(self, line: str) -> list[Point]:
        """Return the points of the matches in the line."""
        found = []
        for match in islice(self._regex.finditer(line), _MOST_MATCHES):
            groups = match.groupdict()
            pairs = [(name, groups[name]) for name in self._metrics]
            if self._pair:
                pairs.append((groups["metric"], groups["value"]))
            step, epoch = _number(groups.get("step")), _number(groups.get("epoch"))
            for name, text in pairs:
                value = _number(text)
                if name and value is not None:
                    whole = int(step) if step is not None and abs(step) < 2**63 else None
                    found.append(Point(name, value, whole, epoch, self.name, name))
        return found


def _number(text: str | None) -> float | None:
    try:
        return None if text is None else number(text.strip())
    except ValueError:
        return None


_LONGEST = 4_096
"""The most characters of an expression."""

_MOST_MEMORY = 1 << 20
"""Bytes that a compiled expression may take: one that repeats its repeats takes more."""

_NAME = re.compile(r"\(\?P?<(\w+)>")
_UNSUPPORTED = re.compile(r"\(\?(?:<?[=!]|>|P=|\()|\\[1-9]|[*+?}]\+")

_WHY = (
    "lookaround, backreferences, atomic groups and possessive repeats are not supported: write the "
    "context plainly, only named groups count"
)


def compiled(expression: str, what: str) -> Any:
    """Return a compiled expression, with the methods of those of `re`.

    Raises `ConfigError` if RE2 refuses it; `what` names the expression in the message.
    """
    import re2

    shown = f"{what} {expression[:80]!r}"
    if len(expression) > _LONGEST:
        raise ConfigError(f"{shown}: longer than {_LONGEST} characters")
    names = _NAME.findall(expression)
    if twice := [name for name in names if names.count(name) > 1]:
        raise ConfigError(f"{shown}: two groups are called {twice[0]}")
    options = re2.Options()
    options.max_mem, options.log_errors = _MOST_MEMORY, False
    try:
        return re2.compile(expression, options)
    except UnicodeEncodeError as error:
        raise ConfigError(f"{shown}: not valid Unicode") from error
    except re2.error as error:
        raise ConfigError(f"{shown}: {_reason(expression, error)}") from error


def _reason(expression: str, error: Exception) -> str:
    """Return what is wrong with an expression."""
    said = error.args[0] if error.args else ""
    text = said.decode(errors="replace") if isinstance(said, bytes) else str(said)
    if _UNSUPPORTED.search(expression):
        return _WHY
    return f"{text} (see the syntax of RE2)"
