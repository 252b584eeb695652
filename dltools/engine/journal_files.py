"""Where dl-apply's journal is, what its files are called, and their version."""

from __future__ import annotations

FOLDER = "journal"
"""The journal's folder in a state directory."""

VERSION = 1
"""Version of an entry."""


def entry_name(container_id: str) -> str:
    """Return the name of a container's entry."""
    return f"{container_id}.json"
