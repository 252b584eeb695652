"""All measurements of a list: each job alone, each arm, the simulation, the results."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from dltools.errors import DataError
from dltools.sim.workload import Job
from dltools.sim.workload_file.reading import read_workload
from runner import fit, measured, simulated
from runner.arms import NOOP, Arm, arms_for
from runner.measured import LiveJob, LiveRun, Measured
from runner.pipe import BIN
from runner.results import results
from runner.runs import Limits, live_run

_TOGETHER_S = 20.0


@dataclass(frozen=True)
class Plan:
    """A list of jobs, and the arms to run it under."""

    name: str
    jobs: tuple[Job, ...]
    arms: Sequence[Arm]


def read_list(path: Path, arms: str | None) -> Plan:
    """Return what a workload file asks for. Raises `DataError`, and `KeyError` for an arm that is
    unknown."""
    try:
        text = path.read_text()
    except OSError as error:
        raise DataError(f"{path}: {error.strerror}") from error
    workload = read_workload(text, str(path))
    for job in workload.jobs:
        if not job.container.image:
            raise DataError(f"{path}: job {job.name}: image is missing: say what to start")
    return Plan(path.stem, workload.jobs, arms_for(workload, arms))


def measure(plan: Plan, repeat: int, limits: Limits, output: Path, when: str) -> None:
    """Measure a list, and write RESULTS.md anew after each step, with the other lists that were
    measured before."""
    folder = output / "runs" / plan.name
    folder.mkdir(parents=True, exist_ok=True)
    (output / "plots").mkdir(exist_ok=True)
    found = Measured(plan.name, os.cpu_count() or 1, when)
    found.serves = any(job.serves for job in plan.jobs)
    found.has_targets = any(job.first is not None for job in plan.jobs)
    found.cores = {job.name: min(job.threads, found.cpus) for job in plan.jobs}
    trainings = [job for job in plan.jobs if not job.serves]
    found.add_alone(_alone([*trainings[:1], *trainings], folder, limits))
    jobs = _scaled(plan.jobs, found.cpus, folder, limits)
    found.targets = {job.name: job.qoe for job in jobs if job.qoe is not None}
    for number in range(1, repeat + 1):
        for arm in plan.arms:
            run = live_run(jobs, arm, folder / f"{arm.name}-{number}", limits)
            found.runs.append(run)
            _say(plan.name, f"{arm.name} {number}", run)
            measured.save(found, folder / "measured.json")
        found.add_alone(_alone(trainings, folder, limits))
    try:
        simulated.simulate(found, jobs, plan.arms, folder / "fitted.toml")
    except simulated.SimulationError as error:  # what was measured live is still shown
        print(f"{plan.name}: not simulated: {error}", file=sys.stderr)
    measured.save(found, folder / "measured.json")
    _draw(plan, folder, output / "plots" / f"{plan.name}.svg")
    write_results(output)


def write_results(output: Path) -> None:
    """Write RESULTS.md from all that was measured."""
    files = sorted((output / "runs").glob("*/measured.json"), key=lambda path: path.stat().st_mtime)
    text = results([measured.load(file) for file in files])
    (output / "RESULTS.md").write_text(text)
    print(text)


def _alone(jobs: Sequence[Job], folder: Path, limits: Limits) -> dict[str, LiveJob]:
    """Return each job as it runs alone; jobs that do the same run once. Where the first one comes
    twice, it runs twice, so that none pays for a cold cache."""
    done: dict[object, LiveJob] = {}
    found = {}
    for number, job in enumerate(jobs):
        key = (job.container.image, job.container.command, job.first)
        if key not in done or (number == 1 and job == jobs[0]):
            run = live_run([replace(job, arrival=0.0)], NOOP, folder / f"alone-{job.name}", limits)
            done[key] = run.jobs[0]
            if run.jobs[0].exit_code:
                raise DataError(f"job {job.name} ended with {run.jobs[0].exit_code}")
            _say(folder.name, f"{job.name} alone", run)
        found[job.name] = replace(done[key], name=job.name)
    return found


def _scaled(jobs: Sequence[Job], cpus: int, folder: Path, limits: Limits) -> list[Job]:
    """Return the jobs with servers that ask the same share of this machine as of the one for which
    the file gives the cost of a request. To learn the cost, all servers run together."""
    short = [replace(job, arrival=0.0, duration=_TOGETHER_S) for job in jobs if job.serves]
    if not short:
        return list(jobs)
    factor = fit.machine_factor(short, live_run(short, NOOP, folder / "together", limits), cpus)
    print(f"{folder.name}: requests cost {factor:.2f} of what the file says", file=sys.stderr)
    return [fit.scaled(job, factor) for job in jobs]


def _draw(plan: Plan, folder: Path, picture: Path) -> None:
    """Let dl-report draw the first repetition of all arms."""
    files = [f"{arm.name}={folder / f'{arm.name}-1'}{kind}"
             for arm in plan.arms for kind in (".arrow", ".plans.jsonl", ".results.jsonl")
             if _has_content(folder / f"{arm.name}-1{kind}")]  # fmt: skip
    serves = any(job.serves for job in plan.jobs)
    kinds = [word for kind in (("satisfied",) if serves else ("gantt", "progress"))
             for word in ("--plot", kind)]  # fmt: skip
    words = [str(BIN / "dl-report"), *kinds, "--output", str(picture), *files]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    if done.returncode:
        print(f"no picture: {done.stderr.strip()}", file=sys.stderr)


def _has_content(file: Path) -> bool:
    return file.exists() and file.stat().st_size > 0


def _say(name: str, what: str, run: LiveRun) -> None:
    ended = ", ".join(f"{job} {seconds:.1f} s" for job, seconds in run.completions.items())
    print(f"{name}: {what}: {ended or 'served'}", file=sys.stderr, flush=True)
