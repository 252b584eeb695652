"""Prints how one line of a log was read."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from dltools.cli.input_streams import open_log
from dltools.errors import DataError
from dltools.labels import METRIC, PATTERN
from dltools.probe.explained_line import Drawing, LeftOut, explain_line
from dltools.text import printable

if TYPE_CHECKING:
    from dltools.probe.progress import Pattern, Point

_LONGEST = 160
_MOST_DRAWINGS = 3


def print_line(file: str, number: int, pattern: Pattern | None) -> None:
    """Print how a line of a log was read. Raises `DataError` if there is none."""
    with open_log(file) as stream:
        drawings = explain_line(stream, number, pattern)
    if not drawings:
        raise DataError(f"{file}: line {number} is blank, or the log is shorter")
    for drawing in drawings[-_MOST_DRAWINGS:]:
        for title, text in _lines(drawing):
            print(f"{title:<10}{printable(text)}")
    earlier = len(drawings) - _MOST_DRAWINGS
    if earlier > 0:
        print(f"{'':<10}{earlier} earlier drawings of this line are left out here")
    sys.stdout.flush()


def _lines(drawing: Drawing) -> Iterator[tuple[str, str]]:
    line = drawing.line
    yield "text", line.text if len(line.text) <= _LONGEST else f"{line.text[:_LONGEST]}..."
    if line.rank:
        yield "rank", line.rank
    if line.stamp:
        yield "stamp", f"{line.stamp}, before the program's own line"
    if line.is_redrawn:
        yield "drawn", "over the line before"
    for point in drawing.kept:
        yield "point", f"{_shown(point)}, found by {point.source}"
    for point in drawing.repeated:
        yield "repeated", f"{_shown(point)}: a line before, or a rank that is followed, has it"
    for point in drawing.noise:
        yield "held", f"{_shown(point)}: a doubtful line, and none like it came again"
    for one in drawing.left_out:
        yield "left out", f"{one.name} {one.number}: {one.why}"
    if not (drawing.points or drawing.repeated or drawing.left_out):
        yield "nothing", "no name with a number beside it"
    yield from _advice(drawing)


def _shown(point: Point) -> str:
    place = [f"step {point.step}"] if point.step is not None else []
    place += [f"epoch {point.epoch:g}"] if point.epoch is not None else []
    name = "" if point.original in ("", point.metric) else f" (printed as {point.original})"
    return ", ".join([f"{point.metric} = {point.value:g}{name}", *place])


def _advice(drawing: Drawing) -> Iterator[tuple[str, str]]:
    if drawing.kept:
        names = " or ".join(f"{METRIC}={point.metric}" for point in drawing.kept[:3])
        yield "label", f"{names} judges the job by it"
    elif drawing.noise:
        yield (
            "label",
            f"{PATTERN}, with a group such as (?P<{drawing.noise[0].metric}>...), counts it",
        )
    elif not drawing.repeated and (wanted := _wanted(drawing)) is not None:
        yield "label", f"{PATTERN}='{wanted.pattern}' finds it"


def _wanted(drawing: Drawing) -> LeftOut | None:
    """Return what a user probably wants to be found."""
    known: Sequence[LeftOut] = [one for one in drawing.left_out if one.pattern]
    likely = (one for one in known if one.why != "a counter" and "." in one.number)
    return next(likely, next(iter(known), None))
