"""Which files of a container may hold progress."""

from __future__ import annotations

import fnmatch
from collections.abc import Iterable, Sequence
from contextlib import suppress
from pathlib import Path

from dltools.engine.kernel_files import read_text
from dltools.probe.files.readers import reader_of
from dltools.probe.files.rooted import Root

_DEPTH, _NAMES = 5, 1_000
_VIRTUAL = ("proc", "sysfs", "tmpfs", "devpts", "mqueue", "cgroup", "cgroup2", "overlay")
_USUAL = (
    "/workspace",
    "/app",
    "/data",
    "/output",
    "/outputs",
    "/logs",
    "/runs",
    "/results",
    "/checkpoints",
    "/mlruns",
    "/lightning_logs",
    "/root",
    "/train",
)
"""Where jobs write whose working directory is the root directory."""

_SYSTEM = ("/etc/", "/proc", "/sys", "/dev", "/run/secrets", "/usr", "/lib")


def folders_of(pid: int) -> list[str]:
    """Return where a container's job may write, as paths inside it: its working directory and the
    volumes mounted into it."""
    found = []
    with suppress(OSError):
        found.append(str(Path(f"/proc/{pid}/cwd").readlink()))
    if found == ["/"]:
        found = list(_USUAL)
    for line in read_text(f"/proc/{pid}/mountinfo").splitlines():
        fields, _, kind = line.partition(" - ")
        place = fields.split()[4] if len(fields.split()) > 4 else "/"
        if place != "/" and kind.split(" ")[0] not in _VIRTUAL and not place.startswith(_SYSTEM):
            found.append(place.replace("\\040", " "))
    return [folder for folder in dict.fromkeys(found) if folder != "/"]


def well_known(root: Root, folders: Sequence[str]) -> Iterable[str]:
    """Yield the paths of files with well-known names below some folders."""
    for folder in dict.fromkeys(folders):
        for path in root.files(folder, depth=_DEPTH, most=_NAMES):
            if reader_of(path) is not None:
                yield path


def matching(root: Root, patterns: Sequence[str]) -> Iterable[str]:
    """Yield the paths that some patterns match; one without a wildcard is a path."""
    for pattern in patterns:
        parts = pattern.split("/")
        wild = next((i for i, part in enumerate(parts) if any(c in part for c in "*?[")), None)
        if wild is None:
            yield pattern
            continue
        folder = "/".join(parts[:wild]) or "/"
        for path in root.files(folder, depth=_DEPTH, most=_NAMES):
            if fnmatch.fnmatchcase(path, pattern):
                yield path
