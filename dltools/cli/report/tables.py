"""Reports as tables: a row per run or per job. Pages have them too."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from dltools.cli.destinations import make_console

if TYPE_CHECKING:
    from dltools.plan.realisation.settings import FoundSettings
    from dltools.report.timelines import Run

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
    from dltools.report import cells

    return cells.markdown(cells.cells(rows)).encode()


def rows_by_run(runs: Sequence[Run], baseline: str) -> Rows:
    """Return a row per run, with its ratios to the baseline and how its actions ended."""
    from dltools.report.ranking import by_policy

    repeats = {one.label: one.repeats for one in runs}
    actions = {
        one.label: ", ".join(f"{count} {status}" for status, count in one.results.items())
        for one in runs
    }
    return [
        row | ({"actions": actions[row["run"]]} if actions[row["run"]] else {})
        for row in by_policy(repeats, baseline, "run")
    ]


def rows_by_job(runs: Sequence[Run]) -> Rows:
    """Return a row per job of each run, with how long it was paused or held back, and the limits
    that it had last, where any job was or had some."""
    from dltools.report.ranking import by_job

    rows: Rows = []
    for one in runs:
        many = len(one.repeats)
        seeds = one.seeds if len(one.seeds) == many else range(many)
        rows += by_job({one.label: one.repeats}, seeds, "run")
    timelines = {(one.label, name): line for one in runs for name, line in one.timelines.items()}
    for key in ("paused", "held_back"):
        if any(getattr(line, key) for line in timelines.values()):
            rows = [
                row | {key: getattr(timelines.get((row["run"], row["name"])), key, None)}
                for row in rows
            ]
    limits = {
        (one.label, name): timeline.settings
        for one in runs
        for name, timeline in one.timelines.items()
    }
    if not any(limits.values()):
        return rows
    return [row | {"limits": _limits(limits.get((row["run"], row["name"])))} for row in rows]


def rows_by_user(runs: Sequence[Run]) -> Rows:
    """Return a row per user of each run."""
    from dltools.report.ranking import by_user

    return by_user({one.label: one.repeats for one in runs})


def _limits(settings: FoundSettings | None) -> str | None:
    from dltools.cli.words import settings_in_words

    if settings is None:
        return None
    return settings_in_words(settings) if settings else "no limit"
