"""Cgroups that the tests make themselves, on version 1 or 2: plain processes, and no engine."""

import os
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

from contract.subject import Job, Relay, Subject, Traits
from helpers.containers import PATIENCE, eventually

from dltools.engine.address import Address
from dltools.engine.interface import Capabilities
from dltools.engine.registry import open_engine

_CAN = Capabilities(creates=False)
TRAITS = Traits(_CAN, tells_exit_codes=False, stamps_lines=False)
CGROUPS = Path("/sys/fs/cgroup")
_V1 = ("cpu", "cpuset", "cpuacct", "freezer", "memory", "pids")
_KERNEL = (
    *("cpu.shares", "cpu.cfs_quota_us", "cpu.cfs_period_us", "cpu.cfs_burst_us"),
    *("cpu.max", "cpu.max.burst", "cpu.weight", "cpuset.cpus"),
)


@dataclass
class _Job:
    id: str
    name: str
    script: str
    folders: tuple[Path, ...]
    log: Path
    first: subprocess.Popen[bytes] | None = None

    def begin(self) -> None:
        files = " ".join(f"{folder}/cgroup.procs" for folder in self.folders)
        enter = f'for file in {files}; do echo $$ >$file; done; exec busybox sh -c "$0"'
        with self.log.open("ab") as log:
            words = ["sh", "-c", enter, self.script]
            self.first = subprocess.Popen(
                words, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True
            )
        eventually(lambda: _command(self.first).startswith(b"busybox"))

    @property
    def pids(self) -> list[int]:
        with suppress(OSError):
            return [int(one) for one in (self.folders[0] / "cgroup.procs").read_text().split()]
        return []

    def kernel(self) -> dict[str, str]:
        found = {
            name: (folder / name).read_text().strip()
            for folder in self.folders
            for name in _KERNEL
            if (folder / name).exists()
        }
        # The kernel takes no empty list back while there are processes.
        found["cpuset.cpus"] = found["cpuset.cpus"] or _all_cpus(self.folders[0])
        return found

    def record(self) -> Mapping[str, object]:
        return {}

    @property
    def is_frozen(self) -> bool:
        for folder in self.folders:
            with suppress(OSError):
                return (folder / "freezer.state").read_text().strip() == "FROZEN"
        return "frozen 1" in (self.folders[0] / "cgroup.events").read_text()

    def pause(self) -> None:
        self._freeze("FROZEN", "1")
        eventually(lambda: self.is_frozen)

    def unpause(self) -> None:
        self._freeze("THAWED", "0")
        eventually(lambda: not self.is_frozen)

    def _freeze(self, state: str, number: str) -> None:
        for folder in self.folders:
            for file, text in (("freezer.state", state), ("cgroup.freeze", number)):
                if (folder / file).exists():
                    (folder / file).write_text(text)

    def change_weight(self, weight: int) -> None:
        for folder in self.folders:
            for file, text in (("cpu.shares", weight), ("cpu.weight", weight // 10)):
                if (folder / file).exists():
                    (folder / file).write_text(str(text))

    def kill(self) -> None:
        for pid in self.pids:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        self.unpause()
        if self.first is not None:
            self.first.wait(10 * PATIENCE)
        eventually(lambda: not self.pids)

    def restart(self) -> None:
        self.kill()
        self.begin()


@dataclass
class _Subject:
    name: str
    traits: Traits
    url: str
    top: str
    logs: Path
    jobs: list[_Job] = field(default_factory=list)
    only: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        self.engine = open_engine(Address(self.url, "--host"))

    def start(self, script: str, name: str = "job", *, keeps_on: bool = False) -> Job:
        del keeps_on
        name = f"{name}{len(self.jobs)}"
        made = tuple(_made(hierarchy, self.top, name) for hierarchy in hierarchies(self.name))
        job = _Job("", f"{self.top}/{name}", script, made, self.logs / name)
        self.jobs.append(job)
        job.begin()
        job.id = self.engine.inspect(job.name).id
        return job

    def relay(self) -> AbstractContextManager[Relay]:
        raise AssertionError("nothing passes between the tools and the kernel")


def hierarchies(name: str) -> tuple[Path, ...]:
    """Return where cgroups are mounted. Raises `LookupError` where it is another version."""
    is_v2 = (CGROUPS / "cgroup.controllers").exists()
    if is_v2 != (name == "bare-v2"):
        raise LookupError(f"this machine has cgroup version {2 if is_v2 else 1}")
    if os.geteuid() or not os.access(CGROUPS, os.W_OK):
        raise LookupError("making cgroups needs root")
    return (CGROUPS,) if is_v2 else tuple(CGROUPS / one for one in _V1)


def _made(hierarchy: Path, top: str, name: str) -> Path:
    """Make the cgroup of a job. On version 1 its list of CPUs is empty at first, on version 2 it
    has the controllers that the cgroup above hands down."""
    if (hierarchy / "cgroup.subtree_control").exists():
        (hierarchy / top).mkdir(exist_ok=True)
        for folder in (hierarchy, hierarchy / top):
            (folder / "cgroup.subtree_control").write_text("+cpu +cpuset +memory +pids")
        # Where CPUs are emulated, and slow, the tools come before the jobs.
        (hierarchy / top / "cpu.weight").write_text("5")
    folder = hierarchy / top / name
    folder.mkdir(parents=True)
    for one in (folder.parent, folder) if (folder / "cpuset.mems").exists() else ():
        for file in ("cpuset.cpus", "cpuset.mems"):
            if (hierarchy / "cpuset.effective_cpus").exists():
                (one / file).write_text((hierarchy / file).read_text())
    return folder


def _all_cpus(folder: Path) -> str:
    return (folder.parent / "cpuset.cpus.effective").read_text().strip()


def _command(process: subprocess.Popen[bytes] | None) -> bytes:
    with suppress(OSError):
        return Path(f"/proc/{process.pid if process else 0}/cmdline").read_bytes()
    return b""


@contextmanager
def subject(name: str) -> Iterator[Subject]:
    found = hierarchies(name)
    if shutil.which("busybox") is None:
        raise LookupError("busybox is not there")
    top = f"dltools-contract-{os.getpid()}"
    with tempfile.TemporaryDirectory() as folder:
        made = _Subject(name, TRAITS, f"cgroup:/{top}/*", top, Path(folder))
        try:
            yield made
        finally:
            for job in made.jobs:
                job.kill()
            for hierarchy in found:
                _removed(hierarchy / top)


def _removed(folder: Path) -> None:
    until = time.monotonic() + 10 * PATIENCE
    while folder.is_dir() and time.monotonic() < until:
        with suppress(OSError):
            for one in [*folder.iterdir(), folder]:
                if one.is_dir():
                    one.rmdir()
