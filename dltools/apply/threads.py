"""How many threads of a container are busy: it needs as many CPUs.

Threads that wait for each other at barriers spin, and two that spin on one CPU stop each other for
whole time slices: a job with fewer CPUs than busy threads takes ten times as long and more
(measured: over 300 s for 15 s of work).
"""

from __future__ import annotations

import time
from pathlib import Path

from dltools.engine.cgroup import Cgroup
from dltools.engine.kernel_files import ROOT, read_text

_COUNTS = 5
_BETWEEN_S = 0.02


def count_busy(group: Cgroup, root: Path = ROOT) -> int | None:
    """Return the most threads that want a CPU at once within 0.1 s, None if they are not
    visible."""
    found = group.directory("cpu") or group.directory("cpuset")
    if found is None:
        return None
    most = 0
    for number in range(_COUNTS):
        if number:
            time.sleep(_BETWEEN_S)
        pids = read_text(found.path / "cgroup.procs").split()
        if not pids:
            return None
        most = max(most, sum(_running(root / "proc" / pid / "task") for pid in pids))
    return most


def _running(tasks: Path) -> int:
    try:
        threads = list(tasks.iterdir())
    except OSError:  # the process has ended
        return 0
    return sum(_state(thread) == "R" for thread in threads)


def _state(thread: Path) -> str:
    """Return a thread's state, which follows the last bracket: its name may hold brackets too."""
    return read_text(thread / "stat").rpartition(")")[2].strip()[:1]
