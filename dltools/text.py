"""Text that can be written."""

from __future__ import annotations


def writable(value: object) -> str:
    """Return a value as text without halves of surrogate pairs, which no encoding has: JSON can
    hold them, and so can arguments that are no UTF-8."""
    return str(value).encode(errors="replace").decode()
