"""What jobs that wait cost the first in line, at each weight, with cpu.idle, and paused.

    python tests/bench/contention.py [--threads 2] [--waiting 1,2,4,5] [--arms 10,2,idle,paused]

Starts trainings of samples/torch (image dltools-torch), writes weights into the kernel's files of
their cgroups (needs root), counts steps of the optimizer, and removes the containers. The first job
has the default weight. An arm may name several weights, 20/10: the last one is for all further
jobs. Prints steps per second as ratios to one job alone: of the first job, and of all. Nothing is
asserted. Take a machine that does nothing else; a window in which others used the CPUs is repeated.
"""

import argparse
import mmap
import os
import struct
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from dltools.engine import cgroup
from dltools.engine.kernel_scales import weight_to_v2

IMAGE = "dltools-torch"
LABEL = "dltools-contention=1"
JOB = """
import mmap, runpy, struct, sys, torch
with open(sys.argv.pop(1), "r+b") as file:
    cell = mmap.mmap(file.fileno(), 8)
class Adam(torch.optim.Adam):
    def step(self, *rest):
        struct.pack_into("q", cell, 0, struct.unpack_from("q", cell)[0] + 1)
        return super().step(*rest)
torch.optim.Adam = Adam
runpy.run_path("/usr/local/bin/train", run_name="__main__")
"""


def docker(*words: str) -> str:
    done = subprocess.run(["docker", *words], capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(f"docker {words[0]}: {done.stderr.strip()}")
    return done.stdout.strip()


def logs(id_: str) -> str:
    done = subprocess.run(["docker", "logs", id_], capture_output=True, text=True, check=False)
    return done.stdout + done.stderr


@dataclass
class Job:
    """A training that counts its steps in shared memory."""

    cell: mmap.mmap
    group: cgroup.Cgroup

    @property
    def steps(self) -> int:
        return int(struct.unpack_from("q", self.cell)[0])

    @property
    def cpu_seconds(self) -> float:
        return self.group.usage().cpu.seconds or 0.0

    @property
    def version(self) -> int:
        found = self.group.directory("cpu")
        return found.version if found else 1

    def write(self, controller: str, name: str, value: object) -> None:
        found = self.group.directory(controller)
        if found is None:
            sys.exit("the cgroup of a container is not visible here")
        (found.path / name).write_text(str(value))

    def pause(self, wanted: bool) -> None:
        if self.version == 1:
            self.write("freezer", "freezer.state", "FROZEN" if wanted else "THAWED")
        else:
            self.write("cpu", "cgroup.freeze", int(wanted))

    def set_level(self, level: str) -> None:
        """Set a weight in Docker's shares, `idle`, or `paused`."""
        self.pause(level == "paused")
        self.write("cpu", "cpu.idle", 0)  # while it is 1, the kernel refuses a weight
        weight = int(level) if level.isdigit() else 1024
        if self.version == 1:
            self.write("cpu", "cpu.shares", weight)
        else:
            self.write("cpu", "cpu.weight", weight_to_v2(weight))
        if level == "idle":
            self.write("cpu", "cpu.idle", 1)


@contextmanager
def jobs(count: int, options: argparse.Namespace) -> Iterator[list[Job]]:
    started: list[str] = []
    with tempfile.TemporaryDirectory() as folder:
        try:
            found = []
            for number in range(count):
                path = Path(folder) / str(number)
                path.write_bytes(bytes(8))
                words = f"run -d --label {LABEL} -v {folder}:/cells --entrypoint python3".split()
                words += [word for setting in options.env for word in ("--env", setting)]
                work = f"/cells/{number} --silent --epochs 1000000 --model {options.model}"
                work += f" --batch {options.batch} --threads {options.threads} --seed {number}"
                started.append(docker(*words, IMAGE, "-c", JOB, *work.split()))
                found.append(_trains(started[-1], path))
            yield found
        finally:
            if started:
                docker("rm", "-f", *started)


def _trains(id_: str, path: Path) -> Job:
    pid = int(docker("inspect", "-f", "{{.State.Pid}}", id_))
    group = cgroup.of_process(pid, cgroup.mounts())
    if group is None:
        sys.exit("the cgroup of a container is not visible here")
    with path.open("r+b") as file:
        job = Job(mmap.mmap(file.fileno(), 8), group)
    until = time.monotonic() + 60
    while job.steps < 10:
        if time.monotonic() > until:
            sys.exit(f"a job does not train: {logs(id_)}")
        time.sleep(0.05)
    job.pause(True)
    return job


def rates(running: list[Job], levels: list[str], options: argparse.Namespace) -> list[float]:
    """Return the steps per second of each job at its level, from the attempt in which others used
    the least CPU time: the first one in which they used next to none."""
    best = (-1.0, [0.0])
    wanted = min(os.cpu_count() or 1, options.threads * (len(levels) - levels.count("paused")))
    for _ in range(options.attempts):
        best = max(best, attempt(running, levels, options))
        if best[0] >= options.undisturbed * wanted:
            break
    return best[1]


def attempt(
    running: list[Job], levels: list[str], options: argparse.Namespace
) -> tuple[float, list[float]]:
    """Return the CPUs that all jobs used together, and the steps per second of each."""
    for job, level in zip(running, levels, strict=True):
        job.set_level(level)
    time.sleep(options.settle)
    counts, used = [job.steps for job in running], [job.cpu_seconds for job in running]
    begun = time.monotonic()
    time.sleep(options.seconds)
    taken = time.monotonic() - begun
    steps = [(job.steps - count) / taken for job, count in zip(running, counts, strict=True)]
    cpus = (sum(job.cpu_seconds for job in running) - sum(used)) / taken
    for job in running:
        job.pause(True)
    return cpus, steps


def levels_of(arm: str, waiting: int) -> list[str]:
    named = arm.split("/")
    return ["1024", *(named[min(number, len(named) - 1)] for number in range(waiting))]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--waiting", default="1,2,4,5")
    parser.add_argument("--arms", default="1024,10,2,10/2,idle,paused")
    parser.add_argument("--env", action="append", default=[], metavar="NAME=VALUE")
    parser.add_argument("--model", default="gru")
    parser.add_argument("--batch", type=int, default=64)
    parser.add_argument("--seconds", type=float, default=4.0)
    parser.add_argument("--attempts", type=int, default=4)
    parser.add_argument("--undisturbed", type=float, default=0.96)
    parser.add_argument("--settle", type=float, default=0.7)
    options = parser.parse_args()
    counts = [int(word) for word in options.waiting.split(",")]
    arms = options.arms.split(",")
    with jobs(1 + max(counts), options) as found:
        alone = rates(found[:1], ["1024"], options)[0]
        version = found[0].version
        print(f"{options.model}, {options.threads} threads each, batches of {options.batch}")
        print(f"cgroup version {version}; {alone:.1f} steps/s alone")
        print("first in line, and all jobs, of what one job does alone:")
        print(f"{'waiting':>8}" + "".join(f"{arm:>16}" for arm in arms), flush=True)
        for count in counts:
            print(f"{count:8}", end="", flush=True)
            for arm in arms:
                got = rates(found[: count + 1], levels_of(arm, count), options)
                print(f"{got[0] / alone:>8.2f}{sum(got) / alone:>8.2f}", end="", flush=True)
            print(flush=True)
        again = rates(found[:1], ["1024"], options)[0]
        print(f"alone again: {again / alone:.2f}")


if __name__ == "__main__":
    main()
