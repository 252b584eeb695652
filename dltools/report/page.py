"""Shows runs as one HTML page with tables and pictures, which needs no other file."""

from __future__ import annotations

import html
from collections.abc import Sequence
from dataclasses import dataclass

from dltools.report.result_tables import Cells
from dltools.text import printable

_STYLE = """
:root { color-scheme: light; }
body { font: 15px/1.45 system-ui, sans-serif; margin: 2rem auto; max-width: 80rem; padding: 0 1rem;
       color: #1a1a1a; background: #ffffff; }
h1 { font-size: 1.5rem; overflow-wrap: anywhere; } h2 { font-size: 1.1rem; margin-top: 2rem; }
.wide { overflow-x: auto; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; width: 100%; }
th, td { padding: .25rem .7rem; border-bottom: 1px solid #d0d0d0; text-align: left; }
td, th { white-space: nowrap; } th { border-bottom: 2px solid #555555; }
.number { text-align: right; }
figure { margin: 1rem 0; } svg { width: 100%; height: auto; }
footer { color: #555555; margin-top: 2rem; font-size: .85rem; }
@media (max-width: 56rem) {
  body { margin: 1rem auto; padding: 0 .75rem; }
  th, td { padding: .25rem .35rem; }
}
@media print { body { margin: 0; } figure { break-inside: avoid; } }
"""

_SHORT = 20
"""Rows of a table that leaves room for pictures."""


@dataclass(frozen=True, slots=True)
class Table:
    """A table of the page."""

    heading: str
    """What stands above it."""

    cells: Cells
    """The table."""


@dataclass(frozen=True, slots=True)
class Picture:
    """A picture of the page."""

    heading: str
    """What it shows, for who cannot see it."""

    drawn: bytes
    """The picture, as SVG."""


def page(title: str, tables: Sequence[Table], picture: Picture | None, footer: str) -> str:
    """Return the page: first the tables, then the picture, then the tables that are long."""
    short = [_headed(table) for table in tables if len(table.cells.rows) <= _SHORT]
    long = [_headed(table) for table in tables if len(table.cells.rows) > _SHORT]
    figure = "" if picture is None else _figure(picture)
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{_escaped(title)}</title>\n<style>{_STYLE}</style>\n</head>\n<body>\n"
        f"<h1>{_escaped(title)}</h1>\n{''.join([*short, figure, *long])}"
        f"<footer>{_escaped(footer)}</footer>\n</body>\n</html>\n"
    )


def _figure(picture: Picture) -> str:
    _, tag, drawn = picture.drawn.decode().partition("<svg")
    label = _escaped(picture.heading)
    return f'<figure role="img" aria-label="{label}">\n{tag}{drawn}</figure>\n'


def _headed(table: Table) -> str:
    cells = table.cells

    def line(tag: str, texts: Sequence[str]) -> str:
        marked = (
            f"<{tag}{' class=number' if look == 'right' else ''}>{_escaped(text)}</{tag}>"
            for text, look in zip(texts, cells.looks, strict=True)
        )
        return f"<tr>{''.join(marked)}</tr>\n"

    head, body = line("th", cells.headers), "".join(line("td", row) for row in cells.rows)
    return (
        f"<h2>{_escaped(table.heading)}</h2>\n"
        f'<div class="wide"><table>\n<thead>{head}</thead>\n<tbody>{body}</tbody>\n</table></div>\n'
    )


def _escaped(text: str) -> str:
    return html.escape(printable(text))
