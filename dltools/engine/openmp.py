"""The OpenMP runtimes of processes, and what their environment says of how threads wait.

Of the environment only the variables in `VARIABLES` are kept, and of these only values that OpenMP
knows: a process may have secrets in it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

VARIABLES = ("GOMP_SPINCOUNT", "KMP_BLOCKTIME", "OMP_NUM_THREADS", "OMP_WAIT_POLICY")

_RUNTIME = re.compile(rb"/lib(gomp|iomp5|omp)(?=[-.\d])[^/\n]*$", re.MULTILINE)
_VALUE = re.compile(rb"(?i)active|passive|infinit[ey]|\d[\d,]{0,30}[a-z]{0,2}")


@dataclass(frozen=True, slots=True)
class OpenMP:
    """What a container's processes use: "libgomp", or several joined by "+", and the variables that
    are set, "OMP_NUM_THREADS=2 OMP_WAIT_POLICY=passive"; None for none."""

    runtime: str | None = None
    settings: str | None = None


NO_OPENMP = OpenMP()


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
