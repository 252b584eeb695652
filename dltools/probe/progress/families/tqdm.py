"""tqdm bars with metrics: `Epoch 1/1:  1%|  | 1/102 [01:10<1:58:03, 70.13s/it, loss=1.038]`.

Metrics stand in the postfix or in the description; the bar of a download has none.
"""

from __future__ import annotations

import re
from typing import ClassVar

from dltools.probe.progress.base import NUMBER, Point, Regex, clock, report
from dltools.probe.progress.name_words import Sort, sort

_BAR = Regex(
    r"^(?P<desc>.*?)(?::\s*)?(?:\d{1,4}%\|[^|]*\|\s*)?(?<!\d)(?P<n>\d++(?:\.\d+)?)(?P<unit>[kMGT]?)"
    r"(?:/(?P<total>[\d.]+[kMGT]?|\?))?[a-zA-Z]*\s*"
    r"\[(?P<spent>[\d:]+)(?:<[^,\]]*)?,[^,\]]*(?:,\s*(?P<postfix>.*?))?\]"
)
_PAIR = Regex(
    r"([A-Za-z_][\w ./@-]{0,99}?)\s{0,9}[=:]\s{0,9}(?:tensor\()?['\"]?"
    rf"({NUMBER})(?![\w:/]|\.\d)",
    re.IGNORECASE,
)
_SAID = Regex(
    r"\b((?:(?:train|val|valid|test|avg|mean)[ _])?(?:\w*loss|acc|accuracy))\s*(?:[=:]\s*)?"
    rf"({NUMBER})(?![\w:/%]|\.\d)",
    re.IGNORECASE,
)
_EPOCH = Regex(r"[Ee]poch\s*(?:[:=#\[(]\s*)?(\d+)")
_PHASE = Regex(r"\b(val|valid|validat\w*|eval\w*|test\w*|sanity \w+)\b", re.IGNORECASE)
_SCALE = {"": 1.0, "k": 1e3, "M": 1e6, "G": 1e9, "T": 1e12}


class Log:
    """A log of tqdm bars. Time elapsed: the sum of the bars' times."""

    name: ClassVar[str] = "tqdm"
    partial: ClassVar[bool] = False

    def __init__(self) -> None:
        """No bar has come yet."""
        self._past = self._bar = 0.0
        self._epoch: float | None = None

    def points(self, line: str) -> list[Point]:
        """Return the points of one line."""
        if "]" not in line or ("/s" not in line and "s/" not in line and "?" not in line):
            return []
        if not self._claims(line):
            return []
        match = _BAR.search(line)
        if match is None:
            return []
        description = match["desc"]
        pairs = [(m[1].strip(), m[2]) for m in _PAIR.finditer(match["postfix"] or "")]
        pairs += [(m[1], m[2]) for m in _SAID.finditer(description)]
        sorts = [sort(name) for name, _ in pairs]
        if any(what > Sort.BESIDE for what in sorts):  # else unknown names are all that there is
            pairs = [pair for pair, what in zip(pairs, sorts, strict=True) if what >= Sort.BESIDE]
        if not pairs:
            return []
        if epoch := _EPOCH.search(description):
            self._epoch = float(epoch[1])
        spent = clock(match["spent"]) or 0.0
        if spent < self._bar:
            self._past += self._bar
        self._bar = spent
        phase = _PHASE.search(description)
        return report(
            self.name,
            pairs,
            step=round(float(match["n"]) * _SCALE[match["unit"]]),
            epoch=self._epoch,
            phase=("test" if phase[1].lower().startswith("test") else "val") if phase else "",
            elapsed_s=self._past + spent,
        )

    def _claims(self, line: str) -> bool:
        return "=" in line or "oss" in line
