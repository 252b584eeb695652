"""Regular expressions of users, from labels and options, and the points that they find.

Google's RE2 matches them in time linear in the text, so that no expression can stop a tool. It is
the one in Arrow, which the tools need anyway. Its syntax is that of Perl without lookaround and
backreferences; the Docker engine uses it too.
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterator, Sequence

from dltools.errors import ConfigError
from dltools.probe.progress.base import Point, number

Match = dict[str, str | None]
"""What each group of an expression matched, by its name: "" for one that took no part."""

_SPECIAL = ("step", "epoch", "metric", "value")


class Pattern:
    """Finds points by a user's regular expression: its named groups are the metrics.

    `(?P<loss>...)` gives metric loss; the groups `step` and `epoch` are what they say; the pair
    `metric` and `value` takes the metric's name from the text.
    """

    name = "pattern"

    def __init__(self, expression: str) -> None:
        """Raises `ConfigError` for an expression that does not compile or names no metric."""
        self._expression = Expression(expression, "pattern")
        groups = self._expression.groups
        self._metrics = [name for name in groups if name not in _SPECIAL]
        self._pair = "metric" in groups and "value" in groups
        if not self._metrics and not self._pair:
            raise ConfigError(f"pattern {expression!r} has no named group such as (?P<loss>...)")

    def points(self, line: str) -> list[Point]:
        """Return the points of the matches in the line."""
        return self.points_of([line])[0]

    def points_of(self, lines: Sequence[str]) -> list[list[Point]]:
        """Return the points of each line. Many at once take a fraction of the time."""
        return [
            [point for groups in matches for point in self._points(groups)]
            for matches in self._expression.matches(lines)
        ]

    def _points(self, groups: Match) -> Iterator[Point]:
        """Yield the points of one match."""
        pairs = [(name, groups[name]) for name in self._metrics]
        if self._pair:
            pairs.append((groups["metric"] or "", groups["value"]))
        step, epoch = _number(groups.get("step")), _number(groups.get("epoch"))
        for name, text in pairs:
            value = _number(text)
            if name and value is not None:
                whole = int(step) if step is not None and abs(step) < 2**63 else None
                yield Point(name, value, whole, epoch, self.name, name)


_TOGETHER = 16_384
"""Characters that are matched at once: no more than one line may have."""


class PatternReader:
    """Finds the points of one log by a pattern."""

    def __init__(self, pattern: Pattern) -> None:
        self._pattern = pattern
        self._coming: Iterator[str] = iter(())
        self._points: dict[str, list[Point]] = {}

    def expect(self, data: bytes) -> None:
        """Hear which lines will probably be asked for next, so that they are matched together."""
        self._coming = iter(data.decode(errors="replace").split("\n"))

    def points(self, line: str) -> list[Point]:
        """Return the points of the line."""
        if line not in self._points:
            lines, size = [line], len(line)
            while size < _TOGETHER and (coming := next(self._coming, None)) is not None:
                lines.append(coming[:_TOGETHER])
                size += len(coming)
            self._points = dict(zip(lines, self._pattern.points_of(lines), strict=True))
        return list(self._points[line])


def _number(text: str | None) -> float | None:
    try:
        return None if text is None else number(text.strip())
    except ValueError:
        return None


_LONGEST = 4_096
"""The most characters of an expression."""

_COPIES = 64
"""RE2 compiles an expression into at most 8 MiB. So many copies of one must fit in there: each
character of a line takes, at worst, time for each step of the expression."""

_MOST_MATCHES, _LONGEST_S = 100, 0.1
"""Most matches of one line that are used, and CPU time after which no more are looked for: each may
search the rest of the line."""

_PARTS = re.compile(
    r"\\Q.*?(?:\\E|$)|\\.|\[\^?\]?(?:\[:\^?\w+:\]|\\.|[^\]\\])*+\]|(\((?:\?P?<(\w+)>|(?!\?)))",
    re.DOTALL,
)
"""A quoted piece, an escape, a class, or, as the first group, the start of a group that RE2 counts,
with its name as the second."""

_REST = "dltools_rest"
_UNSUPPORTED = re.compile(r"\(\?(?:<?[=!]|>|P=|\()|\\[1-9]|[*+?}]\+")

_WHY = (
    "lookaround, backreferences, atomic groups and possessive repeats are not supported: write the "
    "context plainly, only named groups count"
)


class Expression:
    """A regular expression of a user."""

    def __init__(self, expression: str, what: str) -> None:
        """Raises `ConfigError` if RE2 refuses it; `what` names the expression in the message."""
        shown = f"{what} {expression[:80]!r}"
        if len(expression) > _LONGEST:
            raise ConfigError(f"{shown}: longer than {_LONGEST} characters")
        names = [part[2] for part in _PARTS.finditer(expression) if part[2]]
        if twice := [name for name in names if [*names, _REST].count(name) > 1]:
            raise ConfigError(f"{shown}: two groups are called {twice[0]}")
        self.groups = tuple(names)
        """The names of its groups, in order."""
        self._plain = _PARTS.sub(lambda part: "(?:" if part[1] else part[0], expression)
        named = _PARTS.sub(lambda part: "(?:" if part[1] == "(" else part[0], expression)
        body = f"(?s:.*?)(?:{named})(?P<{_REST}>(?s:.*))"
        self._first, self._next = f"^{body}", f"^(?s:.){body}"
        try:
            _is_found(expression, "")
            _is_found(f"(?:{self._plain})" * _COPIES, "")
        except UnicodeEncodeError as error:
            raise ConfigError(f"{shown}: not valid Unicode") from error
        except ValueError as error:
            raise ConfigError(f"{shown}: {_reason(expression, error)}") from error

    def search(self, text: str) -> bool:
        """Tell whether the expression matches somewhere in the text."""
        return _is_found(self._plain, text)

    def matches(self, lines: Sequence[str]) -> list[list[Match]]:
        """Return the matches in each line, in order."""
        import pyarrow as pa
        import pyarrow.compute as pc

        matches: list[list[Match]] = [[] for _ in lines]
        ends, rests = [0] * len(lines), dict(enumerate(lines))
        expression, until = self._first, time.thread_time() + _LONGEST_S
        for _ in range(_MOST_MATCHES):
            came = pc.extract_regex(pa.array(rests.values()), expression).to_pylist()
            matched, rests = zip(list(rests), came, strict=True), {}
            for index, groups in matched:
                if groups is not None:
                    line = lines[index]
                    end = max(len(line) - len(groups.pop(_REST)), ends[index] + 1)
                    matches[index].append(groups)
                    # With the character before, on which \b and ^ depend.
                    ends[index], rests[index] = end, line[end - 1 :]
            expression = self._next
            if not rests or time.thread_time() > until:
                break
        return matches


def _is_found(expression: str, text: str) -> bool:
    import pyarrow as pa
    import pyarrow.compute as pc

    return bool(pc.match_substring_regex(pa.scalar(text), expression).as_py())


def _reason(expression: str, error: Exception) -> str:
    """Return what is wrong with an expression."""
    if _UNSUPPORTED.search(expression):
        return _WHY
    said = str(error).removeprefix("Invalid regular expression: ")
    return f"{said} (see the syntax of RE2)"
