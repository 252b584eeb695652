"""Numbers of bytes as people read them: 1.5 GiB."""

from __future__ import annotations

_UNITS = ("B", "KiB", "MiB", "GiB")


def format_bytes(count: int) -> str:
    """Return a number of bytes in three digits: 512 B, 64 MiB, 1.5 GiB."""
    amount = float(count)
    for unit in _UNITS:
        if amount < 1000 or unit == _UNITS[-1]:
            break
        amount /= 1024
    return f"{amount:.3g} {unit}"
