"""The resources that jobs compete for, and how they are written: lists of CPUs as the kernel has
them (0-3,6), devices in few words, and numbers of bytes as people read them (1.5 GiB).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from enum import StrEnum
from functools import lru_cache


class Resource(StrEnum):
    """What jobs compute on, and compete for: a host's CPUs, or devices that containers hold one by
    one."""

    CPU = "CPU"
    GPU = "GPU"

    @property
    def is_device(self) -> bool:
        """Whether containers hold it one by one."""
        return self is not Resource.CPU


_MOST_CPUS = 65536


def parse_cpus(text: str) -> list[int]:
    """Return the CPUs of a list such as 0-3,6, sorted; [] where the text is no list of CPUs."""
    cpus: set[int] = set()
    for part in text.split(","):
        first, _, last = part.strip().partition("-")
        if not first.isdecimal() or (last and not last.isdecimal()):
            return []
        low, high = int(first), int(last or first)
        if not low <= high < _MOST_CPUS:
            return []
        cpus.update(range(low, high + 1))
    return sorted(cpus)


@lru_cache(maxsize=256)
def count_cpus(text: str) -> int:
    """Return how many CPUs are in a list."""
    return len(parse_cpus(text))


def format_cpus(cpus: Sequence[int]) -> str:
    """Return CPUs as the kernel writes them: 0-3,6."""
    parts: list[list[int]] = []
    for cpu in sorted(cpus):
        if parts and parts[-1][1] == cpu - 1:
            parts[-1][1] = cpu
        else:
            parts.append([cpu, cpu])
    return ",".join(str(low) if low == high else f"{low}-{high}" for low, high in parts)


def union_of_cpus(cpuset: str | None, lists: Iterable[str | None]) -> str | None:
    """Return the CPUs of a known list and of others as one list, None where there are none."""
    texts = {text for text in lists if text}
    if not texts or texts == {cpuset}:
        return cpuset
    union = set(parse_cpus(cpuset or ""))
    for text in texts:
        union.update(parse_cpus(text))
    return format_cpus(sorted(union)) if union else None


_UUID_LENGTH = 12


def short_uuid(uuid: str) -> str:
    """Return the begin of a device's UUID, such as GPU-8a56a4bc: it tells those of a host apart."""
    return uuid[:_UUID_LENGTH]


_BYTE_UNITS = ("B", "KiB", "MiB", "GiB")


def format_bytes(count: float) -> str:
    """Return a number of bytes in three digits: 512 B, 64 MiB, 1.5 GiB."""
    amount = float(count)
    for unit in _BYTE_UNITS:
        if amount < 1000 or unit == _BYTE_UNITS[-1]:
            break
        amount /= 1024
    return f"{amount:.3g} {unit}"
