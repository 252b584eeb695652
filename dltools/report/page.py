"""Runs as one HTML page that needs nothing else: tables, and pictures drawn into it."""

from __future__ import annotations

import html
import re
from collections.abc import Sequence

from dltools.report.cells import Cells
from dltools.text import printable

_STYLE = """
:root { color-scheme: light; }
body { font: 15px/1.45 system-ui, sans-serif; margin: 2rem auto; max-width: 64rem; padding: 0 1rem;
       color: #1a1a1a; background: #ffffff; }
h1 { font-size: 1.5rem; } h2 { font-size: 1.1rem; margin-top: 2rem; }
.wide { overflow-x: auto; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; }
th, td { padding: .25rem .7rem; border-bottom: 1px solid #d0d0d0; text-align: left; }
th { border-bottom: 2px solid #555555; } .number { text-align: right; }
figure { margin: 1rem 0; } svg { max-width: 100%; height: auto; }
footer { color: #555555; margin-top: 2rem; font-size: .85rem; }
@media print { body { margin: 0; } figure { break-inside: avoid; } }
"""


def page(
    title: str,
    tables: Sequence[tuple[str, Cells]],
    pictures: Sequence[tuple[str, bytes]],
    footer: str,
) -> str:
    """Return the page: tables and pictures (SVG), each under its heading."""
    parts = [
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{_escaped(title)}</title>\n<style>{_STYLE}</style>\n</head>\n<body>\n"
        f"<h1>{_escaped(title)}</h1>\n"
    ]
    for heading, table in tables:
        parts.append(f"<h2>{_escaped(heading)}</h2>\n{_table(table)}")
    for number, (heading, picture) in enumerate(pictures):
        parts.append(f'<figure role="img" aria-label="{_escaped(heading)}">\n'
                     f"{_inlined(picture, number)}</figure>\n")  # fmt: skip
    parts.append(f"<footer>{_escaped(footer)}</footer>\n</body>\n</html>\n")
    return "".join(parts)


def _table(table: Cells) -> str:
    def line(tag: str, texts: Sequence[str]) -> str:
        marked = (
            f"<{tag}{' class=number' if right else ''}>{_escaped(text)}</{tag}>"
            for text, right in zip(texts, table.right, strict=True)
        )
        return f"<tr>{''.join(marked)}</tr>\n"

    head, body = line("th", table.headers), "".join(line("td", row) for row in table.rows)
    return (
        f'<div class="wide"><table>\n<thead>{head}</thead>\n<tbody>{body}</tbody>\n</table></div>\n'
    )


def _escaped(text: str) -> str:
    return html.escape(printable(text))


def _inlined(picture: bytes, number: int) -> str:
    """Return an SVG without its prologue, its ids made different from those of the others."""
    text = picture.decode()
    text = text[text.index("<svg") :]
    text = re.sub(r'\bid="', f'id="p{number}-', text)
    text = re.sub(r'(xlink:href|href)="#', rf'\1="#p{number}-', text)
    return re.sub(r"url\(#", f"url(#p{number}-", text)
