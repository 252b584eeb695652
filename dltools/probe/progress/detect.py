"""Finding the family of formats that a log belongs to, by trying all on its first lines."""

from __future__ import annotations

from importlib import import_module

from dltools.probe.progress.base import Family, Point
from dltools.probe.progress.named import Named

FAMILIES: tuple[str, ...] = (
    "mlperf", "serving",
    "keras", "lightning", "huggingface", "nanogpt", "megatron", "deepspeed", "fairseq",
    "mm", "detectron", "yolo", "yolox", "darknet", "nvidia", "pytorch", "fastai", "tensorflow",
    "mxnet", "caffe", "boosting", "espnet", "speechbrain", "kaldi", "baselines", "chainer", "cntk",
    "tqdm", "jsonlines", "logfmt", "latency",
)  # fmt: skip
"""Modules of `families`, each with a class `Log`. If several claim a line, the first one counts."""

_ENOUGH = 20
"""Lines with points after which the families seen so far are kept."""

_WHOLE = ("mlperf", "mm", "nvidia", "jsonlines")
"""Families whose lines may hold JSON: a cut object cannot be read."""

LONGEST_TEXT = 4_096
"""Characters of a line that all other families look at: what an expression costs can grow with the
square of it."""

_LOST = 1_000
"""Lines without a point after which all families are tried again."""


class Automatic:
    """Finds the family of one log, and its points.

    Every family sees every line until `_ENOUGH` lines had points; then only the families that found
    some go on. Well-known names (`Named`) count if no family finds a point, or only partial ones.
    """

    def __init__(self) -> None:
        """No family is known yet."""
        self._families = [_make(name) for name in FAMILIES]
        self._named = Named()
        self._kept: list[Family | Named] = []
        self._votes: dict[str, int] = {}
        self._idle = 0

    def points(self, line: str) -> list[Point]:
        """Return the points of one line."""
        if not self._kept:
            return self._try(line)
        text = line[:LONGEST_TEXT]
        for extractor in self._kept:
            if found := extractor.points(line if extractor.name in _WHOLE else text):
                self._idle = 0
                return found
        self._idle += 1
        if self._idle > _LOST:
            self._kept, self._votes, self._idle = [], {}, 0
        return []

    def _try(self, line: str) -> list[Point]:
        found: list[Point] = []
        text = line[:LONGEST_TEXT]
        for family in self._families:
            claimed = family.points(line if family.name in _WHOLE else text)
            if claimed and not found:
                found = claimed
                self._votes[family.name] = self._votes.get(family.name, 0) + 1
        whole = any(not family.partial for family in self._families if family.name in self._votes)
        if not found and not whole:
            found = self._named.points(text)
            if found:
                self._votes[""] = self._votes.get("", 0) + 1
        if found and sum(self._votes.values()) >= _ENOUGH:
            self._kept = [f for f in self._families if f.partial or f.name in self._votes]
            if not whole:
                self._kept.append(self._named)
        return found


def _make(name: str) -> Family:
    made: Family = import_module(f"dltools.probe.progress.families.{name}").Log()
    return made
