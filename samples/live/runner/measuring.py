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
from dltools.sim.workload_file import read_workload
from runner import fit, measured, simulated
from runner.arms import NOOP, Arm, arms_for
from runner.measured import LiveJob, LiveRun, Measured
from runner.pipe import BIN
from runner.results import results
from runner.runs import Limits, live_run

_DRAWN = 6
"""Arms in a picture; more of them are hard to read."""


@dataclass(frozen=True)
class Plan:
    """A list of jobs, and the arms to run it under."""

    name: str
    jobs: tuple[Job, ...]
    arms: Sequence[Arm]


@dataclass(frozen=True)
class Repetitions:
    """How many runs of each arm. `add`: keep those that were measured before. `when`: the date."""

    count: int
    add: bool
    when: str


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


def measure(plan: Plan, repetitions: Repetitions, limits: Limits, output: Path) -> None:
    """Measure a list, and write RESULTS.md anew, with the other lists that were measured before.
    Raises `DataError` where repetitions cannot be added to those of other jobs."""
    folder = output / "runs" / plan.name
    folder.mkdir(parents=True, exist_ok=True)
    (output / "plots").mkdir(exist_ok=True)
    found = _begun(plan, repetitions, folder / "measured.json")
    trainings = [job for job in plan.jobs if not job.serves]
    if repetitions.count:
        found.add_alone(_alone([*trainings[:1], *trainings], folder, limits))
    if found.serves and not found.runs:
        together = live_run(plan.jobs, NOOP, folder / "together", limits)
        found.factor = fit.machine_factor(plan.jobs, together, found.cpus)
    for number in range(found.repetitions + 1, found.repetitions + 1 + repetitions.count):
        jobs = _scaled(plan.jobs, found.factor)
        for arm in plan.arms:
            run = live_run(jobs, arm, folder / f"{arm.name}-{number}", limits)
            if arm == NOOP:  # the first; its targets change nothing
                found.factor = fit.machine_factor(plan.jobs, run, found.cpus)
                jobs = _scaled(plan.jobs, found.factor)
                run = fit.with_targets(run, jobs)
            found.runs.append(replace(run, repetition=number))
            _say(plan.name, f"{arm.name} {number}", run)
            measured.save(found, folder / "measured.json")
        found.add_alone(_alone(trainings, folder, limits))
    try:
        simulated.simulate(found, _scaled(plan.jobs, found.factor), folder / "fitted.toml")
    except simulated.SimulationError as error:  # what was measured live is still shown
        print(f"{plan.name}: not simulated: {error}", file=sys.stderr)
    measured.save(found, folder / "measured.json")
    _draw(found, folder, output / "plots" / f"{plan.name}.svg")
    write_results(output)


def _begun(plan: Plan, repetitions: Repetitions, file: Path) -> Measured:
    """Return what is measured already if repetitions are to be added, else a new record."""
    found = Measured(plan.name, os.cpu_count() or 1, repetitions.when)
    found.serves = any(job.serves for job in plan.jobs)
    found.has_targets = any(job.first is not None for job in plan.jobs)
    found.cores = {job.name: min(job.threads, found.cpus) for job in plan.jobs}
    options = {arm.name: None if arm.plan is None else list(arm.plan) for arm in plan.arms}
    found.options.update(options)
    if not (repetitions.add and file.exists()):
        return found
    kept = measured.load(file)
    if (kept.cpus, kept.cores) != (found.cpus, found.cores):
        raise DataError(f"{file}: other jobs were measured: do without --add")
    return replace(kept, when=repetitions.when, options={**kept.options, **options})


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


def _scaled(jobs: Sequence[Job], factor: float) -> list[Job]:
    return [fit.scaled(job, factor) for job in jobs]


def _draw(found: Measured, folder: Path, picture: Path) -> None:
    """Let dl-report draw the first repetition of the first arms."""
    first = {
        arm: folder / f"{arm}-{found.of_arm(arm)[0].repetition}" for arm in found.arms[:_DRAWN]
    }
    files = [
        f"{arm}={name}{kind}"
        for arm, name in first.items()
        for kind in (".arrow", ".plans.jsonl", ".results.jsonl")
        if _has_content(Path(f"{name}{kind}"))
    ]
    kinds = [
        word
        for kind in (("responses",) if found.serves else ("gantt", "progress"))
        for word in ("--plot", kind)
    ]
    words = [str(BIN / "dl-report"), *kinds, "--output", str(picture), *files]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    if done.returncode:
        print(f"no picture: {done.stderr.strip()}", file=sys.stderr)


def _has_content(file: Path) -> bool:
    return file.exists() and file.stat().st_size > 0


def _say(name: str, what: str, run: LiveRun) -> None:
    ended = ", ".join(f"{job} {seconds:.1f} s" for job, seconds in run.completions.items())
    print(f"{name}: {what}: {ended or 'served'}", file=sys.stderr, flush=True)
