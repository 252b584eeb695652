"""Tables that fit the screen: sentences and names are shortened, numbers never. All tools print
them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from rich import box
from rich.cells import cell_len, chop_cells
from rich.console import Console, ConsoleOptions, RenderResult
from rich.table import Table

from dltools.cli.words import clip
from dltools.text import printable

WIDE_GAP = 3
"""Blanks between two columns where there is room."""
_LONG_NAME, _NAME, _SHORT_NAME = 34, 20, 6
"""Columns to which names shrink: before sentences have but a few words a line, before these are as
narrow as their longest words, and after."""
_TEXT, _NARROW_TEXT = 24, 16
"""Columns that sentences keep before values go onto two lines, and before names are cut."""
_LONGEST_WORD = 30

_BREAKS = {"left": r"(?<=,) | (?=-> )", "right": r"(?<=,) | (?=\(\d+\.)", "wrap": r" "}
"""Where a line of a cell may end, by look: between settings, before a ratio, between words."""


@dataclass(slots=True)
class _Column:
    header: str
    look: str
    cells: list[str]

    @property
    def natural(self) -> int:
        return max(map(cell_len, (self.header, *self.cells)))

    def least(self, look: str, width: int = 0) -> int:
        """Return the least width when the columns of a look are narrowed: `width`, or that of their
        longest piece."""
        if self.look != look:
            return self.natural
        pieces = [self.header] if look != "name" else []
        if look in _BREAKS:
            pieces += [piece for cell in self.cells for piece in re.split(_BREAKS[look], cell)]
        longest = max(map(cell_len, pieces), default=0)
        if look == "wrap":
            longest = min(longest, _LONGEST_WORD)
        return min(self.natural, max(width, longest))


_STEPS = (
    (WIDE_GAP, "wrap", _TEXT),
    (2, "", 0),
    (2, "right", 0),
    (2, "left", 0),
    (2, "name", _LONG_NAME),
    (2, "wrap", _NARROW_TEXT),
    (2, "name", _NAME),
    (2, "wrap", 0),
    (2, "name", _SHORT_NAME),
)
"""The order in which a table is narrowed: the gap between columns, a look, and its least width. A
name is what a row is found by, so it gives way last."""


class FittedTable(Table):
    """A table of texts that is as narrow as the screen; each column has a header and a look.

    Looks: "name" (as the first column, if it is "left") is shortened; "right", numbers, and "left",
    words and settings, are never shortened, but a line may end between two of them; "wrap" are
    sentences, of which those words are shown that fit `most_lines`.
    Columns that still do not fit beside each other go into further tables below the first.
    """

    def __init__(self, *columns: tuple[str, str], most_lines: int | None = None) -> None:
        """Make a table without rows."""
        super().__init__()
        self._most_lines = most_lines
        self._looks = [
            "name" if (n, look) == (0, "left") else look for n, (_, look) in enumerate(columns)
        ]
        for header, _ in columns:
            self.add_column(header)

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Yield the table or tables that fit the width."""
        del console
        for number, part in enumerate(_parts(self.texts(), options.max_width)):
            if number:
                yield ""
            yield self.laid_out(part, _Layout(*_widths(part, options.max_width)))

    def texts(self) -> list[_Column]:
        """Return its columns as they are printed."""
        return [
            _Column(str(column.header), look, [printable(str(cell)) for cell in column.cells])
            for column, look in zip(self.columns, self._looks, strict=True)
        ]

    def laid_out(
        self, part: Sequence[_Column], layout: _Layout, *, has_header: bool = True
    ) -> Table:
        """Return a table of some of its columns."""
        table = bare_table(layout.gap)
        table.show_header = has_header
        for column, width in zip(part, layout.widths, strict=True):
            table.add_column(
                column.header,
                width=width,
                justify="right" if column.look == "right" else "left",
                no_wrap=column.look == "name",
            )
        texts = [
            _broken(column, width, self._most_lines)
            for column, width in zip(part, layout.widths, strict=True)
        ]
        for *cells, style in zip(*texts, (row.style or "" for row in self.rows), strict=True):
            table.add_row(*cells, style=style)
        return table


class _Layout(NamedTuple):
    """The widths of columns, and the gap between them."""

    widths: Sequence[int]
    gap: int


