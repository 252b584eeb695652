"""fastai's table: `epoch  train_loss  valid_loss  accuracy  time`, then one row per epoch."""

from __future__ import annotations

from typing import ClassVar

from dltools.probe.progress.base import Point, clock, report


class Log:
    """A fastai log. Time elapsed: the sum of the rows' times."""

    name: ClassVar[str] = "fastai"
    partial: ClassVar[bool] = False

    def __init__(self) -> None:
        """No header has come yet."""
        self._names: list[str] = []
        self._elapsed = 0.0

    def points(self, line: str) -> list[Point]:
        """Return the points of one line."""
        if "train_loss" in line and line.split()[:2] == ["epoch", "train_loss"]:
            self._names = line.split()
            return []
        if not self._names:
            return []
        fields = line.split()
        if len(fields) != len(self._names) or not fields[0].isdigit():
            return []
        row = dict(zip(self._names, fields, strict=True))
        if (took := clock(row.get("time", ""))) is not None:
            self._elapsed += took
        return report(
            self.name,
            [(name, text) for name, text in row.items() if name not in ("epoch", "time")],
            epoch=float(fields[0]),
            elapsed_s=self._elapsed if took is not None else None,
        )
