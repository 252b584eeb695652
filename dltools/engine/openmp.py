"""The OpenMP runtimes of processes, and what their environment says of how threads wait.

Of the environment only the variables in `VARIABLES` are kept, and of these only values that OpenMP
knows: a process may have secrets in it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from dltools.engine.kernel_files import ROOT

VARIABLES = ("GOMP_SPINCOUNT", "KMP_BLOCKTIME", "OMP_NUM_THREADS", "OMP_WAIT_POLICY")

_RUNTIME = re.compile(rb"/lib(gomp|iomp5|omp)(?=[-.\d])[^/\n]*$", re.MULTILINE)
_VALUE = re.compile(rb"(?i)active|passive|infinit[ey]|\d[\d,]{0,30}[a-z]{0,2}")
_MOST_PROCESSES = 64
_MOST_BYTES = 4 << 20


@dataclass(frozen=True, slots=True)
class OpenMP:
    """What a container's processes use: "libgomp", or several joined by "+", and the variables that
    are set, "OMP_NUM_THREADS=2 OMP_WAIT_POLICY=passive"; None for none.

    `is_readable`: whether this user may look at the processes.
    """

    runtime: str | None = None
    settings: str | None = None
    is_readable: bool = True


def openmp_of(pids: Iterable[int], root: Path = ROOT) -> OpenMP:
    """Return what processes use, the first 64 of them; the settings are those of the process with
    the most threads among those with a runtime."""
    runtimes: set[str] = set()
    widest, settings = 0, ""
    is_readable = True
    for pid in sorted(pids)[:_MOST_PROCESSES]:
        process = root / "proc" / str(pid)
        try:
            found = runtimes_in(_read(process / "maps"))
            if not found:
                continue
            threads = sum(1 for _ in (process / "task").iterdir())
            if threads > widest:
                widest, settings = threads, settings_in(_read(process / "environ"))
            runtimes |= found
        except PermissionError:
            is_readable = False
        except OSError:  # it has ended
            continue
    return OpenMP("+".join(sorted(runtimes)) or None, settings or None, is_readable)


def runtimes_in(maps: bytes) -> set[str]:
    """Return the OpenMP runtimes in the text of a /proc/PID/maps."""
    return {f"lib{match[1].decode()}" for match in _RUNTIME.finditer(maps)}


def settings_in(environ: bytes) -> str:
    """Return the variables of OpenMP that are set in the bytes of a /proc/PID/environ, by name. A
    value that OpenMP does not know is shown as "?"."""
    found: dict[str, str] = {}
    for entry in environ.split(b"\0"):
        name, _, value = entry.partition(b"=")
        if name.decode("ascii", "replace") in VARIABLES:
            value = b"".join(value.split())
            known = value.decode() if _VALUE.fullmatch(value) else "?"
            found.setdefault(name.decode(), known)
    return " ".join(f"{name}={value}" for name, value in sorted(found.items()))


def _read(path: Path) -> bytes:
    with path.open("rb") as file:
        return file.read(_MOST_BYTES)
