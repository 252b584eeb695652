"""Chainer's PrintReport: a header row, then rows redrawn in place among a progress bar's lines."""

from __future__ import annotations

from typing import ClassVar

from dltools.probe.progress.base import Point, report


class Log:
    """A Chainer log. Time elapsed: the column `elapsed_time`."""

    name: ClassVar[str] = "chainer"
    partial: ClassVar[bool] = False

    def __init__(self) -> None:
        """No header has come yet."""
        self._names: list[str] = []

    def points(self, line: str) -> list[Point]:
        """Return the points of one line."""
        fields = line.split() if line[:1] in "e0123456789 " else []
        if len(fields) > 2 and fields[0] == "epoch" and any("main/" in f for f in fields):
            self._names = fields
            return []
        if not self._names or not fields or len(fields) > len(self._names):
            return []
        row = dict(zip(self._names, fields, strict=False))
        try:
            values = {name: float(text) for name, text in row.items()}
        except ValueError:
            return []
        if len(values) < 3:
            return []
        iteration = values.get("iteration")
        return report(
            self.name,
            [(_plain(name), value) for name, value in values.items()],
            step=int(iteration) if iteration is not None and abs(iteration) < 2**63 else None,
            epoch=values.get("epoch"),
            elapsed_s=values.get("elapsed_time"),
        )


def _plain(name: str) -> str:
    """Return `main/loss` as `loss`, `validation/main/loss` as `validation/loss`."""
    return name.replace("main/", "")
