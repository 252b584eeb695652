"""Selects one of several ranks: processes of one training that print the same metrics, each about
its own data. It is the fourth step of the pipeline.
"""

from __future__ import annotations

import re

from dltools.probe.progress.base import Point, Regex
from dltools.probe.progress.clean_lines import LogLine

_SILENT = 200
"""A rank is no longer followed after this many points of other ranks without one of its own."""

_HINTS = ("ank", "RANK", "gpu", "GPU", "orker", "rocess", "] (")
_INSIDE = Regex(
    r"(?:^|[\[(|,;:\]-]\s{0,3}|\bINFO\s)(?:(?:global|local|node)[ _]?)?"
    r"(?:rank|gpu|process|worker)[ :=_#]{0,3}(?P<named>\d{1,5})(?![\w%/]|\.\d|\s?[KMG]i?B)"
    r"|\]\s\((?P<of>\d{1,4})/\d{1,4}\)\s",
    re.IGNORECASE,
)
_LOOKED_AT = 160
"""Characters at the start of a line in which a rank may stand."""

_At = tuple[str, int | None, float | None]
"""A rank, a step and an epoch."""


class Ranks:
    """Follows one of several ranks that print the same metric: the first that does.

    A number before a colon may also be a step, and what looks like a rank within a line (`[GPU1]
    Epoch 3`, `Epoch 3, Rank 1`, icefall's `] (1/8) Epoch 3`) that of a matrix. These count once two
    of them print one metric at the same step and epoch.
    """

    def __init__(self) -> None:
        """No rank is known."""
        self._followed: dict[str, str] = {}
        self._others: dict[str, int] = {}
        self._are_ranks = False  # those that may be none
        self._last: dict[str, _At] = {}  # by metric, of those

    def followed(self, line: LogLine, points: list[Point]) -> list[Point]:
        """Return the points of a line that belong to the followed rank."""
        if line.rank and line.is_certain:
            # A stage of a pipeline that computes no loss says -1.
            valid = [point for point in points if point.value != -1 or "loss" not in point.metric]
            return [point for point in valid if self._is_followed(line.rank, point.metric)]
        rank = line.rank or rank_inside(line.text)
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

    def _is_of(self, rank: str, point: Point) -> bool:
        """Tell whether a point, whose line has what looks like a rank, is of the followed one."""
        metric, step, epoch = point.metric, point.step, point.epoch
        before, self._last[metric] = self._last.get(metric), (rank, step, epoch)
        if before is not None and not self._are_ranks:
            has_count = step is not None or epoch is not None
            self._are_ranks = has_count and before[0] != rank and before[1:] == (step, epoch)
            if self._are_ranks:
                self._followed.setdefault(metric, before[0])
        return not self._are_ranks or self._is_followed(rank, metric)


def rank_inside(text: str) -> str:
    """Return the number within a line that looks like a rank, "" for none."""
    head = text[:_LOOKED_AT]
    match = _INSIDE.search(head) if any(map(head.__contains__, _HINTS)) else None
    return (match["named"] or match["of"]) if match else ""
