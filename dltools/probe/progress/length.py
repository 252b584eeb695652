"""How long a job says that it will train, and has run: `Epoch 3/60`, `step 276/6200 loss 4.1`.

`pipeline` asks it of each line, and adds what is said to the points of the line, or to the next
ones. Steps count only while the log says no epoch, as they are those of an epoch elsewhere, and not
beside a word that shows an evaluation. One epoch, or one step, says nothing: when it is printed
first, all of it is still to come.

The time elapsed is said as such, `train_time:57429ms`; or by bars, `[01:10<1:58:03`, ` - 8s `, of
which each begins at zero; or as the time of one step, `time 350.5ms`.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from dltools.probe.progress.base import Point, Regex, clock

_MOST = 10**9

_COUNT = r"(\d{1,3}(?:,\d{3}){1,3}|\d{1,10})"
_BETWEEN = rf"[\s:=#\[(]{{0,4}}{_COUNT}\s{{0,3}}(?:/|of)\s{{0,3}}{_COUNT}(?![\d./])"
_EPOCHS = Regex(rf"(?<![a-z])epochs?{_BETWEEN}", re.IGNORECASE)
_STEPS = Regex(rf"(?<![a-z])(?:steps?|iter|iters|iterations?){_BETWEEN}", re.IGNORECASE)
_NO_TRAINING = Regex(r"(?<![a-z])(?:epochs?|val|valid|validation|eval|evaluat\w*|test\w*)"
                     r"(?![a-z])", re.IGNORECASE)  # fmt: skip
_TIME = Regex(
    r"\b(?:time_elapsed|wall)\b['\"]?[\s:=|]{1,20}['\"]?(?P<total>\d[\d.]{0,15})(?![\w.])"
    r"|\btrain_time:(?P<millis>\d[\d.]{0,15})ms\b"
    r"|\[(?P<bar>[\d:]{4,12})(?:<|, {1,3}[\d.]{1,9} ?\w{1,9}/)"
    r"|(?:\s-|[\]\u2501]) (?P<took>\d{1,7})s(?=\s)"
    r"|\d\w?it/s (?P<spent>\d[\d:.]{0,12})s?[<\s]"
    r"|, time (?P<step_ms>\d[\d.]{0,15})ms\b"
)


_OF_TIMES = ("time", "wall", "[", "- ", "] ", "\u2501", "it/s")
"""What lines with a time have."""


class SaidLength:
    """What one log says of how many epochs, or else steps, its job will train, and how long it has
    run. `is_new`: something has been said since the last points."""

    def __init__(self) -> None:
        """Nothing is said yet."""
        self.is_new = False
        self._epochs: int | None = None
        self._steps: int | None = None
        self._is_length_new = False
        self._time: tuple[str, str] | None = None  # said since the last points: how, and what
        self._past = self._bar = 0.0  # seconds of the bars before, and of the newest one
        self._at: tuple[float | None, int | None] = (None, None)  # epoch and step of the points

    def read(self, line: str, place: LengthPlace) -> None:
        """Take note of the length that a line says at a place."""
        are_epochs, *spans = place
        newest, total = (int(line[start:end].replace(",", "")) for start, end in spans)
        if not 1 < total <= _MOST or newest > total:
            return
        if are_epochs:
            self._epochs, self._steps, self._is_length_new = total, None, True
        elif self._epochs is None:
            self._steps, self._is_length_new = total, True
        self.is_new = self.is_new or self._is_length_new

    def read_time(self, line: str, place: TimePlace) -> None:
        """Take note of the time that a line says at a place."""
        how, (start, end) = place
        self._time, self.is_new = (how, line[start:end]), True

    def added_to(self, points: Sequence[Point]) -> list[Point]:
        """Return points with what was said."""
        elapsed = points[0].elapsed_s
        if self._time is not None and elapsed is None:
            elapsed = self._elapsed(*self._time, points[0])
        length = (self._epochs, self._steps) if self._is_length_new else (None, None)
        self.is_new, self._is_length_new, self._time = False, False, None
        return [Point(*point[:6], elapsed, *length) for point in points]

    def _elapsed(self, how: str, text: str, point: Point) -> float | None:
        """Return the time elapsed at a point."""
        spent = clock(text)
        if spent is None or how == "total":
            return spent
        if how == "millis":
            return spent / 1000
        (epoch, step), self._at = self._at, (point.epoch, point.step)
        if how == "step_ms":
            steps = 1 if step is None or point.step is None else max(1, point.step - step)
            self._past += spent / 1000 * steps
            return self._past
        is_later = (point.step or 0) > (step or 0)
        is_next = epoch is not None and point.epoch != epoch and not is_later
        if spent < self._bar or is_next:
            self._past += self._bar
        self._bar = spent
        return self._past + spent


LengthPlace = tuple[bool, tuple[int, int], tuple[int, int]]
"""Whether a length is one of epochs, where the number of the newest one stands, and that of all."""


def length_in(line: str) -> LengthPlace | None:
    """Return where lines that differ from this one in their digits alone say a length."""
    if "/" not in line and "of" not in line.lower():
        return None
    if match := _EPOCHS.search(line):
        return True, match.span(1), match.span(2)
    match = None if _NO_TRAINING.search(line) else _STEPS.search(line)
    return (False, match.span(1), match.span(2)) if match else None


TimePlace = tuple[str, tuple[int, int]]
"""How a time elapsed is said, and where it stands in a line."""


def time_in(line: str) -> TimePlace | None:
    """Return where lines that differ from this one in their digits alone say a time elapsed."""
    match = _TIME.search(line) if any(map(line.__contains__, _OF_TIMES)) else None
    return (match.lastgroup or "", match.span(match.lastgroup or 0)) if match else None
