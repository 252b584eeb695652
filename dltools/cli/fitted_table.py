"""Tables that fit the screen: names are shortened, numbers and settings never, and a sentence that
does not fit behind its row stands under it. All tools print them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import zip_longest
from typing import Any

from rich.cells import cell_len, set_cell_size
from rich.console import Console, ConsoleOptions, RenderResult
from rich.text import Text

from dltools.cli.values_in_words import clip
from dltools.text import printable

_NAME, _SHORT_NAME = 32, 6
"""Columns to which names shrink, and to which on a screen that has no room beside them."""
_INDENT = "    "
"""What stands before a sentence under its row."""

_BREAKS = {
    "left": r"(?<=,) | (?=-> )",
    "right": r"(?<=,) | (?=\(\d+\.)",
    "words": r" ",
    "note": r"(?!)",
}
"""Where a line of a cell may end, by look: between settings, before a ratio, between words."""


@dataclass(slots=True)
class _Column:
    header: str
    look: str
    cells: list[str] = field(default_factory=list)

    @property
    def natural(self) -> int:
        return max(map(cell_len, (self.header, *self.cells)))

    def least(self, name: int) -> int:
        """Return the least width: that of the longest piece; of a name, so many columns."""
        if self.look == "name":
            return min(self.natural, max(name, cell_len(self.header.rstrip())))
        pieces = [piece for cell in self.cells for piece in self._pieces(cell)]
        return max(map(cell_len, (self.header.rstrip(), *pieces)))

    def lines(self, place: int, width: int) -> list[str]:
        """Return the lines of a cell that fit a width, which fill it."""
        cell = self.cells[place]
        is_name = self.look == "name"
        lines = [clip(cell, width)] if is_name else _joined(self._pieces(cell), width)
        return [_filled(line, width, self.look) for line in lines]

    def _pieces(self, cell: str) -> list[str]:
        return re.split(_BREAKS[self.look], cell)


@dataclass(frozen=True, slots=True)
class _Layout:
    """The widths of columns beside each other, and the gap between them."""

    widths: Sequence[int]
    gap: int

    @property
    def width(self) -> int:
        return sum(self.widths) + self.gap * (len(self.widths) - 1)


class FittedTable:
    """A table of texts that is as narrow as the screen. A column is its header, with its look
    behind a colon, "left" by default: "CPU:right". One that is False is left out, with its cells;
    spaces behind a header keep room, so that tables of a stream, of which only the first
    `has_header`, stand below each other.

    Looks: "name" (as the first column, if it is "left") is shortened; "right", numbers, "left",
    settings, and "words" are never shortened, but a line may end between two of them; "note", the
    last column, are sentences. Where these do not all fit behind their rows, they stand under them,
    in one line each if they are `short_notes`.
    Columns that do not fit beside each other go into further tables below the first.
    """

    def __init__(
        self, *columns: str | bool, short_notes: bool = False, has_header: bool = True
    ) -> None:
        """Make a table without rows."""
        self._has_header = has_header
        self.styles: list[str] = []
        self._short_notes = short_notes
        self._is_shown = list(map(bool, columns))
        parts = [str(column).partition(":") for column in columns if column]
        self.columns = [_Column(header, look or "left") for header, _, look in parts]
        if self.columns[0].look == "left":
            self.columns[0].look = "name"
        self._notes = self.columns.pop() if self.columns[-1].look == "note" else None

    def add_row(self, *cells: str, style: str = "") -> None:
        """Add a row, with a cell for each column."""
        columns = [*self.columns, *([self._notes] if self._notes else [])]
        shown = (cell for cell, is_shown in zip(cells, self._is_shown, strict=True) if is_shown)
        for column, cell in zip(columns, shown, strict=True):
            column.cells.append(printable(cell))
        self.styles.append(style)

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Yield the lines of the table or tables that fit the width; the sentences are behind or
        under those of the last one."""
        *parts, last = _parts(self.columns, options.max_width)
        for part in parts:
            yield from self._lines(part, _layout(part, options.max_width), console)
            yield ""
        layout, notes = _layout(last, options.max_width), self._notes
        if notes is None or notes.natural > console.width - layout.width - layout.gap:
            yield from self._lines(last, layout, console, under=notes)
        else:
            wide = _Layout([*layout.widths, notes.natural], layout.gap)
            yield from self._lines([*last, notes], wide, console)

    def _lines(
        self,
        columns: Sequence[_Column],
        layout: _Layout,
        console: Console,
        under: _Column | None = None,
    ) -> Iterator[Text]:
        gap, pairs = " " * layout.gap, list(zip(columns, layout.widths, strict=True))
        if self._has_header:
            titles = [
                _filled(column.header.rstrip(), width, column.look) for column, width in pairs
            ]
            rule = "-" if console.options.ascii_only else "─"
            yield Text(gap.join(titles).rstrip(), style="bold")
            yield Text(rule * min(layout.width, console.width))
        for place, style in enumerate(self.styles):
            cells = [column.lines(place, width) for column, width in pairs]
            blanks = [" " * width for width in layout.widths]
            for line in zip_longest(*cells):
                parts = (part or blank for part, blank in zip(line, blanks, strict=True))
                yield Text(gap.join(parts).rstrip(), style=style)
            if under is not None and (note := under.cells[place]):
                yield from self._under(note, style, console)

    def _under(self, note: str, style: str, console: Console) -> Iterator[Text]:
        width = max(1, console.width - len(_INDENT) - 1)
        lines = list(Text(note, style=style).wrap(console, width))
        if self._short_notes and len(lines) > 1:
            lines = [Text(lines[0].plain.rstrip(" ;,:") + "…", style=style)]
        for line in lines:
            yield Text(_INDENT, style=style).append_text(line)


