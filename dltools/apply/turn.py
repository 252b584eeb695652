"""A container's turn."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Turn:
    """A container's place in a rotation: its group, and the length of the group's turn (s)."""

    container_id: str
    name: str
    group: int
    seconds: float
