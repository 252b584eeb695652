"""The containers that processes of this host belong to."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from pathlib import Path

from dltools.engine.kernel_files import ROOT, read_text

_ID = re.compile(r"(?<![0-9a-f])[0-9a-f]{64}(?![0-9a-f])")


def container_of(cgroup_text: str) -> str | None:
    """Return the container id in the text of a /proc/PID/cgroup, None if there is none.

    It is the first word of 64 digits in a path: docker/ID, docker-ID.scope, kubepods/.../ID. This
    engine knows only the outer one of two nested containers.
    """
    for line in cgroup_text.splitlines():
        if match := _ID.search(line.rpartition(":")[2]):
            return match[0]
    return None


def owners(pids: Iterable[int], root: Path = ROOT) -> Mapping[int, str]:
    """Return the container ids of the processes that are in a container."""
    found = {pid: container_of(read_text(f"{root}/proc/{pid}/cgroup")) for pid in set(pids)}
    return {pid: id_ for pid, id_ in found.items() if id_ is not None}
