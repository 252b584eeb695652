"""Slurm's jobs on this node, each as a container: seen by their cgroups, paused by Slurm alone.

A job is paused by `scontrol suspend`, which stops all its steps, and never by the freezer: a job
that is frozen behind Slurm's back cannot be cancelled, and Slurm drains the node. On version 1
Slurm gives its jobs no controller cpu, so that they have neither weight nor quota there. Their CPU
lists are Slurm's own on both versions.
"""

from __future__ import annotations

import pwd
import re
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from dltools.engine.address import Address
from dltools.engine.cgroup import with_those_below
from dltools.engine.cgroups.cgroup_engine import CgroupEngine
from dltools.engine.cgroups.cgroup_kind import CgroupKind, Naming
from dltools.engine.cgroups.cgroup_tree import CgroupTree, Process
from dltools.engine.freezer import FILES
from dltools.engine.interface import Capabilities, Container, RefusedError
from dltools.engine.kernel_reading import ROOT, read_text
from dltools.engine.patience import comes_true
from dltools.errors import ConfigError

PATTERNS = ("/slurm*/uid_*/job_*", "/system.slice/*slurmstepd.scope/job_*")
"""Where jobs are: on version 1, whose top has the node's name or not, and on version 2."""

_SLURMS_OWN = "slurmstepd"
_LIMITS = frozenset({"cpus", "weight"})
_STOPS_S, _LOOK_S = 5.0, 0.05
"""How long the processes of a job may take to stop (ours): Slurm asks them first (SIGTSTP), and
stops them a second later."""

_STOPPED = frozenset("TtD")
"""The letters of processes that stand still: D where they are frozen, and where they wait."""

_ANSWERS_S = 30.0
_UNUSUAL = re.compile(r"[^\w.+-]")
_LONGEST = 100


def check(address: Address) -> None:
    """Raise `ConfigError` if an address says more than that it is Slurm's."""
    if address.url != "slurm:":
        raise ConfigError(
            f"{address.said_by} {address.url!r}: nothing follows slurm:; to select containers, use "
            "--name or --label"
        )


def open_engine(address: Address, *_: object) -> CgroupEngine:
    """Look at the jobs of this node. Nothing is waited for."""
    check(address)
    return slurm_engine(logs=address.settings.get("logs"))


def slurm_engine(
    root: Path = ROOT, logs: Mapping[str, Sequence[str]] | None = None
) -> CgroupEngine:
    """Return the jobs of the Slurm whose node this machine is."""
    return CgroupEngine(PATTERNS, root, logs, SlurmJobs)


