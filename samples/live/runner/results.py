"""RESULTS.md: what was measured of all lists, as tables."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from statistics import fmean

from runner import figures
from runner.compared import compared
from runner.figures import Figure, figure
from runner.measured import LiveRun, Measured

_BINS = 40
_BARS = " ▁▂▃▄▅▆▇█"
_ROUNDS_S = 40.0
"""Ten rounds of DQoES."""

_ABOUT = """# Live runs

Written by `samples/live/run`; [README.md](README.md) says what the columns mean.
Means over the repetitions, with (least to largest). Times in seconds.
"""


def results(lists: Sequence[Measured]) -> str:
    """Return the text of RESULTS.md."""
    return "\n".join([_ABOUT, *(_section(one) for one in lists), compared(lists)])


def _section(measured: Measured) -> str:
    times = " to ".join(map(str, sorted({len(measured.of_arm(arm)) for arm in measured.arms})))
    spin = "" if measured.spin is None else f", spin {measured.spin:.2f}"
    bound = "" if measured.bound is None else f", clairvoyant mean {measured.bound:.1f} s"
    head = f"{measured.when}, {measured.cpus} CPUs, {times} repetition{'s' * (times != '1')}"
    rows = _serving_rows(measured) if measured.serves else _training_rows(measured)
    parts = [f"## {measured.name}\n", f"{head}{spin}{bound}.\n", _table(rows), _per_job(measured)]
    if not measured.serves:
        parts.append(_useful_work(measured))
    parts.append(f"![{measured.name}](plots/{measured.name}.svg)\n")
    return "\n".join(part for part in parts if part)


def _training_rows(measured: Measured) -> list[list[str]]:
    rows = [
        [
            "arm",
            "mean",
            "makespan",
            "mean/noop",
            "makespan/noop",
            "efficiency",
            "mean/bound",
            "simulated mean",
            "simulated makespan",
            "first report/alone",
            "own CPU (start)",
        ]
    ]
    if measured.has_targets:
        rows[0] += ["to target", "to target/noop"]
    for arm in measured.arms:
        runs = measured.of_arm(arm)
        mean = _over(runs, figures.mean_completion)
        cells = [
            arm,
            _seconds(mean),
            _seconds(_over(runs, lambda run: run.makespan)),
            _ratio(figures.to_noop(measured, runs, figures.mean_completion)),
            _ratio(figures.to_noop(measured, runs, lambda run: run.makespan)),
            _ratio(_over(runs, lambda run: figures.efficiency(measured, run))),
            "-" if mean is None or not measured.bound else f"{mean.mean / measured.bound:.2f}",
            _seconds(figures.simulated_mean(measured, arm)),
            _seconds(figures.simulated_makespan(measured, arm)),
            _ratio(_over(runs, lambda run: figures.late_reports(measured, run))),
            _own(measured, runs),
        ]
        if measured.has_targets:
            cells += [
                _seconds(_over(runs, figures.time_to_first)),
                _ratio(figures.to_noop(measured, runs, figures.time_to_first)),
            ]
        rows.append(cells)
    return rows


def _serving_rows(measured: Measured) -> list[list[str]]:
    count = sum(job.target is not None for job in measured.runs[0].jobs)
    rows = [
        [
            "arm",
            "satisfied at the end",
            "after ten rounds",
            "met or faster",
            "simulated satisfied (mean over time)",
            "own CPU (start)",
        ]
    ]
    for arm in measured.arms:
        runs = measured.of_arm(arm)
        simulated = measured.simulated_satisfied.get(arm)
        rows.append(
            [
                arm,
                _count(figure([figures.satisfied(run) for run in runs]), count),
                _count(figure([figures.satisfied(run, _ROUNDS_S) for run in runs]), count),
                _count(figure([figures.met(run) for run in runs]), count),
                _plain(simulated),
                _own(measured, runs),
            ]
        )
    return rows


def _per_job(measured: Measured) -> str:
    """Return a table of the jobs: their times alone, and completion times under each arm."""
    if measured.serves:
        return ""
    rows = [["job", "arrival", "alone", *(f"{arm} (simulated)" for arm in measured.arms)]]
    for job in measured.runs[0].jobs:
        alone = figure(measured.seconds_alone.get(job.name, []))
        cells = [job.name, f"{job.arrival:g}", _seconds(alone)]
        for arm in measured.arms:
            found = _over(
                measured.of_arm(arm), lambda run, name=job.name: run.completions.get(name)
            )
            said = figures.simulated_completion(measured, arm, job.name)
            last = figure([figures.last_values(run).get(job.name) for run in measured.of_arm(arm)])
            value = f", last {last.mean:.3g}" if last and measured.has_targets else ""
            cells.append(
                f"{_plain(found.mean)} ({_plain(said.mean if said else None)}){value}"
                if found
                else "-"
            )
        rows.append(cells)
    return _table(rows)


def _useful_work(measured: Measured) -> str:
    """Return a line of bars for each arm: the useful work, as a share of what the host can do."""
    lines = []
    for arm in measured.arms:
        width, done = figures.useful_work(measured, measured.of_arm(arm)[0], _BINS)
        if not any(done):
            continue
        bars = "".join(_BARS[round(min(1.0, share) * (len(_BARS) - 1))] for share in done)
        lines.append(f"{arm:>16} │{bars}│ {fmean(done):4.0%}, a bar is {width:.1f} s")
    if not lines:
        return ""
    return "Useful work over time (first repetition):\n\n```text\n" + "\n".join(lines) + "\n```\n"


def _over(runs: Sequence[LiveRun], of: Callable[..., float | None]) -> Figure | None:
    return figure([of(run) for run in runs])


def _own(measured: Measured, runs: Sequence[LiveRun]) -> str:
    started = fmean(run.own_start for run in runs)
    return f"{fmean(figures.own_cpu(measured, run) for run in runs):.1%} ({started:.1f} s)"


def _seconds(found: Figure | None) -> str:
    return _spread(found, 1)


def _ratio(found: Figure | None) -> str:
    return _spread(found, 2)


def _spread(found: Figure | None, digits: int) -> str:
    if found is None:
        return "-"
    text = f"{found.mean:.{digits}f}"
    least, most = f"{found.least:.{digits}f}", f"{found.most:.{digits}f}"
    return text if least == most else f"{text} ({least} to {most})"


def _count(found: Figure | None, of: int) -> str:
    return "-" if found is None else f"{_spread(found, 0)} of {of}"


def _plain(value: float | None) -> str:
    return "-" if value is None else f"{value:.1f}"


def _table(rows: Sequence[Sequence[str]]) -> str:
    lines = ["| " + " | ".join(row) + " |" for row in rows]
    return "\n".join([lines[0], "|---" * len(rows[0]) + "|", *lines[1:]]) + "\n"
