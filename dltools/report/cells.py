"""Turns rows of numbers into cells of text, for tables on a terminal, in Markdown and in HTML."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from dltools.text import printable

_HEADERS = {
    "run": "RUN",
    "policy": "POLICY",
    "realize": "REALIZE",
    "set": "SET",
    "seed": "SEED",
    "name": "JOB",
    "user": "USER",
    "job": "OF JOB",
    "job_count": "JOBS",
    "node": "HOST",
    "arrival": "ARRIVAL",
    "finish": "FINISH",
    "makespan": "MAKESPAN",
    "mean_completion": "MEAN",
    "completion": "COMPLETION",
    "paused": "PAUSED",
    "held_back": "HELD BACK",
    "longest_completion": "LONGEST",
    "time_to_first": "TO TARGET",
    "first": "TARGET MET",
    "satisfied": "SATISFIED",
    "cpu": "CPU",
    "gpu": "GPU",
    "cpu_hours": "CPU HOURS",
    "gpu_hours": "GPU HOURS",
    "joules": "GPU JOULES",
    "cost": "COST",
    "waited_hours": "WAITED HOURS",
    "finished": "FINISHED",
    "migrations": "MIGRATIONS",
    "unfinished": "UNFINISHED",
    "failed": "FAILED",
    "actions": "ACTIONS",
    "limits": "LIMITS",
}
_TEXTS = ("run", "policy", "realize", "set", "name", "user", "job", "node", "actions", "limits")
_COUNTS = (
    "satisfied",
    "migrations",
    "unfinished",
    "failed",
    "finished",
    "job_count",
    "cpu_hours",
    "gpu_hours",
    "joules",
    "cost",
    "waited_hours",
)


@dataclass(frozen=True, slots=True)
class Cells:
    """A table of texts. `right`: for each column whether it has numbers, aligned to the right."""

    headers: tuple[str, ...]
    right: tuple[bool, ...]
    rows: tuple[tuple[str, ...], ...]


def cells(rows: Sequence[Mapping[str, Any]]) -> Cells:
    """Return the cells of rows about runs or jobs. A time has its ratio to the baseline in
    brackets. Empty columns are left out, and a seed that all rows have."""
    is_repeated = len({row.get("seed") for row in rows}) > 1
    known = [
        {
            **row,
            "finish": row.get("finish") or row.get("exit_code"),
            "seed": is_repeated and row.get("seed") is not None,
        }
        for row in rows
    ]
    shown = [key for key in _HEADERS if any(row.get(key) not in (None, "", 0) for row in known)]
    return Cells(
        tuple(_HEADERS[key] for key in shown),
        tuple(key not in _TEXTS for key in shown),
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
    text = f"{value:.4g}" if key in _COUNTS else f"{value:z.1f} s"
    return text if ratio is None else f"{text} ({ratio:.2f})"


def markdown(table: Cells) -> str:
    """Return a table in Markdown."""
    marks = ["--:" if right else "---" for right in table.right]
    lines = [table.headers, marks, *table.rows]
    return "".join(f"| {' | '.join(map(_escaped, line))} |\n" for line in lines)


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace("|", "\\|").replace("\n", " ")
