"""Text that others wrote: made safe to encode and to show, and misspelt words corrected."""

from __future__ import annotations

from collections.abc import Iterable, Sequence


def writable(value: object) -> str:
    """Return a value as text that UTF-8 can encode: ? replaces each lone surrogate. JSON can hold
    one, and so can an argument that is not UTF-8."""
    return str(value).encode(errors="replace").decode()


def printable(text: str) -> str:
    """Return a text on one line: ? replaces control characters, escapes, direction marks and
    surrogates. A terminal would obey them, so that a name could hide itself or other text.
    """
    return text if text.isprintable() else "".join(c if c.isprintable() else "?" for c in text)


def printable_lines(text: str) -> str:
    """Return a text made printable but for its line ends and tabs."""
    return "\n".join("\t".join(map(printable, line.split("\t"))) for line in text.split("\n"))


def joined(*parts: str | None) -> str:
    """Return the parts of a message that there are."""
    return "; ".join(filter(None, parts))


def listed(names: Sequence[str], most: int = 10) -> str:
    """Return names for a message: so many of them, and how many more there are."""
    more = f" and {len(names) - most:,} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more


def suggestion(word: str, words: Iterable[str], prefix: str = "") -> str:
    """Return the end of a message about an unknown word: the most similar known word, or all known
    words. All known words begin with `prefix`, which does not count as similar.
    """
    from difflib import get_close_matches

    rests = {name.removeprefix(prefix).lower(): name for name in words}
    near = get_close_matches(word.removeprefix(prefix).lower(), rests, 1)
    return f": did you mean {rests[near[0]]}?" if near else f"; known: {listed([*rests.values()])}"
