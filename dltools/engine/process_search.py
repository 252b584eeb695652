"""What the processes of a container are: one look at their maps, command lines and environments.

It finds runtimes of deep learning and of OpenMP, what else starts as many threads as the host has
CPUs, programs in which a person works (notebooks, editors, ssh servers), and the distributed job
that the processes are members of.

Maps are long and costly to read, so that all that is looked for in them is looked for at once, and
only once in processes that a training has made by fork, as data loaders are. Of an environment only
known variables are kept, and of those of OpenMP only values that it knows: a process may have
secrets in it.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from dltools.engine.distributed import Membership, membership, variables_in
from dltools.engine.kernel_reading import ROOT

_Libraries = tuple[tuple[str, bytes, re.Pattern[bytes]], ...]
"""Libraries: a name, bytes that maps with it have, and its files."""


def _libraries(*libraries: tuple[str, bytes, bytes]) -> _Libraries:
    return tuple(
        (name, part, re.compile(rb"/" + pattern + rb"[^/\n]*\.so\b[^/\n]*$", re.MULTILINE))
        for name, part, pattern in libraries
    )


DEEP_LEARNING = _libraries(
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
"""The runtimes of deep learning. An OpenMP runtime alone is none: a database may have one."""

THREAD_POOLS = _libraries(
    ("libopenblas", b"openblas", rb"lib(?:scipy_)?openblas"),
    ("libmkl", b"libmkl", rb"libmkl_(?:rt|core|intel_thread|gnu_thread|tbb_thread)(?=[-.])"),
    ("libtbb", b"libtbb", rb"libtbb(?:12)?(?=[-.])"),
    ("polars", b"polars", rb"_?polars(?:_[a-z_]+)?(?=[-.])"),
    ("rayon", b"tokenizers", rb"tokenizers(?=[-.])"),
    ("llama.cpp", b"libllama", rb"libllama(?=[-.])"),
    ("llama.cpp", b"libggml", rb"libggml(?:-[a-z0-9]+)*(?=[-.])"),
)
"""What starts threads, beside OpenMP, unless it is told how many."""

_INDUCTOR = "torch/_inductor/compile_worker"
"""The script of the processes in which PyTorch compiles."""

_WORKERS = re.compile(r"--workers=(\d{1,4})")
"""Their number, in the arguments of those that belong together."""

_LLAMA = re.compile(r"llama-(?:server|cli|bench|run|batched|perplexity|embedding)")

_OPENMP_VARIABLES = ("GOMP_SPINCOUNT", "KMP_BLOCKTIME", "OMP_NUM_THREADS", "OMP_WAIT_POLICY")

_OPENMP_RUNTIME = re.compile(rb"/lib(gomp|iomp5|omp)(?=[-.\d])[^/\n]*$", re.MULTILINE)
_OPENMP_VALUE = re.compile(rb"(?i)active|passive|infinit[ey]|\d[\d,]{0,30}[a-z]{0,2}")

_MOST_PROCESSES = 64
_MOST_BYTES = 4 << 20
_MOST_WORDS = 4096
_CHUNK = 1 << 16


@dataclass(frozen=True, slots=True)
class OpenMP:
    """What a container's processes use: "libgomp", or several joined by "+", and the variables that
    are set, "OMP_NUM_THREADS=2 OMP_WAIT_POLICY=passive"; None for none."""

    runtime: str | None = None
    settings: str | None = None


NO_OPENMP = OpenMP()


@dataclass(frozen=True, slots=True)
class Processes:
    """What is known of a container's processes."""

    openmp: OpenMP = NO_OPENMP
    """Their OpenMP runtimes and settings."""

    runtimes: tuple[str, ...] = ()
    """Their deep-learning runtimes, such as libtorch."""

    thread_pools: tuple[str, ...] = ()
    """What else starts threads in them, such as libopenblas, or processes that compute, and how
    many: inductor=32."""

    program: str = ""
    """The name of an interactive program among them, "" for none."""

    membership: Membership | None = None
    """The distributed job that they are members of, None for none."""

    is_readable: bool = True
    """Whether this user may look at them."""


