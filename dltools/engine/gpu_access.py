"""How a container got its GPU, by the specification that its runtime has of it.

What is in the specification an update of limits keeps: by CDI or --device the GPU's devices are.
The legacy hook adds them behind the runtime's back, and an update lets the runtime rewrite the
rules: NVML answers "Unknown Error" from then on (NVIDIA/nvidia-docker#515,
NVIDIA/nvidia-container-toolkit#138). What a user asked for tells the two apart no more: from 1.18
on NVIDIA's toolkit serves `--gpus` by CDI (NVIDIA/nvidia-container-toolkit#1227).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Any, NamedTuple

_VISIBLE = "NVIDIA_VISIBLE_DEVICES="


class GpuAccess(NamedTuple):
    """How a container got its GPU: whether it has one, and whether an update of its limits could
    cut it off."""

    has_gpu: bool
    files_only: bool


def asks_for_gpu(environ: Iterable[str]) -> bool:
    """Tell whether the environment (NAME=VALUE) of a container asks NVIDIA's runtime for a GPU."""
    asked = [entry.removeprefix(_VISIBLE) for entry in environ if entry.startswith(_VISIBLE)]
    return bool(asked) and asked[-1] not in ("", "none", "void")


def names_gpu(devices: Any, key: str) -> bool:
    """Tell whether one of a container's devices, objects with their paths under `key`, is a GPU."""
    listed = devices if isinstance(devices, list) else []
    paths = (str(device.get(key)) for device in listed if isinstance(device, Mapping))
    return any(path.startswith("/dev/nvidia") for path in paths)


def access_by_specification(spec: Mapping[str, Any], *, is_asked: bool) -> GpuAccess:
    """Return how a container got its GPU. `is_asked`: whether it was started with a wish for one,
    which the legacy hook fulfils if nothing else has."""
    linux = spec.get("linux")
    is_named = names_gpu(linux.get("devices") if isinstance(linux, Mapping) else None, "path")
    return GpuAccess(is_named or is_asked, is_asked and not is_named)


_SHARES = (
    (re.compile(rb"CUDA_MPS_ACTIVE_THREAD_PERCENTAGE=(\d{1,3})(?:\.\d*)?"), "MPS, {} % of threads"),
    (re.compile(rb"CUDA_DEVICE_SM_LIMIT=(\d{1,3})"), "HAMi, {} % of the multiprocessors"),
    (re.compile(rb"(?:NVIDIA|CUDA)_VISIBLE_DEVICES=(MIG)-.*"), "{} instance"),
)
"""Variables by which a container is given a share of a GPU when it starts, and in words."""


@lru_cache(maxsize=1024)
def share_at_start(environ: bytes) -> str:
    """Return in words which share of a GPU a container was given at its start, "" for none, by what
    is in its environment (as in a /proc/PID/environ). Nobody can change it while it runs."""
    entries = environ.split(b"\0")
    shares = (
        words.format(match[1].decode())
        for pattern, words in _SHARES
        for entry in entries
        if (match := pattern.fullmatch(entry))
    )
    return "; ".join(dict.fromkeys(shares))
