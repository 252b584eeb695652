"""The table of runs or jobs that dl-sim and dl-report print."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from rich.table import Table

from dltools.cli.tables import FittedTable

_LOOKS = {"REALIZE": "left", "SET": "wrap", "ACTIONS": "left", "LIMITS": "left"}


def runs_table(rows: Iterable[Mapping[str, Any]]) -> Table:
    """Return a row per policy, run or job: seconds, and beside them ratios to the baseline."""
    from dltools.report.cells import cells

    found = cells(list(rows))
    looks = [
        "right" if right else _LOOKS.get(header, "name")
        for header, right in zip(found.headers, found.right, strict=True)
    ]
    table = FittedTable(*zip(found.headers, looks, strict=True))
    for row in found.rows:
        table.add_row(*row)
    return table
