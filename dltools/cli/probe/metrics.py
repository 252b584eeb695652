"""The metrics that --list-metrics prints."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from dltools.cli.console import make_console

if TYPE_CHECKING:
    from dltools.observations.table import Row


def print_metrics(rows: Iterable[Row]) -> None:
    """Print a table of the metrics in rows, of which only those of kind `progress` count."""
    from dltools.cli.probe.tables import metrics_table

    console = make_console()
    progress = (row for row in rows if row["kind"] == "progress")
    console.print(metrics_table(progress, wide=console.width >= 100))
