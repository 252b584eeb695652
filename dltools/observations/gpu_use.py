"""What a container uses of a GPU."""

from __future__ import annotations

from typing import NamedTuple


class GpuUse(NamedTuple):
    """What a container uses of a GPU: the share of time in which it had a kernel there (NaN:
    unknown), the bytes that it holds, and the GPU's memory (bytes; None: unknown)."""

    ratio: float
    memory: int | None = None
    limit: int | None = None


GpuUses = dict[int, dict[str, dict[str, GpuUse]]]
"""By time (microseconds), container and GPU."""
