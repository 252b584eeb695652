"""Reports as tables: a row per run, per job or per user, and what these cost."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dltools import bounded_reading
from dltools.cli.destinations import make_console
from dltools.cli.values_in_words import settings_in_words
from dltools.errors import ConfigError
from dltools.report import result_tables
from dltools.report.result_rows import GROUPS, HOUR_S, by_group, by_job, by_policy

if TYPE_CHECKING:
    from dltools.report.timelines import Run, Timeline

Rows = list[dict[str, Any]]


def table(rows: Rows) -> bytes:
    """Return a table as wide as the console, with its colours."""
    from dltools.cli.fitted_table import runs_table

    console = make_console()
    with console.capture() as captured:
        console.print(runs_table(rows))
    text: str = captured.get()
    return text.encode()


def markdown(rows: Rows) -> bytes:
    """Return a table in Markdown."""
    return result_tables.markdown(result_tables.cells(rows)).encode()


def rows_by_run(runs: Sequence[Run], baseline: str) -> Rows:
    """Return a row per run, with its ratios to the baseline and how its actions ended."""
    rows = by_policy({run.label: run.repeats for run in runs}, baseline, "run")
    for run, row in zip(runs, rows, strict=True):
        if run.results:
            row["actions"] = ", ".join(f"{count} {key}" for key, count in run.results.items())
    return rows


def rows_by_job(runs: Sequence[Run]) -> Rows:
    """Return a row per job of each run, with how long it was paused or held back, and the limits
    that it had last, where any job was or had some."""
    rows: Rows = []
    for run in runs:
        many = len(run.repeats)
        seeds = run.seeds if len(run.seeds) == many else range(many)
        rows += by_job({run.label: run.repeats}, seeds, "run")
    lines = {(run.label, name): line for run in runs for name, line in run.timelines.items()}
    for key in ("paused", "held_back"):
        if any(getattr(line, key) for line in lines.values()):
            for row in rows:
                row[key] = getattr(lines.get((row["run"], row["name"])), key, None)
    if any(line.settings for line in lines.values()):
        for row in rows:
            row["limits"] = _limits(lines.get((row["run"], row["name"])))
    return rows


IDLE = "(idle GPUs)"
"""In the place of a group's name: the energy of GPUs that no container used."""


def rows_by_group(runs: Sequence[Run], by: str) -> Rows:
    """Return a row per user, or job of several containers, of each run; and one for the energy of
    its GPUs that nobody used."""
    rows: Rows = []
    for run in runs:
        rows += by_group({run.label: run.repeats}, by)
        if run.idle_joules:
            rows.append({"run": run.label, GROUPS[by][0]: IDLE, "joules": run.idle_joules})
    return rows


@dataclass(frozen=True, slots=True)
class Prices:
    """What an hour of a CPU, an hour of a GPU that is used, and a kWh of GPUs costs, in whatever
    currency."""

    cpu_hour: float = 0.0
    gpu_hour: float = 0.0
    kwh: float = 0.0

    def added(self, rows: Rows) -> Rows:
        """Return rows of jobs, or of groups of them, with their cost."""
        return [row | {"cost": self._cost(row)} for row in rows]

    def _cost(self, row: Mapping[str, Any]) -> float:
        cpu: float = row.get("cpu_hours", row.get("cpu", 0.0) / HOUR_S)
        gpu: float = row.get("gpu_hours", row.get("gpu", 0.0) / HOUR_S)
        energy: float = row.get("joules", 0.0) / (1000 * HOUR_S)
        return self.cpu_hour * cpu + self.gpu_hour * gpu + self.kwh * energy


def read_prices(file: Path) -> Prices:
    """Return the prices of a TOML file. Raises `ConfigError`."""
    import tomllib

    try:
        given = tomllib.loads(bounded_reading.read_text(file))
    except (ValueError, RecursionError) as error:
        raise ConfigError(f"{file}: {error}") from error
    names = [field.name for field in fields(Prices)]
    for name, price in given.items():
        if name not in names:
            raise ConfigError(f"{file}: unknown price {name}; known: {', '.join(names)}")
        if isinstance(price, bool) or not isinstance(price, int | float) or not 0 <= price < 1e12:
            raise ConfigError(f"{file}: {name} is not a price: {str(price)[:30]}")
    return Prices(**given)


def _limits(line: Timeline | None) -> str | None:
    if line is None:
        return None
    return settings_in_words(line.settings) if line.settings else "no limit"
