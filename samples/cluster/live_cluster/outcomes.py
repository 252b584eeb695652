"""outcomes.jsonl: what became of the jobs, a line for each run, so that rounds can be added."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from dltools.errors import DataError
from dltools.whole_files import atomic_file
from live_cluster.services import LiveJob, LiveRun

Rounds = Sequence[tuple[str, Sequence[LiveRun]]]
"""The day of each round, and its runs."""


def read_outcomes(path: Path) -> list[tuple[str, list[LiveRun]]]:
    """Return the rounds of a file, none if it is not there. Raises `DataError`."""
    if not path.exists():
        return []
    rounds: dict[int, tuple[str, list[LiveRun]]] = {}
    try:
        for line in path.read_text().splitlines():
            found = json.loads(line)
            jobs = [LiveJob(**one) for one in found["jobs"]]
            _, runs = rounds.setdefault(found["round"], (found["day"], []))
            runs.append(LiveRun(found["arm"], jobs))
    except (ValueError, TypeError, KeyError) as error:
        raise DataError(f"{path}: no outcomes: {error}; remove it") from error
    return list(rounds.values())


def write_outcomes(path: Path, rounds: Rounds) -> None:
    """Write all rounds into a file."""
    lines = [
        json.dumps(
            {"round": number, "day": day, "arm": run.arm, "jobs": [asdict(job) for job in run.jobs]}
        )
        for number, (day, runs) in enumerate(rounds, 1)
        for run in runs
    ]
    with atomic_file(path) as file:
        file.write(("\n".join(lines) + "\n").encode())
