"""Boosted trees of LightGBM and CatBoost.

LightGBM prints `[20]\tvalid's auc: 0.9`,
CatBoost `0:\tlearn: 0.6920\ttest: 0.6921\tbest: 0.6921 (0)\ttotal: 65ms\tremaining: 1m 5s`.
"""

from __future__ import annotations

from typing import ClassVar

from dltools.probe.progress.base import PLAIN_NUMBER as N
from dltools.probe.progress.base import Point, Regex, report

_ROUND = Regex(r"^(?:\[\d\d:\d\d:\d\d\] )?\[(\d+)\]\s+(?=\S)")
_LIGHTGBM = Regex(rf"([A-Za-z_]\w{{0,99}}'s [\w@.-]{{1,99}}): ({N})(?= \+|\s|$)")
_CATBOOST = Regex(
    rf"^(\d+):\tlearn: ({N})(?:\ttest: ({N}))?(?:\tbest: {N} \(\d+\))?\ttotal: (.+?)\t"
)
_SPAN = Regex(r"([\d.]{1,30})(us|ms|s|m|h)")
_UNITS = {"us": 1e-6, "ms": 1e-3, "s": 1.0, "m": 60.0, "h": 3600.0}


class Log:
    """A booster's log; the step is the round."""

    name: ClassVar[str] = "boosting"
    partial: ClassVar[bool] = False
    needs: ClassVar[tuple[str, ...]] = ("[", "\tlearn: ")

    def points(self, line: str) -> list[Point]:
        """Return the points of one line."""
        if line.startswith("[") and ":" in line:
            if (match := _ROUND.search(line)) is None:
                return []
            pairs = [m.groups() for m in _LIGHTGBM.finditer(line, match.end())]
            return report(self.name, pairs, step=int(match[1]))
        if "\tlearn: " in line and (match := _CATBOOST.search(line)):
            elapsed = sum(float(n) * _UNITS[unit] for n, unit in _SPAN.findall(match[4]))
            pairs = [("train_loss", match[2]), *([("val_loss", match[3])] if match[3] else [])]
            found = report(self.name, pairs, step=int(match[1]), elapsed_s=elapsed)
            printed = {"train_loss": "learn", "val_loss": "test"}
            return [point._replace(original=printed[point.metric]) for point in found]
        return []
