"""Explains how one line of a log was read, for a user whose loss is not found."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import BinaryIO

from dltools.inputs import LONGEST_LINE
from dltools.observations.metric_names import is_metric, normal_name
from dltools.probe.progress import Automatic, Extractor, Pattern, Point, PointReader
from dltools.probe.progress.base import Reading
from dltools.probe.progress.lines import LogLine
from dltools.probe.progress.meaning import candidates
from dltools.probe.progress.shapes import Layout
from dltools.probe.progress.tokens import NameKind, Token, name_kind, tokens


@dataclass(frozen=True, slots=True)
class LeftOut:
    """A name with a number that gave no point, and why. `pattern`: an expression that would find
    it, "" if there is none."""

    name: str
    number: str
    why: str
    pattern: str = ""


@dataclass(slots=True)
class Drawing:
    """One drawing of a line, which a progress bar may draw again.

    `points`: all points found in it; `kept`: those that became rows; `repeated`: those that an
    earlier line had already. The other points are noise.
    """

    line: LogLine
    points: list[Point] = field(default_factory=list)
    repeated: list[Point] = field(default_factory=list)
    kept: list[Point] = field(default_factory=list)
    left_out: list[LeftOut] = field(default_factory=list)

    @property
    def noise(self) -> list[Point]:
        """The points that belong to no series."""
        return [one for one in self.points if one not in self.kept]


def explain_line(stream: BinaryIO, number: int, extractor: Extractor | None) -> list[Drawing]:
    """Return how the line of this number (from 1) was read, once for each drawing of it.

    The lines before it are read too, and those after it until its points are certain. [] if the log
    has no such line, or if it is blank.
    """
    watched = extractor or _Watched()
    drawings: list[Drawing] = []
    now = 0

    def number_of_drawing(line: LogLine, points: list[Point]) -> int:
        if now != number:
            return -1
        read = watched.newest.points if isinstance(watched, _Watched) else points
        repeated = [one for one in read if one not in points]
        left_out = _left_out(line.text, read, is_pattern=isinstance(extractor, Pattern))
        drawings.append(Drawing(line, list(points), repeated, left_out=left_out))
        return len(drawings) - 1

    reader = PointReader(watched, number_of_drawing)
    for now, data, is_last in _numbered(stream):
        for drawing_number, point in reader.tagged(data, is_last=is_last):
            if drawing_number >= 0:
                drawings[drawing_number].kept.append(point)
        if now > number and not any(drawing.noise for drawing in drawings):
            break
    return drawings


class _Watched(Automatic):
    """Reads like `Automatic`, and keeps what it found in the newest line."""

    newest = Reading([])

    def read(self, line: str, layout: Layout) -> Reading:
        """Return the points of a line, and how sure they are."""
        self.newest = super().read(line, layout)
        return self.newest


def _numbered(stream: BinaryIO) -> Iterator[tuple[int, bytes, bool]]:
    """Yield the number of each line, its bytes or a part of them, and whether the log ends."""
    number, is_begun = 0, False
    while data := stream.readline(LONGEST_LINE):
        number += not is_begun
        is_begun = not data.endswith(b"\n")
        yield number, data, False
    yield number, b"", True


def _left_out(text: str, points: list[Point], *, is_pattern: bool) -> list[LeftOut]:
    """Return the names with numbers beside them that gave no point."""
    found = tokens(text)
    why_not = {one.token.start: one.why_not for one in candidates(text, found)}
    taken = {normal_name(point.original) for point in points} | {point.metric for point in points}
    values = {point.value for point in points}
    result = []
    for token in found:
        metric = normal_name(token.name)
        if metric in taken or (is_pattern and _value(token) in values):
            continue
        if any(_is_of(token, metric, point) for point in points):
            continue
        why = why_not.get(token.start) or _why_not(token, has_points=bool(points))
        if is_pattern:
            why = "the pattern does not match it"
        result.append(LeftOut(token.name, token.text, why, _pattern(text, token, metric)))
    return result


def _is_of(token: Token, metric: str, point: Point) -> bool:
    """Tell whether a token gave a point whose name has more words, such as a phase."""
    has_name = f"_{metric}_" in f"_{point.metric}_"
    return has_name and (bool(token.total) or _value(token) == point.value)


def _value(token: Token) -> float | None:
    try:
        return float(token.text.replace(",", ""))
    except ValueError:
        return None


def _why_not(token: Token, *, has_points: bool) -> str:
    what = name_kind(token.name)
    if what in (NameKind.STEP, NameKind.EPOCH):
        return "a counter"
    if not is_metric(normal_name(token.name)):
        return "a rate, a size, a time, a counter or a setting"
    if what is NameKind.OTHER:
        return "no well-known metric's name"
    return "the family that reads this line leaves it out" if has_points else "not read as a metric"


def _pattern(text: str, token: Token, metric: str) -> str:
    """Return an expression that finds a number by what stands before it, "" if none can."""
    at = text.find(token.text, token.start + len(token.name))
    if at < 0 or not metric or not metric.isidentifier():
        return ""
    before = "".join(
        letter if letter.isalnum() or letter in " _/:=,-\"'<>@%#&~;!" else f"\\{letter}"
        for letter in text[token.start : at]
    )
    return rf"{before}(?P<{metric}>[-+.0-9a-zA-Z]+)"
