"""RESULTS.md: what was measured and what dl-sim had said, as tables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import fmean

from dltools.sim.workload import Workload
from live_cluster.services import LiveJob, LiveRun

_ABOUT = """# Six trainings on three Swarm nodes

Written by `samples/cluster/run`; [README.md](README.md) says how. {when}, one run of each arm.
Times in seconds, from a job's start to its end. best job: the least ratio of a job's time to that
under noop.
"""


def report(
    workload: Workload,
    runs: Sequence[LiveRun],
    simulated: Mapping[str, Mapping[str, float]],
    when: str,
) -> str:
    """Return the text: the first run is what the others are compared with."""
    parts = [_ABOUT.format(when=when), _summary(runs, simulated)]
    parts += ["## Jobs\n", _jobs(workload, runs)]
    return "\n".join(parts)


def _summary(runs: Sequence[LiveRun], simulated: Mapping[str, Mapping[str, float]]) -> str:
    base = runs[0]
    rows = [["arm", "makespan", "mean", "makespan/noop", "mean/noop", "best job", "moves",
             "simulated makespan", "error", "simulated mean"]]  # fmt: skip
    for run in runs:
        times, said = run.completions, simulated[run.arm]
        best = min(times[name] / base.completions[name] for name in times)
        makespan = max(said.values())  # all of them arrive at once
        rows.append([
            run.arm, f"{run.makespan:.1f}", f"{fmean(times.values()):.1f}",
            f"{run.makespan / base.makespan:.2f}",
            f"{fmean(times.values()) / fmean(base.completions.values()):.2f}", f"{best:.2f}",
            str(sum(len(job.nodes) - 1 for job in run.jobs)), f"{makespan:.1f}",
            f"{100 * (makespan / run.makespan - 1):+.0f} %", f"{fmean(said.values()):.1f}",
        ])  # fmt: skip
    return _table(rows)


def _jobs(workload: Workload, runs: Sequence[LiveRun]) -> str:
    names = [run.arm for run in runs]
    rows = [["job", *names, *(f"{name}: nodes (epoch before, after)" for name in names[1:]),
             "last val_loss, the same in all arms"]]  # fmt: skip
    for job in workload.jobs:
        found = [next(one for one in run.jobs if one.name == job.name) for run in runs]
        losses = {one.loss for one in found}
        rows.append([
            job.name, *(f"{one.completion:.1f}" for one in found),
            *(_path(one) for one in found[1:]),
            losses.pop() if len(losses) == 1 else "DIFFER: " + ", ".join(sorted(losses)),
        ])  # fmt: skip
    return _table(rows)


def _path(job: LiveJob) -> str:
    """Return the nodes of a job in order, with the epochs around each move."""
    steps = [f" ({before} to {after}) {node}"
             for node, (before, after) in zip(job.nodes[1:], job.resumed, strict=True)]  # fmt: skip
    return job.nodes[0] + "".join(steps)


def _table(rows: Sequence[Sequence[str]]) -> str:
    lines = ["| " + " | ".join(row) + " |" for row in rows]
    return "\n".join([lines[0], "|" + "---|" * len(rows[0]), *lines[1:]]) + "\n"
