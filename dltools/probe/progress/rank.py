"""Ranks: processes of one training that print the same metrics, each of its own data.

The fourth step of the pipeline follows one of them.
"""

from __future__ import annotations

import re

from dltools.probe.progress.base import Point, Regex
from dltools.probe.progress.lines import LogLine

_SILENT = 200
"""Points of other ranks after which a rank that says nothing more is no longer followed."""

_HINTS = ("ank", "RANK", "gpu", "GPU", "orker", "rocess", "] (")
_INSIDE = Regex(
    r"(?:^|[\[(|,;:\]-]\s{0,3}|\bINFO\s)(?:(?:global|local|node)[ _]?)?"
    r"(?:rank|gpu|process|worker)[ :=_#]{0,3}(?P<named>\d{1,5})(?![\w%/]|\.\d|\s?[KMG]i?B)"
    r"|\]\s\((?P<of>\d{1,4})/\d{1,4}\)\s",
    re.IGNORECASE,
)
_LOOKED_AT = 160
"""Characters of a line in which a rank may stand."""

_At = tuple[str, int | None, float | None]
"""A rank, a step and an epoch."""


class Ranks:
    """Follows one of several ranks that print the same metric: the first that does.

    A number before a colon may be a step as well: it is a rank if it comes back after another one,
    or if the rest of the line has a step or an epoch of its own. What looks like a rank inside of a
    line (`[GPU1] Epoch 3`, `Epoch 3, Rank 1`, icefall's `] (1/8) Epoch 3`) may be the rank of a
    matrix: it counts once two of them print one metric at the same step and epoch.
    """

    def __init__(self) -> None:
        """No rank is known."""
        self._followed: dict[str, str] = {}
        self._others: dict[str, int] = {}
        self._numbers: set[str] = set()
        self._newest = ""
        self._are_ranks = self._are_inside = False
        self._last: dict[str, _At] = {}  # by metric, of ranks inside of lines

    def followed(self, line: LogLine, points: list[Point]) -> list[Point]:
        """Return the points of a line that are of the rank that is followed."""
        if line.rank:
            if line.is_certain:
                known = [point for point in points if not _is_of_no_loss(point)]
                return [point for point in known if self._is_followed(line.rank, point.metric)]
            return [
                point
                for point in points
                if not self._is_rank(line.rank, point) or self._is_followed(line.rank, point.metric)
            ]
        rank = rank_inside(line.text)
        return [point for point in points if self._is_of(rank, point)] if rank else points

    def _is_followed(self, rank: str, metric: str) -> bool:
        """Tell whether a rank is the one that is followed for a metric."""
        followed = self._followed.setdefault(metric, rank)
        if followed == rank:
            self._others[metric] = 0
            return True
        self._others[metric] = self._others.get(metric, 0) + 1
        if self._others[metric] > _SILENT:
            self._followed[metric], self._others[metric] = rank, 0
            return True
        return False

    def _is_rank(self, number: str, point: Point) -> bool:
        if number != self._newest:
            if number in self._numbers:
                self._are_ranks = True
            if len(self._numbers) < 4096:
                self._numbers.add(number)
            self._newest = number
        return self._are_ranks or point.step is not None or point.epoch is not None

    def _is_of(self, rank: str, point: Point) -> bool:
        """Tell whether a point with what looks like a rank inside of its line is one to follow."""
        metric, step, epoch = point.metric, point.step, point.epoch
        before, self._last[metric] = self._last.get(metric), (rank, step, epoch)
        if before is not None and not self._are_inside:
            has_count = step is not None or epoch is not None
            self._are_inside = has_count and before[0] != rank and before[1:] == (step, epoch)
            if self._are_inside:
                self._followed.setdefault(metric, before[0])
        return not self._are_inside or self._is_followed(rank, metric)


def _is_of_no_loss(point: Point) -> bool:
    """Tell whether a point is what a stage of a pipeline prints that computes no loss."""
    return point.value == -1 and "loss" in point.metric


def rank_inside(text: str) -> str:
    """Return the number that looks like a rank inside of a line, "" for none."""
    head = text[:_LOOKED_AT]
    match = _INSIDE.search(head) if any(hint in head for hint in _HINTS) else None
    return (match["named"] or match["of"]) if match else ""
