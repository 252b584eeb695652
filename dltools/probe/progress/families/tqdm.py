"""tqdm bars with metrics: `Epoch 1/1:  1%|  | 1/102 [01:10<1:58:03, 70.13s/it, loss=1.038]`.

Metrics stand in the postfix or in the description; the bar of a download has none.
"""

from __future__ import annotations

import re
from typing import ClassVar, NamedTuple

from dltools.probe.progress.base import NUMBER, Point, Regex, report, whole
from dltools.probe.progress.tokens import NameKind, name_kind, step_rank

_REST = (
    r"(?<!\d)(?P<n>\d++(?:\.\d+)?)(?P<unit>[kMGT]?)(?:/(?P<total>[\d.]+[kMGT]?|\?))?[a-zA-Z]*\s*"
    r"\[[\d:]+(?:<[^,\]]*)?,[^,\]]*(?:,\s*(?P<postfix>.*?))?\]"
)
_BAR = Regex(rf"^(?P<desc>.*?)(?::\s*)?(?:\d{{1,4}}%\|[^|]*\|\s*)?{_REST}")
_PERCENT_BAR = Regex(rf"\d{{1,4}}%\|[^|]*\|\s*{_REST}")
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
_PHASE = Regex(
    r"\b(val|valid|validat\w*|eval\w*|test\w*|sanity \w+)\b(?!\s?[=:]\s?[-\d.])", re.IGNORECASE
)
_GLOBAL = (step_rank("global_step"), step_rank("env_step"))
"""What a counter in the postfix is that goes on where a bar begins anew."""

_SCALE = {"": 1.0, "k": 1e3, "M": 1e6, "G": 1e9, "T": 1e12}


class _Description(NamedTuple):
    """What stands before a bar, and what it says: metrics, the epoch, the phase."""

    text: str
    said: list[tuple[str, str]]
    epoch: float | None
    phase: str


class Log:
    """A log of tqdm bars."""

    name: ClassVar[str] = "tqdm"
    partial: ClassVar[bool] = False
    needs: ClassVar[tuple[str, ...]] = ("]",)

    def __init__(self) -> None:
        self._epoch: float | None = None
        self._known: _Description | None = None

    def points(self, line: str) -> list[Point]:
        """Return the points of one line."""
        if "]" not in line or ("/s" not in line and "s/" not in line and "?" not in line):
            return []
        if "=" not in line and "oss" not in line:
            return []
        description, match = _bar(line)
        if match is None:
            return []
        about = self._known
        if about is None or about.text != description:
            about = self._known = _description(description)
        said = [(m[1].strip(), m[2]) for m in _PAIR.finditer(match["postfix"] or "")]
        pairs = _wanted(said + about.said)
        if not pairs:
            return []
        if about.epoch is not None:
            self._epoch = about.epoch
        counters = [(step_rank(name), text) for name, text in said if text.isdecimal()]
        counter = next((text for rank, text in sorted(counters) if rank in _GLOBAL), "")
        shown = round(float(match["n"]) * _SCALE[match["unit"]])
        return report(
            self.name,
            pairs,
            step=whole(counter) if counter else shown,
            epoch=self._epoch,
            phase=about.phase,
        )


def _bar(line: str) -> tuple[str, re.Match[str] | None]:
    """Return what stands before a bar, and the match of the bar.

    A bar with a percentage is found by that: to try each place in the line takes four times as
    long.
    """
    begin = at = line.find("%|")
    while begin > 0 and line[begin - 1] in "0123456789":
        begin -= 1
    if 0 <= begin < at and "[" not in line[:begin]:
        match: re.Match[str] | None = _PERCENT_BAR.match(line, begin)
        if match is not None:
            return line[:begin].rstrip().removesuffix(":"), match
    match = _BAR.search(line)
    return (match["desc"] if match else ""), match


def _wanted(pairs: list[tuple[str, str]]) -> list[tuple[str, str]]:
    """Return the pairs that are metrics; all if no name is known."""
    sorts = [name_kind(name) for name, _ in pairs]
    if not any(what > NameKind.BESIDE for what in sorts):
        return pairs
    return [pair for pair, what in zip(pairs, sorts, strict=True) if what >= NameKind.BESIDE]


def _description(text: str) -> _Description:
    epoch, phase = _EPOCH.search(text), _PHASE.search(text)
    return _Description(
        text,
        [(m[1], m[2]) for m in _SAID.finditer(text)],
        float(epoch[1]) if epoch else None,
        ("test" if phase[1].lower().startswith("test") else "val") if phase else "",
    )
