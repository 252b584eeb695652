"""A stand-in for a GPU that real containers share, and NVML's answers of it.

    python -m helpers.gpu_stand_in DIR                 run the GPU: DIR/gpu.sock, DIR/use.json
    python -m helpers.gpu_stand_in DIR dl-probe -i 2   run dl-probe, which finds it by a faked NVML

Programs in containers (`gpu_client`) reach it by its socket, in a bind mount of DIR. They ask for
kernels of some milliseconds; a program's kernels run one after the other. Kernels of several run at
once, each at its part of the speed, as where a driver gives short slices of time in turn: whoever
is alone has it all. A program that is paused finishes what it has asked for, and asks for no more.
What each process has used is told by its id on the host. The time that passes while the server
itself waits for a CPU counts as the GPU's: kernels end when they should, and are told later.
"""

import json
import os
import selectors
import socket
import struct
import subprocess
import sys
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from probe.gpu.fake_nvml import FakeNvml, Gpu

UUID = "GPU-stand-in"
MEMORY = 80 << 30
HELD = 2 << 30
"""Bytes of the GPU, and of them those that each program holds."""

ENVIRONMENT = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[1])}
"""The environment of processes that find this module."""

TICK_S, KEPT = 0.2, 50
"""How often the use of the GPU is written down, and how many of these are kept."""


@dataclass(slots=True)
class Program:
    """A process that uses the GPU: its kernels (s) that wait, and what it has used (s)."""

    pid: int
    kernels: deque[float] = field(default_factory=deque)
    used: float = 0.0
    told: float = 0.0
    rest: bytes = b""


class StandIn:
    """The GPU. `advance` lets time pass; nothing else does."""

    def __init__(self) -> None:
        self.programs: dict[Any, Program] = {}

    def advance(self, span_s: float) -> list[Any]:
        """Let the kernels of all programs run; return the keys of those that end, in order."""
        ended = []
        while active := [key for key, one in self.programs.items() if one.kernels]:
            first = min(self.programs[key].kernels[0] for key in active)
            step = min(first, span_s / len(active))
            span_s -= step * len(active)
            for key in active:
                one = self.programs[key]
                one.used += step
                one.kernels[0] -= step
                if one.kernels[0] <= 1e-9:
                    one.kernels.popleft()
                    ended.append(key)
            if span_s <= 1e-9:
                break
        return ended

    def next_end(self) -> float | None:
        active = [one.kernels[0] for one in self.programs.values() if one.kernels]
        return min(active) * len(active) if active else None


def serve(directory: Path) -> None:
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(str(directory / "gpu.sock"))
    (directory / "gpu.sock").chmod(0o666)
    listener.listen(64)
    listener.setblocking(False)
    gpu, samples = StandIn(), deque[tuple[int, dict[int, float]]](maxlen=KEPT)
    waiting = selectors.DefaultSelector()
    waiting.register(listener, selectors.EVENT_READ)
    looked = ticked = time.monotonic()
    while True:
        ends = gpu.next_end()
        left = ticked + TICK_S - time.monotonic()
        events = waiting.select(max(0.0, left if ends is None else min(ends, left)))
        now = time.monotonic()
        for connection in gpu.advance(now - looked):
            with suppress(OSError):
                connection.sendall(b".")
        looked = now
        for key, _ in events:
            if key.fileobj is listener:
                connection, _ = listener.accept()
                pid, _, _ = struct.unpack(
                    "3i", connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12)
                )
                gpu.programs[connection] = Program(pid)
                waiting.register(connection, selectors.EVENT_READ)
            elif not _receive(gpu.programs[key.fileobj], key.fileobj):
                waiting.unregister(key.fileobj)
                del gpu.programs[key.fileobj]
        if now - ticked >= TICK_S:
            _note(gpu, samples, now - ticked, directory)
            ticked = now


def _receive(program: Program, connection: Any) -> bool:
    """Take in the kernels that a program asks for, as lines of milliseconds. Tell if it lives."""
    try:
        data = connection.recv(1 << 16)
    except OSError:
        return False
    *lines, program.rest = (program.rest + data).split(b"\n")
    program.kernels.extend(float(line) / 1000 for line in lines)
    return bool(data)


