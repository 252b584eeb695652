"""Keras 2 and 3, bars and lines.

It prints `Epoch 3/10`, then bars `100/500 [====>....] - ETA: 1s - loss: 0.25 - acc: 0.9`.

With verbose=2 it prints one line for each epoch. The metrics of evaluations after training get
`test_`.
"""

from __future__ import annotations

from typing import ClassVar

from dltools.probe.progress.base import PLAIN_NUMBER, Point, Regex, number, report

_EPOCH = Regex(r"^Epoch (\d+)(?:/\d+)?\s*$")
_BAR = Regex(r"^\s*(\d+)/(\d+|Unknown) (?:\[[=>.]*\]|[\u2501\u2500\u2578\u257a ]+)\s*-?\s*")
_PLAIN = Regex(r"^\s*(?:(\d+)/(\d+)\s+)?- (?=\d+(?:\.\d+)?(?:s|ms|us|min)\b)")
_PAIR = Regex(rf"(?:^|- )([A-Za-z_][\w@/. -]*?): ({PLAIN_NUMBER})(?= |$)")
_ETA = Regex(r"ETA: (?:(\d+):)?(?:(\d+):)?(\d+)s?\b")
_TOOK = Regex(r"^(\d+(?:\.\d+)?)(s|ms|us|min)\b")
_UNITS = {"s": 1.0, "ms": 1e-3, "us": 1e-6, "min": 60.0}


class Log:
    """A Keras log. Time elapsed: the sum of the epochs; within an epoch what the ETA implies."""

    name: ClassVar[str] = "keras"
    partial: ClassVar[bool] = False
    needs: ClassVar[tuple[str, ...]] = ("epoch ", "oss", " - ")

    def __init__(self) -> None:
        self._epoch: float | None = None
        self._past = self._latest = 0.0  # seconds of the epochs before; until now
        self._trained = False  # the epoch's last bar has been drawn
        self._last = 0
        self._evaluating = False

    def points(self, line: str) -> list[Point]:
        """Return the points of one line."""
        if ": " not in line:
            if line.startswith("Epoch ") and (match := _EPOCH.search(line)):
                self._epoch = float(match[1])
                self._past, self._trained, self._evaluating = self._latest, False, False
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
        elapsed = None if self._evaluating else self._elapsed(rest, step, match[2])
        found = report(
            self.name,
            [(m[1], m[2]) for m in _PAIR.finditer(rest)],
            step=step,
            epoch=self._epoch,
            phase="test" if self._evaluating else "",
            elapsed_s=elapsed,
        )
        return found if any("loss" in point.metric or step is not None for point in found) else []

    def _elapsed(self, rest: str, step: int | None, total: str | None) -> float | None:
        took, eta = _TOOK.search(rest), _ETA.search(rest)
        if eta and step and total and total.isdigit() and int(total) > step:
            hours, minutes, seconds = (int(part or 0) for part in eta.groups())
            if eta[1] and not eta[2]:
                hours, minutes = 0, int(eta[1])
            left = hours * 3600 + minutes * 60 + seconds
            spent = left * step / (int(total) - step)
        elif took:
            spent = number(took[1]) * _UNITS[took[2]]
            if took[2] != "s" and took[2] != "min":  # Keras 3: time a step while it runs
                spent = 0.0
        else:
            return None
        self._latest = max(self._latest, self._past + spent)
        return self._latest
