"""GPUs in few words."""

from __future__ import annotations

_LENGTH = 12


def short_gpu(uuid: str) -> str:
    """Return the begin of a GPU's UUID, such as GPU-8a56a4bc: it tells those of a host apart."""
    return uuid[:_LENGTH]
