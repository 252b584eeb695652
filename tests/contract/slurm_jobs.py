"""Jobs of a real Slurm, inside `tests/engines/slurm run`."""

import os
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

from contract.subject import Job, Relay, Subject, Traits
from helpers.containers import eventually

from dltools.engine.address import Address
from dltools.engine.interface import Capabilities, Engine
from dltools.engine.registry import open_engine

_CAN = Capabilities(
    frozenset(),
    creates=False,
    why="Slurm gives its jobs no controller cpu on cgroup version 1, and keeps CPU lists",
)
TRAITS = Traits(_CAN, restarts=False, tells_exit_codes=False, stamps_lines=False)


@dataclass(frozen=True)
class _Job:
    id: str
    name: str
    number: str
    engine: Engine

    def kernel(self) -> dict[str, str]:
        return {}

    def record(self) -> Mapping[str, object]:
        done = _run("scontrol", "show", "job", self.number, "-o").split()
        kept = ("CPUs/Task=", "NumCPUs=", "Requeue=", "Nice=")
        return {"restart": "", "words": [word for word in done if word.startswith(kept)]}

    @property
    def pids(self) -> list[int]:
        found = Path("/sys/fs/cgroup/freezer").glob(f"slurm_*/uid_*/job_{self.number}/step_*")
        texts = ((one / "cgroup.procs").read_text() for one in found)
        return [int(pid) for text in texts for pid in text.split()]

    @property
    def is_frozen(self) -> bool:
        states = []
        for pid in self.pids:
            with suppress(OSError):
                text = Path(f"/proc/{pid}/stat").read_text()
                states.append(text.rpartition(")")[2].split()[0])
        return bool(states) and set(states) <= {"T", "D"}  # D: Slurm has frozen it as well

    def pause(self) -> None:
        _run("scontrol", "suspend", self.number)
        eventually(lambda: self.is_frozen)

    def unpause(self) -> None:
        _run("scontrol", "resume", self.number)
        eventually(lambda: not self.is_frozen)

    def change_weight(self, weight: int) -> None:
        raise AssertionError(f"jobs have no weight {weight}")

    def kill(self) -> None:
        for pid in self.pids:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)

    def restart(self) -> None:
        raise AssertionError("a job that starts again is another one")


@dataclass
class _Subject:
    name: str
    traits: Traits
    folder: Path
    url: str = "slurm:"
    only: tuple[str, ...] = ()
    numbers: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.engine = open_engine(Address(self.url, "--host"))

    def start(self, script: str, name: str = "job", *, keeps_on: bool = False) -> Job:
        del keeps_on
        number = len(self.numbers)
        program = self.folder / f"job{number}"
        program.write_text(f"#!/bin/busybox sh\n{script}\n")
        program.chmod(0o755)
        words = ("sbatch", "--parsable", "-J", name, "-o", str(self.folder / f"{number}.log"))
        every_cpu = ("-c", str(os.cpu_count() or 1))  # else each job has a CPU of its own
        job = _run(*words, *every_cpu, str(program)).strip()
        self.numbers.append(job)
        named = f"{name}-{job}"
        ids = eventually(lambda: [one.id for one in self.engine.containers() if one.name == named])
        return _Job(ids[0], named, job, self.engine)

    def relay(self) -> AbstractContextManager[Relay]:
        raise AssertionError("scontrol speaks to Slurm")


@contextmanager
def subject(name: str) -> Iterator[Subject]:
    """Give the Slurm that the environment names."""
    if "SLURM_CONF" not in os.environ or shutil.which("sbatch") is None:
        raise LookupError(f"{name} does not run here: see tests/engines/slurm")
    with tempfile.TemporaryDirectory() as folder:
        made = _Subject(name, TRAITS, Path(folder))
        try:
            yield made
        finally:
            for number in made.numbers:
                with suppress(subprocess.CalledProcessError):
                    _run("scontrol", "resume", number)
                with suppress(subprocess.CalledProcessError):
                    _run("scancel", "--signal=KILL", "--full", number)
                with suppress(subprocess.CalledProcessError):
                    _run("scancel", number)
            eventually(lambda: not _run("squeue", "--noheader").strip())


def _run(*words: str) -> str:
    return subprocess.run(words, check=True, capture_output=True, text=True, timeout=60).stdout