class SlurmJobs(CgroupKind):
    """Jobs of Slurm."""

    name = "slurm"

    def __init__(self, tree: CgroupTree) -> None:
        super().__init__(tree)
        self._names: dict[str, Naming] = {}

    def is_owned(self, path: str) -> bool:
        """Return False: Slurm's jobs are what this engine shows."""
        return False

    def naming(self, path: str, processes: Sequence[Process]) -> Naming:
        """Return the name that its user has given a job, with its number."""
        number = job_number(path)
        earlier = self._names.get(path)
        if earlier is not None:
            return earlier
        main = self.main_process(processes)
        variables = self._variables(main.pid) if main else {}
        job = variables.get("SLURM_JOB_NAME", "")
        user = self._user(main)
        name = f"{_UNUSUAL.sub('_', job)[:_LONGEST]}-{number}" if job else f"job-{number}"
        labels = {
            "slurm.job": number,
            "slurm.user": user,
            "slurm.partition": variables.get("SLURM_JOB_PARTITION", ""),
        }
        naming = Naming(name, {key: text for key, text in labels.items() if text})
        if job:
            self._names[path] = naming
        return naming

    def main_process(self, processes: Sequence[Process]) -> Process | None:
        """Return the oldest process that is not Slurm's own."""
        return next((process for process in processes if process.name != _SLURMS_OWN), None)

    def is_paused(self, path: str, processes: Sequence[Process]) -> bool:
        """Tell whether all processes of a job are stopped. Slurm's own processes go on."""
        states = {process.state for process in processes if process.name != _SLURMS_OWN}
        if not states or not states <= _STOPPED:
            return False
        return "D" not in states or self._is_frozen_by_slurm(path)

    def _is_frozen_by_slurm(self, path: str) -> bool:
        """Tell whether Slurm has frozen a step of a job, having stopped it."""
        directory = self.tree.freezer(path)
        folders = with_those_below(directory.path) if directory else ()
        texts = (read_text(f"{folder}/{FILES[1][0]}") for folder in folders)
        return any(text.strip() not in ("", "THAWED") for text in texts)

    def can(self, path: str) -> Capabilities:
        """Return what can be done with a job."""
        capabilities = super().can(path)
        return Capabilities(capabilities.limits & _LIMITS, pauses=_has_scontrol(), creates=False)

    def can_at_all(self) -> Capabilities:
        """Return what can be done with jobs here."""
        is_v1 = any(mount.controllers for mount in self.tree.mounts)
        why = "Slurm keeps the CPU lists of its jobs"
        if is_v1:
            why = "Slurm gives its jobs no controller cpu on cgroup version 1, and keeps CPU lists"
        if not _has_scontrol():
            why = "scontrol is not in PATH, and only Slurm may pause its jobs"
        limits = frozenset() if is_v1 else _LIMITS
        return Capabilities(limits, _has_scontrol(), creates=False, why=why)

    def log_files(self, container: Container) -> Sequence[str]:
        """Return the files into which a job's processes write, else that of its StdOut. It has none
        where `srun` prints what the job writes."""
        files = super().log_files(container)
        if files or container.state == "exited":
            return files
        with suppress(RefusedError):
            path = self._described(job_number(container.cgroup_path)).get("StdOut", "")
            return [path] if path and path != "/dev/null" else []
        return []

    def as_told(self, container: Container) -> Container:
        """Ask Slurm whether a job is suspended: it stops the processes a moment later; and on how
        many nodes it runs."""
        if container.state == "running":
            with suppress(RefusedError):
                number = job_number(container.cgroup_path)
                described = self._described(number)
                refusal = container.refuses.pause or _pause_refusal(number, described)
                is_suspended = described.get("JobState") == "SUSPENDED"
                state = "paused" if is_suspended else container.state
                refuses = replace(container.refuses, pause=refusal)
                return replace(container, state=state, refuses=refuses)
        return container

    def pause(self, path: str) -> None:
        """Suspend a job, and wait until its processes have stopped."""
        number = job_number(path)
        if refusal := _pause_refusal(number, self._described(number)):
            raise RefusedError(refusal)
        _scontrol("suspend", number)
        self._wait(path, is_paused=True)

    def unpause(self, path: str) -> None:
        """Resume a job, and wait until its processes go on."""
        _scontrol("resume", job_number(path))
        self._wait(path, is_paused=False)

    def _wait(self, path: str, *, is_paused: bool) -> None:
        def is_done() -> bool:
            processes = self.tree.processes(path)
            return not processes or self.is_paused(path, processes) == is_paused

        comes_true(is_done, _STOPS_S, _LOOK_S)

    def _described(self, number: str) -> dict[str, str]:
        """Return what Slurm says of a job. Raises `RefusedError`."""
        words = _scontrol("show", "job", number, "-o").split()
        return dict(word.split("=", 1) for word in words if "=" in word)

    def _variables(self, pid: int) -> dict[str, str]:
        entries = self.tree.environ(pid).decode(errors="replace").split("\0")
        return dict(entry.split("=", 1) for entry in entries if entry.startswith("SLURM_JOB_"))

    def _user(self, main: Process | None) -> str:
        """Return who runs a job, "" where that is unknown."""
        with suppress(OSError, KeyError):
            pid = main.pid if main else 0
            return pwd.getpwuid((self.tree.root / f"proc/{pid}").stat().st_uid).pw_name
        return ""


def job_number(path: str) -> str:
    """Return the number of the job whose cgroup is at a path."""
    return path.rpartition("/job_")[2]


def _pause_refusal(number: str, described: Mapping[str, str]) -> str:
    """Return why a job must not be suspended, given what Slurm says of it, "" if it may be."""
    nodes = described.get("NumNodes", "1")
    if nodes == "1":
        return ""
    return f"job {number} runs on {nodes} nodes: suspending it would stop it on all"


def _has_scontrol() -> bool:
    return shutil.which("scontrol") is not None


def _scontrol(*words: str) -> str:
    """Run scontrol and return what it prints. Raises `RefusedError` with its complaint."""
    try:
        done = subprocess.run(
            ["scontrol", *words], capture_output=True, text=True, timeout=_ANSWERS_S, check=False
        )
    except FileNotFoundError as error:
        raise RefusedError("scontrol is not in PATH: jobs of Slurm are paused by it") from error
    except subprocess.TimeoutExpired as error:
        raise RefusedError(f"scontrol {words[0]} has not answered for {_ANSWERS_S:g} s") from error
    if done.returncode:
        said = (done.stderr or done.stdout).strip().splitlines()
        raise RefusedError(f"scontrol {words[0]}: {said[0] if said else done.returncode}")
    return done.stdout
