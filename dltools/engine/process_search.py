"""What the processes of a container are: one look at their maps and command lines.

Maps are long and costly to read, so that all that is looked for in them is looked for at once, and
only once in processes that a training has made by fork, as data loaders are.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from dltools.engine.distributed import Membership, membership_of, variables_in
from dltools.engine.interactive import interactive_program
from dltools.engine.kernel_files import ROOT
from dltools.engine.openmp import NO_OPENMP, OpenMP, runtimes_in, settings_in

_DEEP_LEARNING: tuple[tuple[str, bytes, re.Pattern[bytes]], ...] = tuple(
    (name, part, re.compile(rb"/" + pattern + rb"[^/\n]*\.so\b[^/\n]*$", re.MULTILINE))
    for name, part, pattern in (
        ("libtorch", b"libtorch", rb"libtorch(?:_[a-z_]+)?(?=[-.])"),
        ("libtensorflow", b"libtensorflow", rb"libtensorflow(?:_cc|_framework)?(?=[-.])"),
        ("libtensorflow", b"_pywrap_tensorflow", rb"_pywrap_tensorflow"),
        ("jaxlib", b"jaxlib", rb"jaxlib/(?:[^/\n]+/)*"),
        ("jaxlib", b"xla_extension", rb"xla_extension"),
        ("libmxnet", b"libmxnet", rb"libmxnet(?=[-.])"),
        ("libpaddle", b"libpaddle", rb"libpaddle(?:_[a-z_]+)?(?=[-.])"),
        ("libonnxruntime", b"onnxruntime", rb"(?:lib)?onnxruntime(?:_[a-z0-9_]+)?(?=[-.])"),
        ("libcudart", b"libcudart", rb"libcudart(?=[-.])"),
    )
)
"""The runtimes of deep learning: a name, bytes that maps with it have, and its files. An OpenMP
runtime alone is none: a database may have one."""

_MOST_PROCESSES = 64
_MOST_BYTES = 4 << 20
_MOST_WORDS = 4096
_CHUNK = 1 << 16


@dataclass(frozen=True, slots=True)
class Processes:
    """What is known of a container's processes.

    `openmp`: their OpenMP runtimes and settings. `runtimes`: their deep-learning runtimes, such as
    libtorch. `program`: the name of an interactive program among them, "" for none. `membership`:
    the distributed job that they are members of, None for none. `is_readable`: whether this user
    may look at them.
    """

    openmp: OpenMP = NO_OPENMP
    runtimes: tuple[str, ...] = ()
    program: str = ""
    membership: Membership | None = None
    is_readable: bool = True


def search(pids: Iterable[int], root: Path = ROOT, *, shares_network: bool = False) -> Processes:
    """Look at processes, the first 64 of them. The settings of OpenMP are those of the process with
    the most threads among those with such a runtime.

    `shares_network`: whether the container has the network of the host or of another container.
    """
    launched: list[tuple[dict[str, str], list[str]]] = []
    with_runtime: set[tuple[tuple[str, ...], bytes]] = set()  # their command lines and environments
    openmp: set[str] = set()
    deep: set[str] = set()
    widest, settings, program = 0, "", ""
    is_readable = True
    for pid in sorted(pids)[:_MOST_PROCESSES]:
        process = root / "proc" / str(pid)
        try:
            command, environ = _command_line(process), _read(process / "environ")
            kind = (tuple(command), environ)
            if kind in with_runtime:
                continue
            program = program or interactive_program(command)
            launched.append((variables_in(environ), command))
            maps = _read(process / "maps")
            if runtimes := deep_learning_in(maps):
                deep |= runtimes
                with_runtime.add(kind)
            found = runtimes_in(maps)
            if not found:
                continue
            threads = sum(1 for _ in (process / "task").iterdir())
            if threads > widest:
                widest, settings = threads, settings_in(environ)
            openmp |= found
        except PermissionError:
            is_readable = False
        except OSError:  # it has ended
            continue
    found_openmp = OpenMP("+".join(sorted(openmp)) or None, settings or None)
    member = membership_of(launched, shares_network=shares_network)
    return Processes(found_openmp, tuple(sorted(deep)), program, member, is_readable)


def deep_learning_in(maps: bytes) -> set[str]:
    """Return the deep-learning runtimes in the text of a /proc/PID/maps."""
    return {name for name, part, files in _DEEP_LEARNING if part in maps and files.search(maps)}


def _command_line(process: Path) -> list[str]:
    return _read(process / "cmdline", _MOST_WORDS).decode(errors="replace").rstrip("\0").split("\0")


def _read(path: Path, most: int = _MOST_BYTES) -> bytes:
    """Return the first bytes of a file, by system calls: `Path.open` takes ten times as long."""
    handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        data = os.read(handle, min(most, _CHUNK))
        while data and len(data) < most and (more := os.read(handle, _CHUNK)):
            data += more
        return data[:most]
    finally:
        os.close(handle)
