"""A regular expression given by the user: its named groups are the metrics.

`(?P<loss>...)` gives metric loss; the groups `step` and `epoch` are what they say; the pair
`metric` and `value` takes the metric's name from the text.
"""

from __future__ import annotations

from itertools import islice

from dltools.errors import ConfigError
from dltools.probe.progress.base import Point, number
from dltools.probe.progress.expressions import compiled

_SPECIAL = ("step", "epoch", "metric", "value")

_MOST_MATCHES = 100
"""Matches of one line that are looked at: each may search the rest of the line."""


class Pattern:
    """Finds points by a user's regular expression."""

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
