"""Simulations as a dl-sim command line asks for: runs them, and prints the comparison."""

from __future__ import annotations

import math
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING, Any

from dltools.cli import destinations
from dltools.cli.destinations import make_console, printable_on_terminal
from dltools.cli.formats import (
    WHOLE,
    ObservationFormat,
    RowFormat,
    format_by_name,
    format_for_stdout,
    suffixes,
    to_csv,
    to_jsonl,
)
from dltools.cli.sim.trials import Trial, check_settings, run_all
from dltools.cli.sim.workloads import load_workloads
from dltools.errors import ConfigError, DataError
from dltools.report.result_rows import CRITERIA, best_first, by_job, by_policy, ratio
from dltools.sim import lower_bound
from dltools.sim.simulation import Observer

if TYPE_CHECKING:
    from dltools.cli.sim.request import Request
    from dltools.observations.outcomes import JobResult
    from dltools.sim.workload import Workload


def run_request(request: Request) -> None:
    """Simulate, and print a row per policy or job."""
    if request.criterion and request.criterion not in CRITERIA:
        raise ConfigError(f"--best must be one of {', '.join(CRITERIA)}, not {request.criterion}")
    workloads = load_workloads(request)
    rows = _compare(request, workloads)
    format_ = format_for_stdout(request.format)
    if format_ is not RowFormat.TABLE:
        text = to_csv(rows) if format_ is RowFormat.CSV else to_jsonl(rows)
        sys.stdout.write(printable_on_terminal(text))
        return
    from dltools.cli.fitted_table import runs_table

    console = make_console()
    bound = [] if request.is_by_job else [_bound(workloads, rows[0])]
    console.print(runs_table([*rows, *bound]))
    if request.criterion:
        best = rows[0]["policy"]
        console.print(f"The best of {len(rows)}:  dl-plan --policy {best}", soft_wrap=True)


def _bound(workloads: Sequence[Workload], base: Mapping[str, Any]) -> dict[str, Any]:
    """Return what no policy can beat, even if it knows all works and arrivals."""
    bounds = {
        "makespan": [lower_bound.makespan(workload) for workload in workloads],
        "mean_completion": [lower_bound.mean_completion(workload) for workload in workloads],
    }
    row: dict[str, Any] = dict.fromkeys(base)
    for key, values in bounds.items():
        if not any(map(math.isnan, values)):
            row[key] = fmean(values)
            row[f"{key}_ratio"] = ratio(row[key], base[key])
    return row | {"policy": "bound"}


def _compare(request: Request, workloads: Sequence[Workload]) -> list[dict[str, Any]]:
    check_settings(request.policies, request.assignments, request.mode, request.quantum_s)
    given = (tuple(request.assignments), request.mode, request.is_clairvoyant)
    trials = [
        Trial(workload, policy, *given, request.sample_interval_s, request.quantum_s)
        for policy in request.policies
        for workload in workloads
    ]
    results = iter([_record(file, trials[0])] if (file := request.recording) else run_all(trials))
    runs = {policy: [next(results) for _ in workloads] for policy in request.policies}
    if request.is_by_job:
        return by_job(runs, request.seeds)
    rows = by_policy(runs)
    if not request.criterion:
        return rows
    if not (ranked := best_first(rows, request.criterion)):
        raise DataError(f"--best {request.criterion}: no job of this workload has a value")
    return ranked


def _record(file: Path, trial: Trial) -> list[JobResult]:
    """Simulate, and write the observations."""
    from dltools.observations.formats.registry import get_format
    from dltools.sim.simulated_recording import Recorder

    format_ = format_by_name(ObservationFormat.AUTO, file, suffixes())
    recorder = Recorder()
    results = trial.simulation(Observer(recorder, trial.interval_s)).run()
    with destinations.output_file(file) as out:
        chosen = WHOLE if format_ is ObservationFormat.AUTO else format_
        target = get_format(chosen).writer(out)  # type: ignore[arg-type]
        target.write(recorder.table())
        target.close()
    return results
