"""Turns rows of numbers into cells of text, for tables on a terminal, in Markdown and in HTML."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from dltools.text import printable

_COLUMNS = {
    "run": ("RUN", "name"),
    "policy": ("POLICY", "name"),
    "realize": ("REALIZE", "left"),
    "set": ("SET", "words"),
    "seed": ("SEED", "time"),
    "name": ("JOB", "name"),
    "user": ("USER", "name"),
    "job": ("OF JOB", "name"),
    "job_count": ("JOBS", "count"),
    "node": ("HOST", "name"),
    "arrival": ("ARRIVAL", "time"),
    "finish": ("FINISH", "time"),
    "makespan": ("MAKESPAN", "time"),
    "mean_completion": ("MEAN", "time"),
    "completion": ("COMPLETION", "time"),
    "paused": ("PAUSED", "time"),
    "held_back": ("HELD BACK", "time"),
    "longest_completion": ("LONGEST", "time"),
    "time_to_first": ("TO TARGET", "time"),
    "first": ("TARGET MET", "time"),
    "satisfied": ("SATISFIED", "count"),
    "cpu": ("CPU", "time"),
    "gpu": ("GPU", "time"),
    "cpu_hours": ("CPU HOURS", "count"),
    "gpu_hours": ("GPU HOURS", "count"),
    "joules": ("GPU JOULES", "count"),
    "cost": ("COST", "count"),
    "waited_hours": ("WAITED HOURS", "count"),
    "finished": ("FINISHED", "count"),
    "migrations": ("MIGRATIONS", "count"),
    "unfinished": ("UNFINISHED", "count"),
    "failed": ("FAILED", "count"),
    "actions": ("ACTIONS", "left"),
    "limits": ("LIMITS", "left"),
}
"""By key, the header of a column, and what it holds: a time (s), a count, else a text of a look."""

_NUMBERS = {"time": "right", "count": "right"}


@dataclass(frozen=True, slots=True)
class Cells:
    """A table of texts. `looks`: for each column, "right" if it has numbers, else how its texts
    give way on a narrow screen."""

    headers: tuple[str, ...]
    looks: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


def cells(rows: Sequence[Mapping[str, Any]]) -> Cells:
    """Return the cells of rows about runs or jobs. A time has its ratio to the baseline in
    brackets. Empty columns are left out, and a seed that all rows have."""
    is_repeated = len({row.get("seed") for row in rows}) > 1
    merged = [
        {
            **row,
            "finish": row.get("finish") or row.get("exit_code"),
            "seed": is_repeated and row.get("seed") is not None,
        }
        for row in rows
    ]
    shown = [key for key in _COLUMNS if any(row.get(key) not in (None, "", 0) for row in merged)]
    return Cells(
        tuple(_COLUMNS[key][0] for key in shown),
        tuple(_NUMBERS.get(_COLUMNS[key][1], _COLUMNS[key][1]) for key in shown),
        tuple(tuple(_cell(row, key) for key in shown) for row in rows),
    )


def _cell(row: Mapping[str, Any], key: str) -> str:
    value, ratio = row.get(key), row.get(f"{key}_ratio")
    if key == "finish" and row.get("exit_code") is not None:
        return f"failed ({row['exit_code']})"
    if key == "seed":
        return str(value)
    if value is None:
        return "-"
    if isinstance(value, str):
        return printable(value)
    text = f"{value:.4g}" if _COLUMNS[key][1] == "count" else f"{value:z.1f} s"
    return text if ratio is None else f"{text} ({ratio:.2f})"


def markdown(table: Cells) -> str:
    """Return a table in Markdown."""
    marks = ["--:" if look == "right" else "---" for look in table.looks]
    lines = [table.headers, marks, *table.rows]
    return "".join(f"| {' | '.join(map(_escaped, line))} |\n" for line in lines)


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace("|", "\\|").replace("\n", " ")
