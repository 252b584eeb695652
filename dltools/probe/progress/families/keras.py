"""Keras 2 and 3, bars and lines.

It prints `Epoch 3/10`, then bars `100/500 [====>....] - ETA: 1s - loss: 0.25 - acc: 0.9`.

With verbose=2 it prints one line for each epoch. The metrics of evaluations after training get
`test_`.
"""

from __future__ import annotations

from typing import ClassVar

from dltools.probe.progress.base import PLAIN_NUMBER, Point, Regex, report

_EPOCH = Regex(r"^Epoch (\d+)(?:/\d+)?\s*$")
_BAR = Regex(r"^\s*(\d+)/(\d+|Unknown) (?:\[[=>.]*\]|[\u2501\u2500\u2578\u257a ]+)\s*-?\s*")
_PLAIN = Regex(r"^\s*(?:(\d+)/(\d+)\s+)?- (?=\d+(?:\.\d+)?(?:s|ms|us|min)\b)")
_PAIR = Regex(rf"(?:^|- )([A-Za-z_][\w@/. -]*?): ({PLAIN_NUMBER})(?= |$)")


class Log:
    """A Keras log."""

    name: ClassVar[str] = "keras"
    partial: ClassVar[bool] = False
    needs: ClassVar[tuple[str, ...]] = ("epoch ", "oss", " - ")

    def __init__(self) -> None:
        self._epoch: float | None = None
        self._trained = False  # the epoch's last bar has been drawn
        self._last = 0
        self._evaluating = False

    def points(self, line: str) -> list[Point]:
        """Return the points of one line."""
        if ": " not in line:
            if line.startswith("Epoch ") and (match := _EPOCH.search(line)):
                self._epoch = float(match[1])
                self._trained = self._evaluating = False
            return []
        if "oss" not in line and " - " not in line:
            return []
        match = _BAR.search(line) or _PLAIN.search(line)
        if match is None:
            return []
        rest = line[match.end() :]
        if not match[2] and "oss" not in rest:
            return []
        step = int(match[1]) if match[1] else None
        if step is not None:
            if self._trained and (step < self._last or "ETA" in rest):
                self._evaluating = True
            self._last = step
            self._trained = self._trained or match[1] == match[2]
        found = report(
            self.name,
            [(m[1], m[2]) for m in _PAIR.finditer(rest)],
            step=step,
            epoch=self._epoch,
            phase="test" if self._evaluating else "",
        )
        return found if any("loss" in point.metric or step is not None for point in found) else []
