"""Calls that wait for a network, made at the same time."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

_THREADS = 8

_Item = TypeVar("_Item")
_Answer = TypeVar("_Answer")


def in_threads(call: Callable[[_Item], _Answer], items: Sequence[_Item]) -> list[_Answer]:
    """Return what a call returns for each item; the calls run in threads."""
    if not items:
        return []
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(_THREADS) as pool:
        return list(pool.map(call, items))