def _parts(columns: Sequence[_Column], width: int) -> Iterator[list[_Column]]:
    """Yield columns that fit beside each other; the columns that name a row are repeated."""

    def fit(some: Sequence[_Column], width: int) -> bool:
        return _layout(some, width, is_last=False).width <= width

    first = 1
    while (
        first < len(columns)
        and columns[first].look in ("name", "left")
        and fit(columns[: first + 1], width // 2)
    ):
        first += 1
    part = list(columns[:first])
    for column in columns[first:]:
        if len(part) > first and not fit([*part, column], width):
            yield part
            part = list(columns[:first])
        part.append(column)
    yield part


def _layout(columns: Sequence[_Column], width: int, *, is_last: bool = True) -> _Layout:
    """Return the widths of columns and the gap between them; the least where nothing fits. First
    the gap gives way, then numbers, then words, and last names, by which a row is found; these
    become short only where `is_last`, as no column can go into a further table."""
    layout = _Layout([column.natural for column in columns], 3)
    steps = ((), ("right",), ("left", "words"), ("name",), *([("name",)] if is_last else []))
    for number, looks in enumerate(steps):
        if layout.width <= width:
            break
        name = _NAME if number < 4 else _SHORT_NAME
        widths = list(layout.widths)
        for place, column in enumerate(columns):
            over = max(0, _Layout(widths, 2).width - width)
            if column.look in looks:
                widths[place] = max(column.least(name), widths[place] - over)
        layout = _Layout(widths, 2)
    return layout


def _filled(text: str, width: int, look: str) -> str:
    if look == "right":
        return " " * (width - cell_len(text)) + text
    return set_cell_size(text, max(width, cell_len(text)))


def _joined(pieces: Sequence[str], width: int) -> list[str]:
    lines = [pieces[0]]
    for piece in pieces[1:]:
        if cell_len(f"{lines[-1]} {piece}") <= width:
            lines[-1] += f" {piece}"
        else:
            lines.append(piece)
    return lines


def runs_table(rows: Iterable[Mapping[str, Any]]) -> FittedTable:
    """Return a row per policy, run or job: seconds, and beside them ratios to the baseline."""
    from dltools.report.result_tables import cells

    grid = cells(list(rows))
    table = FittedTable(*map(":".join, zip(grid.headers, grid.looks, strict=True)))
    for row in grid.rows:
        table.add_row(*row)
    return table
