"""Hugging Face Trainer and TRL: `{'loss': 1.56, 'grad_norm': 1.2, ...}` between redrawn bars.

The step is that of the newest bar. The dict at the end of a run (`train_runtime`) repeats the mean
of all: it gives no point.
"""

from __future__ import annotations

import re
from typing import ClassVar

from dltools.probe.progress.base import NUMBER, Point, Regex, clock, report, whole

_DICT = Regex(r"\{'[^{}]*\}")
_PAIR = Regex(rf"'([\w/@. -]+)': '?({NUMBER})'?(?=[,}}])", re.IGNORECASE)
_BAR = Regex(r"\|\s*(\d+)/\d+ \[([\d:]+)<")


class Log:
    """A Trainer's log."""

    name: ClassVar[str] = "huggingface"
    partial: ClassVar[bool] = False

    def __init__(self) -> None:
        """No bar has come yet."""
        self._step: int | None = None
        self._spent: float | None = None

    def points(self, line: str) -> list[Point]:
        """Return the points of one line."""
        if "%|" in line and (bar := _BAR.search(line)) and "{'" not in line:
            self._step, self._spent = whole(bar[1]), clock(bar[2])
            return []
        if "{'" not in line or "'epoch'" not in line:
            return []
        if (match := _DICT.search(line)) is None or "'train_runtime'" in match[0]:
            return []
        pairs = [(m[1], m[2]) for m in _PAIR.finditer(match[0])]
        names = {name for name, _ in pairs}
        if not names & {"loss", "learning_rate", "reward"} and not any(
            name.startswith("eval_") for name in names
        ):
            return []
        epoch = next((float(value) for name, value in pairs if name == "epoch"), None)
        return report(self.name, pairs, step=self._step, epoch=epoch, elapsed_s=self._spent)