class TableStream:
    """Prints tables of the same columns as one that goes on: a header stands above the first, and
    again where rows do not fit its columns any more."""

    def __init__(self, console: Console, usual: FittedTable) -> None:
        """`usual` has rows as wide as they may be expected: there is room for them at once."""
        self._console = console
        self._usual = usual
        self._layout: _Layout | None = None

    def print(self, table: FittedTable) -> None:
        """Print the rows of a table."""
        width, columns = self._console.width, table.texts()
        layout = self._layout
        if layout is not None and _fits_layout(columns, layout):
            self._console.print(table.laid_out(columns, layout, has_header=False))
            return
        self._layout = None
        if not _fits(columns, width):
            self._console.print(table)
            return
        wide = [
            _Column(one.header, one.look, [*one.cells, *more.cells])
            for one, more in zip(columns, self._usual.texts(), strict=True)
        ]
        widths, gap = _widths(wide if _fits(wide, width) else columns, width)
        widths[-1] = max(widths[-1], width - _sum(widths[:-1], gap) - gap)
        self._layout = _Layout(widths, gap)
        self._console.print(table.laid_out(columns, self._layout))


def _fits_layout(columns: Sequence[_Column], layout: _Layout) -> bool:
    """Tell whether the cells of columns can be broken so that they fit widths."""
    pairs = zip(columns, layout.widths, strict=True)
    return all(column.least(column.look) <= width for column, width in pairs)


def bare_table(gap: int = WIDE_GAP) -> Table:
    """Return a table whose only line is below the headers, with so many blanks between columns."""
    return Table(
        box=box.SIMPLE_HEAD,
        pad_edge=False,
        show_edge=False,
        header_style="bold",
        padding=(0, 1, 0, gap - 2),
    )


def _parts(columns: Sequence[_Column], width: int) -> Iterator[list[_Column]]:
    """Yield columns that fit beside each other; the columns that name a row are repeated."""
    if _fits(columns, width):
        yield list(columns)
        return
    first = 1
    while (
        first < len(columns)
        and columns[first].look in ("name", "left")
        and _fits(columns[: first + 1], width // 2)
    ):
        first += 1
    part = list(columns[:first])
    for column in columns[first:]:
        if len(part) > first and not _fits([*part, column], width):
            yield part
            part = list(columns[:first])
        part.append(column)
    yield part


def _fits(columns: Sequence[_Column], width: int) -> bool:
    widths, gap = _widths(columns, width)
    return _sum(widths, gap) <= width


def _sum(widths: Sequence[int], gap: int) -> int:
    return sum(widths) + gap * (len(widths) - 1)


def _widths(columns: Sequence[_Column], width: int) -> tuple[list[int], int]:
    """Return the widths of columns and the gap between them; the least where nothing fits."""
    widths, gap = [column.natural for column in columns], _STEPS[0][0]
    for gap, look, least in _STEPS:
        floors = [column.least(look, least) for column in columns]
        for place in sorted(range(len(columns)), key=lambda n: floors[n] - widths[n]):
            over = max(0, _sum(widths, gap) - width)
            widths[place] = min(widths[place], max(floors[place], widths[place] - over))
        if _sum(widths, gap) <= width:
            break
    return widths, gap


def _broken(column: _Column, width: int, most_lines: int | None) -> list[str]:
    """Return the cells of a column with line ends that fit a width, and no more than `most_lines`
    lines of a sentence."""
    if column.look == "name":
        return [clip(cell, width) for cell in column.cells]
    if column.look in ("left", "right"):
        return [_lines(re.split(_BREAKS[column.look], cell), width) for cell in column.cells]
    if most_lines is None:
        return column.cells
    return [_first_words(cell, width, most_lines) for cell in column.cells]


def _lines(pieces: Sequence[str], width: int) -> str:
    lines = [pieces[0]]
    for piece in pieces[1:]:
        if cell_len(f"{lines[-1]} {piece}") <= width:
            lines[-1] += f" {piece}"
        else:
            lines.append(piece)
    return "\n".join(lines)


def _first_words(text: str, width: int, most_lines: int) -> str:
    """Return the first words of a sentence that fit so many lines."""
    words = text.split(" ")
    kept = words
    while len(kept) > 1 and _count_lines(kept, width) > most_lines:
        words = words[:-1]
        kept = [*words[:-1], f"{words[-1].rstrip(';,:')}…"]
    return " ".join(kept)


def _count_lines(words: Iterable[str], width: int) -> int:
    pieces = [piece for word in words for piece in chop_cells(word, width) or [""]]
    return _lines(pieces, width).count("\n") + 1


_LOOKS = {"REALIZE": "left", "SET": "wrap", "ACTIONS": "left", "LIMITS": "left"}


def runs_table(rows: Iterable[Mapping[str, Any]]) -> Table:
    """Return a row per policy, run or job: seconds, and beside them ratios to the baseline."""
    from dltools.report.cells import cells

    found = cells(list(rows))
    looks = [
        "right" if right else _LOOKS.get(header, "name")
        for header, right in zip(found.headers, found.right, strict=True)
    ]
    table = FittedTable(*zip(found.headers, looks, strict=True))
    for row in found.rows:
        table.add_row(*row)
    return table
