"""A page of a terminal for each command, one after the other, as an SVG that moves by itself."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from xml.sax.saxutils import escape

ROWS = 30
_SECONDS = 7
_FONT, _STEP, _WIDE = 14, 18, 8.43
_CONTROL = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07]*\x07|[@-Z\\-_])")


@dataclass(frozen=True, slots=True)
class Frame:
    """`shown`: all that the terminal got after `line` was typed."""

    note: str
    line: str
    shown: str

    def lines(self, columns: int) -> list[str]:
        """Return what stands on a screen of so many columns in the end: the last rows, if there
        are more."""
        text = _CONTROL.sub("", self.shown).replace("^C", "^C\n")  # the terminal's, no tool's
        printed = [_overwritten(row) for row in text.split("\n")]
        rows = [part for row in printed for part in _wrapped(row, columns)]
        while rows and not rows[-1]:
            rows.pop()
        if len(rows) > ROWS - 2:
            rows = ["...", *rows[-(ROWS - 3) :]]
        return [f"$ {self.line}", *rows]


def _overwritten(row: str) -> str:
    """Return a row of which parts were printed over each other from its start on."""
    made = ""
    for part in row.split("\r"):
        made = part + made[len(part) :]
    return made.rstrip()


def _wrapped(row: str, columns: int) -> list[str]:
    """Return a row as a terminal shows it that has no room for it."""
    return [row[at : at + columns] for at in range(0, len(row) or 1, columns)]


def svg(frames: Sequence[Frame], columns: int) -> str:
    """Return the picture. Where nothing moves, as on paper, it shows the first frame."""
    screens = [frame.lines(columns) for frame in frames]
    rows = max(map(len, screens))
    width, height = round(columns * _WIDE) + 24, (rows + 2) * _STEP + 24
    part = 100 / len(frames)
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" '
        f'viewBox="0 0 {width} {height}" role="img">',
        "<title>Six commands on three trainings</title>",
        "<style>",
        f"text {{ font: {_FONT}px monospace; fill: #dddddd; white-space: pre }}",
        ".note { fill: #ffc04d } .typed { fill: #ffffff; font-weight: bold }",
        f"g {{ opacity: 0; animation: page {_SECONDS * len(frames)}s infinite }}",
        f"@keyframes page {{ 0%, {part:.2f}% {{ opacity: 1 }} {part + 0.01:.2f}%, 100% "
        "{ opacity: 0 } }",
        "@media print, (prefers-reduced-motion: reduce) { g { animation: none } #page0 { opacity: "
        "1 } }",
        "</style>",
        '<rect width="100%" height="100%" rx="6" fill="#1e1e1e"/>',
    ]
    for number, (frame, screen) in enumerate(zip(frames, screens, strict=True)):
        lines.append(f'<g id="page{number}" style="animation-delay: {number * _SECONDS}s">')
        lines.append(_text(1, f"# {number + 1} of {len(frames)}: {frame.note}", "note"))
        lines += [
            _text(row, line, "typed" if row == 2 else "")
            for row, line in enumerate(screen, 2)
            if line
        ]
        lines.append("</g>")
    return "\n".join([*lines, "</svg>", ""])


def _text(row: int, line: str, kind: str) -> str:
    given = f' class="{kind}"' if kind else ""
    return f'<text x="12" y="{row * _STEP + 12}"{given} xml:space="preserve">{escape(line)}</text>'
