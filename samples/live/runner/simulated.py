"""The same list in the simulator, by dl-sim."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Sequence
from pathlib import Path
from statistics import fmean
from typing import Any

from dltools.labels import EPOCHS
from dltools.sim import lower_bound
from dltools.sim.workload import HostSpec, Job, workload_of
from runner import fit
from runner.arms import NOOP, Arm
from runner.measured import Measured
from runner.pipe import BIN, INTERVAL_S

_HALVINGS = 7

SEEDS, LATER_S = 5, 2.0
"""Each list is simulated so often, with jobs that come later by up to so many seconds: what goes
first, where that hangs by a hair, is not the same in each."""


class SimulationError(Exception):
    """dl-sim refused; the message is its own."""


def simulate(measured: Measured, jobs: Sequence[Job], file: Path) -> None:
    """Simulate the arms with jobs that are fitted to the times alone, and with spin that is fitted
    to Docker alone; write the workload into a file, and what was found into `measured`."""
    found = [
        job if job.serves else fit.fitted(job, measured.alone[job.name], measured.cpus)
        for job in jobs
    ]
    file.write_text(fit.as_toml(found, measured.cpus) + f"\n[vary]\narrival = {LATER_S}\n")
    if not measured.serves:
        workload = workload_of(found, [HostSpec("node", float(measured.cpus))], measured.name)
        ends = all(
            name in measured.alone and measured.alone[name].completion is not None
            for name in (job.name for job in found)
        )
        works = [
            (measured.alone[job.name].completion or 0.0) * measured.cores[job.name]
            for job in workload.jobs
        ]
        measured.bound = lower_bound.mean_completion(workload, works) if ends else None
        measured.spin = _spin(measured, jobs, file)
    for name, options in measured.options.items():
        arm = Arm(name, None if options is None else tuple(options))
        rows = _rows(arm, jobs, file, measured.spin)
        measured.simulated[arm.name] = [_completions(rows, seed) for seed in range(SEEDS)]
        if measured.serves:
            measured.simulated_satisfied[arm.name] = _mean_satisfied(rows)


def _spin(measured: Measured, jobs: Sequence[Job], file: Path) -> float | None:
    """Return the spin with which the simulated Docker alone takes as long as the real one, in the
    mean of the jobs that ended."""
    runs = [run.completions for run in measured.of_arm(NOOP.name) if run.completions]
    if not runs:
        return None
    live = fmean(fmean(run.values()) for run in runs)
    low, high = 0.0, 1.0
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        rows = _rows(NOOP, jobs, file, middle)
        mean = fmean(_completions(rows, seed)[name] for seed in range(SEEDS) for name in runs[0])
        low, high = (middle, high) if mean < live else (low, middle)
    return round((low + high) / 2, 2)


def _rows(arm: Arm, jobs: Sequence[Job], file: Path, spin: float | None) -> list[dict[str, Any]]:
    told = all(EPOCHS in job.container.labels for job in jobs)
    more = [*(["--clairvoyant"] if told else []), *([] if spin is None else ["--spin", str(spin)])]
    words = [
        str(BIN / "dl-sim"),
        "-i",
        str(INTERVAL_S),
        *arm.simulated,
        *more,
        "--repeat",
        str(SEEDS),
        "--jobs",
        "--format",
        "jsonl",
        str(file),
    ]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SimulationError(done.stderr.strip())
    return [json.loads(line) for line in done.stdout.splitlines()]


def _completions(rows: Sequence[dict[str, Any]], seed: int) -> dict[str, float]:
    return {
        row["name"]: row["completion"]
        for row in rows
        if row["seed"] == seed and row["completion"] is not None
    }


def _mean_satisfied(rows: Sequence[dict[str, Any]]) -> float:
    """Return how many models kept their targets, in the mean over time."""
    longest = max(row["served"] for row in rows)
    satisfied = sum(row["satisfied"] for row in rows) / SEEDS
    return float(satisfied / longest) if longest else 0.0
