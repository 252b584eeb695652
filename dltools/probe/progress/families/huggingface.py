"""Hugging Face Trainer and TRL: `{'loss': 1.56, 'grad_norm': 1.2, ...}` between redrawn bars.

The step is that of the newest bar, if one was drawn since the last such dict: bars are not drawn
for each. The dict at the end of a run (`train_runtime`) repeats the mean of all: it gives no point.
"""

from __future__ import annotations

import re
from typing import ClassVar

from dltools.probe.progress.base import NUMBER, Point, Regex, report, whole
from dltools.probe.progress.tokens import NameKind, name_kind

_DICT = Regex(r"\{'[^{}]*\}")
_PAIR = Regex(rf"'([\w/@. -]+)': '?({NUMBER})(?:/\d+)?'?(?=[,}}])", re.IGNORECASE)
_STEPS = ("step", "global_step", "current_steps", "global_step/max_steps")
_BAR = Regex(r"\|\s*(\d+)/\d+ \[[\d:]+<")


class Log:
    """A Trainer's log."""

    name: ClassVar[str] = "huggingface"
    partial: ClassVar[bool] = False
    needs: ClassVar[tuple[str, ...]] = ("%|", "{'")

    def __init__(self) -> None:
        self._step: int | None = None
        self._of_bar: set[frozenset[str]] = set()  # names in the dicts since the newest bar
        self._last = ""

    def points(self, line: str) -> list[Point]:
        """Return the points of one line."""
        if "{'" not in line and "%|" in line and (bar := _BAR.search(line)):
            step = whole(bar[1])
            if step != self._step:
                self._of_bar.clear()
            self._step = step
        match = _DICT.search(line) if "'epoch'" in line else None
        if match is None or "'train_runtime'" in match[0] or match[0] == self._last:
            return []  # the end, or what another process says again
        self._last = match[0]
        values = dict(pair.groups() for pair in _PAIR.finditer(match[0]))
        pairs = [
            pair
            for pair in values.items()
            if pair[0].startswith("eval_") or name_kind(pair[0]) >= NameKind.BESIDE
        ]
        names = frozenset(values)
        step = self._step if names not in self._of_bar else None
        self._of_bar.add(names)
        said = next((values[name] for name in _STEPS if values.get(name, "").isdecimal()), None)
        return report(
            self.name,
            pairs,
            step=whole(said) if said else step,
            epoch=float(values["epoch"]) if "epoch" in values else None,
        )