def search(pids: Iterable[int], root: Path = ROOT, *, shares_network: bool = False) -> Processes:
    """Look at processes, the first 64 of them. The settings of OpenMP are those of the process with
    the most threads among those with such a runtime.

    `shares_network`: whether the container has the network of the host or of another container.
    """
    launched: list[tuple[dict[str, str], list[str]]] = []
    with_runtime: set[tuple[tuple[str, ...], bytes]] = set()  # their command lines and environments
    openmp: set[str] = set()
    deep: set[str] = set()
    pools: set[str] = set()
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
            pools |= _pools_of_program(command)
            maps = _read(process / "maps")
            pools |= libraries_in(maps, THREAD_POOLS)
            if runtimes := libraries_in(maps, DEEP_LEARNING):
                deep |= runtimes
                with_runtime.add(kind)
            loaded = openmp_runtimes_in(maps)
            if not loaded:
                continue
            threads = sum(1 for _ in (process / "task").iterdir())
            if threads > widest:
                widest, settings = threads, openmp_settings_in(environ)
            openmp |= loaded
        except PermissionError:
            is_readable = False
        except OSError:  # it has ended
            continue
    found_openmp = OpenMP("+".join(sorted(openmp)) or None, settings or None)
    member = membership(launched, shares_network=shares_network)
    together = {tuple(command) for _, command in launched}  # each rank's workers have one command
    if workers := sum(map(_compile_workers, together)):
        pools = pools - {"inductor"} | {f"inductor={workers}"}
    libraries = tuple(sorted(deep)), tuple(sorted(pools))
    return Processes(found_openmp, *libraries, program, member, is_readable)


def libraries_in(maps: bytes, libraries: _Libraries) -> set[str]:
    """Return the names of those of the libraries that are in the text of a /proc/PID/maps."""
    return {name for name, part, files in libraries if part in maps and files.search(maps)}


def _pools_of_program(command: Sequence[str]) -> set[str]:
    """Return what a program starts threads or processes with that its maps do not show."""
    pools = {"llama.cpp"} if _LLAMA.fullmatch(_program_name(command[0])) else set()
    return pools | ({"inductor"} if any(_INDUCTOR in word for word in command[:4]) else set())


def _compile_workers(command: Sequence[str]) -> int:
    """Return how many processes compile together, as a command line says; 0 if it is of none."""
    if not any(_INDUCTOR in word for word in command[:4]):
        return 0
    counts = (_WORKERS.fullmatch(word) for word in command)
    return next((int(count[1]) for count in counts if count), 0)


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


def openmp_runtimes_in(maps: bytes) -> set[str]:
    """Return the OpenMP runtimes in the text of a /proc/PID/maps."""
    return {f"lib{match[1].decode()}" for match in _OPENMP_RUNTIME.finditer(maps)}


def openmp_settings_in(environ: bytes) -> str:
    """Return the variables of OpenMP that are set in the bytes of a /proc/PID/environ, by name. A
    value that OpenMP does not know is shown as "?"."""
    settings: dict[str, str] = {}
    for entry in environ.split(b"\0"):
        name, _, value = entry.partition(b"=")
        if name.decode("ascii", "replace") in _OPENMP_VARIABLES:
            value = b"".join(value.split())
            shown = value.decode() if _OPENMP_VALUE.fullmatch(value) else "?"
            settings.setdefault(name.decode(), shown)
    return " ".join(f"{name}={value}" for name, value in sorted(settings.items()))


_INTERACTIVE = re.compile(
    r"jupyter-(?:lab|labhub|notebook|server)|jupyterhub-singleuser|ipykernel_launcher"
    r"|start-(?:notebook|singleuser)|(?:code|openvscode)-server|rserver|rstudio(?:-server)?|sshd"
)

_STARTERS = re.compile(
    r"(?:ba|da|z|a)?sh|busybox|(?:python|pypy)[\d.]*|docker-init|dumb-init|tini"
    r"|env|exec|node|nohup|start|sudo"
)
"""Programs whose first argument that is no option is the program that counts."""

_SCRIPT_ENDING = re.compile(r"\.(py|sh)$")
_ASSIGNMENT = re.compile(r"\w+=")
_MOST_LEADING_WORDS = 32


def interactive_program(words: Sequence[str]) -> str:
    """Return the name of the interactive program that a command line starts, "" if it starts none.

    A name among the arguments of another program does not count. Of a shell's script the first
    command does: what it starts later is a process of its own.
    """
    rest = islice((part for word in words for part in word.split()), _MOST_LEADING_WORDS)
    for word in rest:
        if word.startswith("-") or _ASSIGNMENT.match(word):
            continue
        name = _program_name(word)
        if name == "jupyter":
            name = f"jupyter-{next((one for one in rest if not one.startswith('-')), '')}"
        if _INTERACTIVE.fullmatch(name):
            return name
        if not _STARTERS.fullmatch(name):
            return ""
    return ""


def _program_name(word: str) -> str:
    """Return a program's name: of a path the last part; a server's title begins with "sshd: "."""
    words = word.split(maxsplit=1)
    first = words[0].rstrip(":") if words else ""
    return _SCRIPT_ENDING.sub("", first.rpartition("/")[2])
