"""RESULTS.md: what was measured and what dl-sim had said, as tables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import fmean

from dltools.sim.workload import Workload
from live_cluster.outcomes import Rounds
from live_cluster.services import LiveJob, LiveRun

_ABOUT = """# Six trainings on three Swarm nodes

Written by `samples/cluster/run`; [README.md](README.md) says how. {when}.
Times in seconds, from a job's start to its end. best job: the least ratio of a job's time to that
under noop. A round is one run of each arm; ratios are to noop of the same round. Of several rounds:
the mean (least to greatest), and the moves of each.
"""


def report(workload: Workload, rounds: Rounds, simulated: Mapping[str, Mapping[str, float]]) -> str:
    """Return the text: the first run of a round is what the others are compared with."""
    count = f"{len(rounds)} rounds" if len(rounds) > 1 else "one round"
    when = f"{count}, {' and '.join(dict.fromkeys(day for day, _ in rounds))}"
    runs = [found for _, found in rounds]
    parts = [_ABOUT.format(when=when), _summary(runs, simulated)]
    parts += ["## Jobs\n", _jobs(workload, runs)]
    return "\n".join(parts)


def _summary(
    rounds: Sequence[Sequence[LiveRun]], simulated: Mapping[str, Mapping[str, float]]
) -> str:
    rows = [
        [
            "arm",
            "makespan",
            "mean",
            "makespan/noop",
            "mean/noop",
            "best job",
            "moves",
            "simulated makespan",
            "error",
            "simulated mean",
        ]
    ]
    for arm in zip(*rounds, strict=True):
        said = simulated[arm[0].arm]
        makespan = max(said.values())  # all of them arrive at once
        measured = [run.makespan for run in arm]
        bases = [runs[0] for runs in rounds]
        pairs = list(zip(arm, bases, strict=True))
        rows.append(
            [
                arm[0].arm,
                _spread(measured, 1),
                _spread([_mean(run) for run in arm], 1),
                _spread([run.makespan / base.makespan for run, base in pairs], 2),
                _spread([_mean(run) / _mean(base) for run, base in pairs], 2),
                _spread([_best(run, base) for run, base in pairs], 2),
                ", ".join(str(sum(len(job.nodes) - 1 for job in run.jobs)) for run in arm),
                f"{makespan:.1f}",
                f"{100 * (makespan / fmean(measured) - 1):+.0f} %",
                f"{fmean(said.values()):.1f}",
            ]
        )
    return _table(rows)


def _mean(run: LiveRun) -> float:
    return fmean(run.completions.values())


def _best(run: LiveRun, base: LiveRun) -> float:
    return min(took / base.completions[name] for name, took in run.completions.items())


def _spread(values: Sequence[float], digits: int) -> str:
    """Return the mean, and the range if the values differ."""
    low, high = f"{min(values):.{digits}f}", f"{max(values):.{digits}f}"
    mean = f"{fmean(values):.{digits}f}"
    return mean if low == high else f"{mean} ({low} to {high})"


def _jobs(workload: Workload, rounds: Sequence[Sequence[LiveRun]]) -> str:
    arms = [run.arm for run in rounds[0]]
    rows = [
        [
            "job",
            *arms,
            *(f"{arm}: nodes (epoch before, after)" for arm in arms[1:]),
            "last val_loss, the same in all runs",
        ]
    ]
    for job in workload.jobs:
        found = [
            [next(one for one in run.jobs if one.name == job.name) for run in arm]
            for arm in zip(*rounds, strict=True)
        ]
        losses = {one.loss for arm in found for one in arm}
        rows.append(
            [
                job.name,
                *(_spread([one.completion for one in arm], 1) for arm in found),
                *("; ".join(_path(one) for one in arm) for arm in found[1:]),
                losses.pop() if len(losses) == 1 else "DIFFER: " + ", ".join(sorted(losses)),
            ]
        )
    return _table(rows)


def _path(job: LiveJob) -> str:
    """Return the nodes of a job in order, with the epochs around each move."""
    steps = [
        f" ({before} to {after}) {node}"
        for node, (before, after) in zip(job.nodes[1:], job.resumed, strict=True)
    ]
    return job.nodes[0] + "".join(steps)


def _table(rows: Sequence[Sequence[str]]) -> str:
    lines = ["| " + " | ".join(row) + " |" for row in rows]
    return "\n".join([lines[0], "|" + "---|" * len(rows[0]), *lines[1:]]) + "\n"
