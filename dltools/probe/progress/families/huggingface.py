"""Hugging Face Trainer and TRL: `{'loss': 1.56, 'grad_norm': 1.2, ...}` between redrawn bars.

The step is that of the newest bar, if one was drawn since the last such dict: bars are not drawn
for each. The dict at the end of a run (`train_runtime`) repeats the mean of all: it gives no point.
"""

from __future__ import annotations

import re
from typing import ClassVar

from dltools.probe.progress.base import NUMBER, Point, Regex, clock, report, whole
from dltools.probe.progress.tokens import NameKind, name_kind

_DICT = Regex(r"\{'[^{}]*\}")
_PAIR = Regex(rf"'([\w/@. -]+)': '?({NUMBER})(?:/\d+)?'?(?=[,}}])", re.IGNORECASE)
_STEPS = ("step", "global_step", "current_steps", "global_step/max_steps")
_BAR = Regex(r"\|\s*(\d+)/\d+ \[([\d:]+)<")


class Log:
    """A Trainer's log."""

    name: ClassVar[str] = "huggingface"
    partial: ClassVar[bool] = False
    needs: ClassVar[tuple[str, ...]] = ("%|", "{'")

    def __init__(self) -> None:
        self._step: int | None = None
        self._spent: float | None = None
        self._of_bar: set[frozenset[str]] = set()  # names in the dicts since the newest bar
        self._last = ""

    def points(self, line: str) -> list[Point]:
        """Return the points of one line."""
        if "%|" in line and (bar := _BAR.search(line)) and "{'" not in line:
            step = whole(bar[1])
            if step != self._step:
                self._of_bar.clear()
            self._step, self._spent = step, clock(bar[2])
            return []
        if "{'" not in line or "'epoch'" not in line:
            return []
        if (match := _DICT.search(line)) is None or "'train_runtime'" in match[0]:
            return []
        if match[0] == self._last:  # another process, or another handler, says it again
            return []
        self._last = match[0]
        pairs = [(m[1], m[2]) for m in _PAIR.finditer(match[0])]
        values = dict(pairs)
        names = values.keys()
        if not names & {"loss", "learning_rate", "reward"} and not any(
            name.startswith("eval_") for name in names
        ):
            return []
        said = next((values[name] for name in _STEPS if values.get(name, "").isdecimal()), None)
        is_new = frozenset(names) not in self._of_bar
        self._of_bar.add(frozenset(names))
        step = whole(said) if said else self._step if is_new else None
        return report(
            self.name,
            [
                pair
                for pair in pairs
                if pair[0].startswith("eval_") or name_kind(pair[0]) >= NameKind.BESIDE
            ],
            step=step,
            epoch=float(values["epoch"]) if "epoch" in values else None,
            elapsed_s=self._spent if is_new else None,
        )
