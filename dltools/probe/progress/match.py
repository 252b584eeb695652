"""Asks the families of formats for the points in a line, then the generic reader.

It is the third step of the pipeline, and registers the families (`FAMILIES`).
"""

from __future__ import annotations

from importlib import import_module

from dltools.probe.progress.base import Family, Point
from dltools.probe.progress.line_shapes import NOTHING, Layout, Reading, Shapes
from dltools.probe.progress.named import BAR, Named

FAMILIES: tuple[str, ...] = ("forms", "tables", "jsonlines", "latency", "flower")
"""Modules of `families`, each with a class `Log`. If several claim a line, the first one counts."""

LONGEST_TEXT = 4_096
"""Most characters of a line that other families read: the cost of an expression can grow with the
square of the length."""

_WHOLE = ("jsonlines",)
"""Families whose lines may hold JSON: a cut object cannot be read."""


class Automatic:
    """Finds the points of one log.

    The generic reader (`Named`) reads the lines that no family claims. For lines that differ only
    in their digits, the same families are asked: those whose `needs` the line has.
    """

    def __init__(self) -> None:
        self.shapes = Shapes([_make(name) for name in FAMILIES])
        self._named = Named(self.shapes)
        self._lead = 0  # how many more lines families have claimed, partial ones apart

    def points(self, line: str) -> list[Point]:
        """Return the points of one line."""
        return self.read(line, self.shapes.of(line)).points

    def read(self, line: str, layout: Layout) -> Reading:
        """Return the points of a line of a layout, and how sure they are."""
        shape = layout.shape
        for family in shape.families:
            claimed = family.points(line if family.name in _WHOLE else line[:LONGEST_TEXT])
            if claimed is None:
                return NOTHING
            if claimed:
                self._lead += not family.partial
                if family.name == "latency" and shape.may_be_named:
                    read = self._named.read(line[:LONGEST_TEXT], layout)
                    claimed = [*read.points, *claimed] if read.is_sure else claimed
                points = self._named.placed(claimed)
                may_be_settings = family.name in _WHOLE and points[0][2:4] == (None, None)
                return Reading(points, is_sure=not may_be_settings)
        if shape.may_be_named:
            read = self._named.read(line[:LONGEST_TEXT], layout)
            if points := read[0]:
                if points[0][4] == BAR:
                    self._lead += 1
                    return read
                self._lead -= 1
                return read._replace(is_rivalled=True) if self._lead >= 0 else read
            return read
        return NOTHING


def _make(name: str) -> Family:
    made: Family = import_module(f"dltools.probe.progress.families.{name}").Log()
    return made
