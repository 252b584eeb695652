"""Text that others wrote: made fit to be written, to be shown on a screen, and corrected."""

from __future__ import annotations

from collections.abc import Iterable


def writable(value: object) -> str:
    """Return a value as text that can be encoded: ? stands for each half of a surrogate pair, which
    JSON can hold, and so can arguments that are not UTF-8."""
    return str(value).encode(errors="replace").decode()


def printable(text: str) -> str:
    """Return a text on one line, with ? for each character that is not graphic: control characters,
    escapes, marks of the direction of writing, surrogates.

    A terminal would obey them, so a name could hide itself or other text.
    """
    return text if text.isprintable() else "".join(c if c.isprintable() else "?" for c in text)


def printable_lines(text: str) -> str:
    """Return a text made printable but for its line ends and tabs."""
    return "\n".join("\t".join(map(printable, line.split("\t"))) for line in text.split("\n"))


def suggestion(word: str, known: Iterable[str], prefix: str = "") -> str:
    """Return how a message about an unknown word ends: with the known word that is most like it, or
    with all of them. All known words begin with the `prefix`, which makes none of them more like.
    """
    from difflib import get_close_matches

    rests = {name.removeprefix(prefix).lower(): name for name in known}
    near = get_close_matches(word.removeprefix(prefix).lower(), rests, 1)
    return f": did you mean {rests[near[0]]}?" if near else f"; known: {', '.join(rests.values())}"
