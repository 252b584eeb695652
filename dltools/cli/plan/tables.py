"""The table that dl-plan prints: a decision for each container."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from rich.table import Table

from dltools.cli.tables import FittedTable
from dltools.cli.words import described

if TYPE_CHECKING:
    from dltools.plan.decisions import JobDecision
    from dltools.plan.realisation.settings import Settings

_CLASS_COLOURS = {
    "NL": "green", "WL": "yellow", "CL": "cyan", "PC": "green", "WC": "yellow", "CC": "cyan",
    "P1": "green", "P3": "cyan", "S": "green", "G": "cyan", "B": "red",
}  # fmt: skip


def verdicts_table(verdicts: Iterable[JobDecision], *, wide: bool) -> Table:
    """Return a row per container: its class, share, setting now and then, and why; on a wide screen
    what it was judged by and what is predicted, too."""
    table = FittedTable(
        ("CONTAINER", "left"), ("CLASS", "left"), ("SHARE", "right"), ("NOW", "left"),
        ("THEN", "left"), *([("SIGNAL", "left"), ("PREDICTION", "left")] if wide else []),
        ("WHY", "wrap"),
    )  # fmt: skip
    for verdict in verdicts:
        wanted = verdict.setting or {}
        share = verdict.allocation.share
        more = (verdict.allocation.signal or "-", verdict.allocation.prediction or "-")
        table.add_row(
            verdict.name,
            verdict.job_class,
            "-" if share is None else f"{share:.0%}",
            described(verdict.present, wanted),
            _then(verdict.present, wanted) if wanted else "as now",
            *(more if wide else ()),
            verdict.reason,
            style=_CLASS_COLOURS.get(verdict.job_class, ""),
        )
    return table


def _then(present: Settings, wanted: Settings) -> str:
    """Return what is to be set; "no limit" only where nothing else holds the container then."""
    whole = described(present | wanted)
    return whole if whole == "no limit" else described(wanted, wanted, whole=False)
