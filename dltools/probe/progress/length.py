"""How long a job says that it will train: `Epoch 3/60`, `step 276/6200 loss 4.1`.

`pipeline` asks it of each line, and adds what is said to the points of the line, or to the next
ones. Steps count only while the log says no epoch, as they are those of an epoch elsewhere, and not
beside a word that shows an evaluation. One epoch, or one step, says nothing: when it is printed
first, all of it is still to come.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from dltools.probe.progress.base import Point, Regex

_MOST = 10**9

_BETWEEN = r"[\s:=#\[(]{0,4}(\d{1,10})\s{0,3}(?:/|of)\s{0,3}(\d{1,10})(?![\d./])"
_EPOCHS = Regex(rf"(?<![a-z])epochs?{_BETWEEN}", re.IGNORECASE)
_STEPS = Regex(rf"(?<![a-z])(?:steps?|iter|iters|iterations?){_BETWEEN}", re.IGNORECASE)
_NO_TRAINING = Regex(r"(?<![a-z])(?:epochs?|val|valid|validation|eval|evaluat\w*|test\w*)"
                     r"(?![a-z])", re.IGNORECASE)  # fmt: skip


class SaidLength:
    """What one log says of how many epochs, or else steps, its job will train. `is_new`: it has
    been said since the last points."""

    def __init__(self) -> None:
        """Nothing is said yet."""
        self.is_new = False
        self._epochs: int | None = None
        self._steps: int | None = None

    def read(self, line: str) -> None:
        """Take note of what a line says."""
        epochs = _total(_EPOCHS, line)
        if epochs is not None:
            self._epochs, self._steps, self.is_new = epochs, None, True
        elif self._epochs is None and not _NO_TRAINING.search(line):
            steps = _total(_STEPS, line)
            if steps is not None:
                self._steps, self.is_new = steps, True

    def added_to(self, points: Sequence[Point]) -> list[Point]:
        """Return points with what was said."""
        self.is_new = False
        return [one._replace(epochs=self._epochs, steps=self._steps) for one in points]


def may_say(line: str) -> bool:
    """Tell whether lines that differ from this one in their digits alone may say a length."""
    return bool(_EPOCHS.search(line) or _STEPS.search(line))


def _total(expression: Regex, line: str) -> int | None:
    found = expression.search(line)
    if found is None:
        return None
    at, total = int(found[1]), int(found[2])
    return total if 1 < total <= _MOST and at <= total else None