def _note(gpu: StandIn, samples: deque[Any], span_s: float, directory: Path) -> None:
    parts: dict[int, float] = {}
    for one in gpu.programs.values():
        parts[one.pid] = parts.get(one.pid, 0.0) + (one.used - one.told) / span_s
        one.told = one.used
    samples.append((round(time.time() * 1e6), parts))
    found = {"samples": list(samples), "used": {one.pid: one.used for one in gpu.programs.values()}}
    new = directory / "use.json.new"
    new.write_text(json.dumps(found))
    new.replace(directory / "use.json")


@contextmanager
def stand_in(directory: Path) -> Iterator[Path]:
    """Run the GPU in a process of its own, and return where it is."""
    directory.mkdir(parents=True, exist_ok=True)
    directory.chmod(0o755)
    command = [sys.executable, "-m", "helpers.gpu_stand_in", str(directory)]
    gpu = subprocess.Popen(command, env=ENVIRONMENT)
    try:
        until = time.monotonic() + 30
        while not (directory / "gpu.sock").exists() and time.monotonic() < until:
            time.sleep(0.01)
        yield directory
    finally:
        gpu.kill()
        gpu.wait()


def binds(directory: Path) -> list[str]:
    """Return the bind mounts with which the image of busybox alone runs `client` on the GPU: that
    of the socket, and this Python with its libraries."""
    libraries = [one for one in ("/lib", "/lib64", "/usr/lib") if Path(one).is_dir()]
    own = [f"{one}:{one}:ro" for one in dict.fromkeys((sys.base_prefix, *libraries))]
    return [f"{directory}:/gpu", f"{Path(__file__).parent}:/helpers:ro", *own]


def client(role: str, **options: float) -> str:
    """Return shell that runs `gpu_client`."""
    python = f"{sys.base_prefix}/bin/python3"
    words = " ".join(f"--{name} {value:g}" for name, value in options.items())
    return f"exec {python} -S -E /helpers/gpu_client.py /gpu/gpu.sock {role} {words}"


def probe_command(directory: Path) -> list[str]:
    """Return the command that runs dl-probe on the GPU; its options follow. It needs
    `ENVIRONMENT`."""
    return [sys.executable, "-m", "helpers.gpu_stand_in", str(directory), "dl-probe"]


def used(directory: Path) -> dict[int, float]:
    try:
        found = json.loads((directory / "use.json").read_text())["used"]
    except FileNotFoundError:
        return {}
    return {int(pid): seconds for pid, seconds in found.items()}


class StandInNvml(FakeNvml):
    """NVML on a host with the stand-in in a directory as its GPU. Each joule is a second of it."""

    def __init__(self, directory: Path) -> None:
        super().__init__([Gpu(UUID, memory=(MEMORY, 0))])
        self._directory = directory

    def __getattr__(self, name: str) -> Callable[..., Any]:
        if name in ("nvmlDeviceGetCount", "nvmlDeviceGetMemoryInfo"):
            self._refresh()
        return super().__getattr__(name)

    def _refresh(self) -> None:
        (gpu,) = self.gpus
        with suppress(FileNotFoundError):
            found = json.loads((self._directory / "use.json").read_text())
            gpu.processes = {int(pid): HELD for pid in found["used"]}
            gpu.memory = MEMORY, HELD * len(gpu.processes)
            gpu.samples = [
                (int(pid), at, min(100, round(100 * part)))
                for at, parts in found["samples"]
                for pid, part in parts.items()
            ]
            totals = [sum(parts.values()) for _, parts in found["samples"][-5:]]
            gpu.utilization = min(100, round(100 * sum(totals) / max(1, len(totals))))
            gpu.energy_mj = round(1000 * sum(found["used"].values()))


def probe(directory: Path, arguments: list[str]) -> None:
    """Run dl-probe on a host with the stand-in as its GPU."""
    sys.modules["pynvml"] = StandInNvml(directory)  # type: ignore[assignment]
    from dltools.cli.probe import main
    from dltools.probe.gpu import gpu_rows

    gpu_rows.driver_present = lambda: True
    sys.argv = ["dl-probe", *arguments]
    main()


if __name__ == "__main__":
    folder, *more = sys.argv[1:]
    if more:
        probe(Path(folder), more[1:])
    else:
        serve(Path(folder))
