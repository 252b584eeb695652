"""Text that others wrote: made fit to be written, and to be shown on a screen."""

from __future__ import annotations


def writable(value: object) -> str:
    """Return a value as text without halves of surrogate pairs, which no encoding has: JSON can
    hold them, and so can arguments that are no UTF-8."""
    return str(value).encode(errors="replace").decode()


def printable(text: str) -> str:
    """Return a text on one line, ? in the place of each character that is no graphic: control
    characters, escapes, what turns the direction of writing, surrogates.

    A terminal would obey them, and a name could hide itself or others.
    """
    return text if text.isprintable() else "".join(c if c.isprintable() else "?" for c in text)


def printable_lines(text: str) -> str:
    """Return a text of lines and tabs made printable."""
    return "\n".join("\t".join(map(printable, line.split("\t"))) for line in text.split("\n"))
