"""Live runs against their simulation: completion times of real trainings, and the simulator's from
the same job list.

    python tests/bench/reality.py [SECONDS BETWEEN ARRIVALS [JOB ...]]

Needs what live.py needs. Each kind of job first runs alone: that tells its start-up, its work and
its curve. Then all run together, first under Docker alone: that tells how much such threads lose
to each other (spin), so that this row says nothing of the simulator. The other rows do. Prints;
nothing is asserted.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from statistics import fmean, median

sys.path.insert(0, str(Path(__file__).parent))

from live import EPOCHS, ROOT, docker, lasted, run

from dltools.plan.policy import registry
from dltools.plan.policy.parameters import build
from dltools.plan.realisation.mode import Mode, RealisationOptions
from dltools.sim.curve import LearningCurve
from dltools.sim.simulation import Simulation
from dltools.sim.workload import HostSpec, Job, workload_of

LONGER = {"gru": 22, "vae": 38, "cnn": 21}
"""Epochs: works that differ, so that the order of the ends is clear."""

RUNS: tuple[tuple[str, dict[str, str], str | None], ...] = (
    ("noop", {}, None),
    ("flowcon", {"itval": "5"}, "quota"),
    ("flowcon", {"itval": "5"}, "priority"),
    ("srtf", {"itval": "2"}, "priority"),
    ("srtf", {"itval": "2"}, "rotate"),
)


def alone(job: str) -> Job:
    """Run a job alone, and a job of one epoch; return what it is to the simulator."""
    times = {}
    table: tuple[tuple[float, float], ...] = ()
    for epochs in (1, EPOCHS[job]):
        name = docker("run", "-d", "dltools-torch", "--model", job, "--threads", "2",
                      "--epochs", str(epochs))  # fmt: skip
        docker("wait", name)
        times[epochs] = lasted(name)
        losses = re.findall(r"^epoch (\d+) loss (\S+)", docker("logs", name), re.M)
        table = tuple((int(epoch) / epochs, float(loss)) for epoch, loss in losses)
        docker("rm", "-f", name)
    epoch = (times[EPOCHS[job]] - times[1]) / (EPOCHS[job] - 1)
    cpus = min(2, os.cpu_count() or 1)
    return Job(job, work=epoch * EPOCHS[job] * cpus, threads=2, epochs=EPOCHS[job],
               startup=max(0.0, times[1] - epoch),
               curve=LearningCurve("loss", "points", table=table))  # fmt: skip


def spin_of(jobs: list[Job], live: dict[str, float]) -> float:
    """Return the spin with which the simulator takes as long as Docker alone, in the mean."""
    low, high = 0.0, 1.0
    for _ in range(30):
        middle = (low + high) / 2
        found = simulated([replace(job, spin=middle) for job in jobs], "noop", {}, None)
        low, high = (
            (middle, high) if fmean(found.values()) < fmean(live.values()) else (low, middle)
        )
    return low


def simulated(
    jobs: list[Job], policy: str, given: dict[str, str], mode: str | None
) -> dict[str, float]:
    """Return the completion times from start."""
    found = registry.get(policy, [])
    workload = workload_of(jobs, [HostSpec("n", float(os.cpu_count() or 1))], "live")
    options = RealisationOptions(Mode(mode) if mode else Mode.WEIGHT)
    made = Simulation(workload, found, build(found.parameters, given), options, clairvoyant=True)
    return {result.name: result.completion or 0.0 for result in made.run()}


def main() -> None:
    """Print the table."""
    apart = float(sys.argv[1]) if len(sys.argv) > 1 else 8.0
    EPOCHS.update(LONGER)
    names = sys.argv[2:] or ["vae", "gru", "cnn"]
    subprocess.run([ROOT / "samples/torch/build"], check=True)
    alone(names[0])  # so that no later run pays for a cold cache
    kinds = {name: alone(name) for name in dict.fromkeys(names)}
    for name, job in kinds.items():
        print(f"{name}: start-up {job.startup:.1f} s, {job.work:.1f} CPU s of work")
    jobs = [replace(kinds[name], name=f"{number} {name}", arrival=apart * (number - 1))
            for number, name in enumerate(names, 1)]  # fmt: skip
    print(f"{'':28s}{'job':>10s}{'live, s':>10s}{'sim., s':>10s}{'error':>10s}")
    errors: list[float] = []
    for policy, given, mode in RUNS:
        sets = "".join(f" --set {key}={value}" for key, value in given.items())
        live = run(policy + sets, mode, apart, names)
        live.pop("makespan")
        if mode is None:
            spin = spin_of(jobs, live)
            jobs = [replace(job, spin=spin) for job in jobs]
            print(f"spin {spin:.2f}")
        found = simulated(jobs, policy, given, mode)
        for name, seconds in live.items():
            error = found[name] / seconds - 1
            if mode is not None:
                errors.append(abs(error))
            print(f"{policy + ' ' + (mode or ''):28s}{name:>10s}{seconds:10.1f}"
                  f"{found[name]:10.1f}{error:10.0%}", flush=True)  # fmt: skip
    print(f"median error {median(errors):.0%} of {len(errors)} completion times")


if __name__ == "__main__":
    main()
