"""Tables for people."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from rich.cells import cell_len, set_cell_size
from rich.table import Table

from dltools import metrics
from dltools.cli.fitting import Fitted
from dltools.printable import printable

if TYPE_CHECKING:
    from dltools.planner import Verdict
    from dltools.plans import Result, Settings

_CLASS_COLOURS = {
    "NL": "green", "WL": "yellow", "CL": "cyan", "PC": "green", "WC": "yellow", "CC": "cyan",
    "P1": "green", "P3": "cyan", "S": "green", "G": "cyan", "B": "red",
}  # fmt: skip
_LOOKS = {"REALIZE": "left", "SET": "wrap", "ACTIONS": "left"}
_STATUS_COLOURS = {"applied": "green", "planned": "cyan", "failed": "red", "stale": "yellow"}


def containers_table(
    rows: Iterable[Mapping[str, Any]], earlier: dict[str, dict[str, Any]]
) -> Table:
    """Return a row per container. CPU is the mean since the sample before, which `earlier` keeps
    between calls, or since the container's start where there is none."""
    table = Fitted(
        ("CONTAINER", "left"), ("STATE", "left"), ("CPU", "right"), ("LIMIT", "right"),
        ("MEMORY", "right"), ("THREADS", "right"), ("PROGRESS", "wrap"),
    )  # fmt: skip
    newest: dict[str, dict[str, Any]] = {}
    progress: dict[str, dict[str, float]] = {}
    nodes: dict[str, Mapping[str, Any]] = {}
    for row in rows:
        if row["kind"] == "container":
            key = row["container_id"]
            if key in newest:
                earlier[key] = newest[key]
            newest[key] = dict(row)
        elif row["kind"] == "progress":
            progress.setdefault(row["container_id"], {})[row["metric"]] = row["value"]
        elif row["kind"] == "node":
            nodes[row["host"]] = row
    for key, row in newest.items():
        before = earlier.get(key)
        shown = {**(before or {}).get("progress", {}), **progress.get(key, {})}
        whole = (nodes.get(row["host"]) or {}).get("cpu_count")
        limit = row["cpu_limit_cores"]
        table.add_row(
            row["container_name"],
            row["state"],
            cores(row, before),
            "-" if limit is None or limit == whole else f"{limit:.3g}",
            size(row["memory_working_set_bytes"]),
            "-" if row["thread_count"] is None else str(row["thread_count"]),
            " ".join(f"{clipped(name, 18)}={value:.4g}" for name, value in shown.items()) or "-",
        )
        earlier[key] = {**row, "progress": shown}
    return table


def metrics_table(rows: Iterable[Mapping[str, Any]], *, wide: bool) -> Table:
    """Return a row per container and metric, those to go by first: which family found it, its name
    as printed, how many points, the first and last value."""
    table = Fitted(
        ("CONTAINER", "left"), ("METRIC", "name"), ("AIM", "left"), ("FAMILY", "left"),
        ("POINTS", "right"), ("FIRST", "right"), ("LAST", "right"),
        *([("AS PRINTED", "wrap")] if wide else []),
    )  # fmt: skip
    found: dict[tuple[str, str, str], list[Mapping[str, Any]]] = {}
    for row in rows:
        key = (row["container_name"] or "", row["metric"], row["source"] or "")
        found.setdefault(key, []).append(row)
    ordered = sorted(found.items(), key=lambda item: (item[0][0], metrics.rank(item[0][1])))
    for (name, metric, family), points in ordered:
        table.add_row(
            name, metric, metrics.objective(metric), family, str(len(points)),
            f"{points[0]['value']:.4g}", f"{points[-1]['value']:.4g}",
            *([points[0].get("metric_original") or metric] if wide else []),
        )  # fmt: skip
    return table


def clipped(name: str, width: int) -> str:
    """Return a name made printable, cut to a width."""
    text = printable(name)
    return text if cell_len(text) <= width else set_cell_size(text, max(0, width - 1)) + "…"


def cores(row: Mapping[str, Any], before: Mapping[str, Any] | None) -> str:
    """Return the cores that a row's subject has used since the row before, else since its start."""
    used, start = row["cpu_seconds"], row.get("started_at")
    if used is None:
        return "-"
    if before and before["cpu_seconds"] is not None and before.get("started_at") == start:
        used, start = max(0.0, used - before["cpu_seconds"]), before["time"]
    span = (row["time"] - start).total_seconds() if start else 0
    return f"{used / span:z.2f}" if span > 0 else "-"


def size(count: int | None) -> str:
    """Return a number of bytes in three digits."""
    if count is None:
        return "-"
    amount = float(count)
    for unit in ("B", "KiB", "MiB", "GiB"):
        if amount < 1000 or unit == "GiB":
            break
        amount /= 1024
    return f"{amount:.3g} {unit}"


def _settings(settings: Settings) -> str:
    """Return settings as people say them: 1.5 cpus, weight 300, no limit."""
    words = []
    if "cpus" in settings:
        cpus = settings["cpus"]
        words.append("no limit" if cpus is None else f"{cpus:g} cpus")
    if settings.get("cpu_weight") is not None:
        words.append(f"weight {settings['cpu_weight']:g}")
    if "cpuset" in settings:
        words.append(f"on CPUs {settings['cpuset'] or 'all'}")
    if "state" in settings:
        words.append(str(settings["state"]))
    if "turn_s" in settings:
        words.append(f"turn {settings['group'] + 1}, {settings['turn_s']:g} s")
    if "memory" in settings:
        words.append("no memory limit" if settings["memory"] is None
                     else size(settings["memory"]))  # fmt: skip
    return ", ".join(words) or "-"


def verdicts_table(verdicts: Iterable[Verdict], *, wide: bool) -> Table:
    """Return a row per container: its class, share, setting now and then, and why; on a wide screen
    what it was judged by and what is predicted, too."""
    table = Fitted(
        ("CONTAINER", "left"), ("CLASS", "left"), ("SHARE", "right"), ("NOW", "left"),
        ("THEN", "left"), *([("SIGNAL", "left"), ("PREDICTION", "left")] if wide else []),
        ("WHY", "wrap"),
    )  # fmt: skip
    for verdict in verdicts:
        wanted = verdict.setting or {}
        shown = {"cpu_weight", "cpuset"} & set(wanted) or {"cpus"}
        present = {k: v for k, v in verdict.present.items() if k in shown}
        share = verdict.grant.share
        more = (verdict.grant.signal or "-", verdict.grant.prediction or "-")
        table.add_row(
            verdict.name,
            verdict.job_class,
            "-" if share is None else f"{share:.0%}",
            _settings(present),
            _settings(wanted) if wanted else "as now",
            *(more if wide else ()),
            verdict.reason,
            style=_CLASS_COLOURS.get(verdict.job_class, ""),
        )
    return table


def results_table(results: Iterable[Result]) -> Table:
    """Return a row per action: what became of it, the setting before and after."""
    table = Fitted(
        ("CONTAINER", "left"), ("RESULT", "left"), ("BEFORE", "left"), ("AFTER", "left"),
        ("NOTE", "wrap"),
    )  # fmt: skip
    for result in results:
        table.add_row(
            result.container_name,
            result.status.value,
            _settings(result.before),
            _settings(result.after),
            result.error or "",
            style=_STATUS_COLOURS.get(result.status.value, ""),
        )
    return table


def runs_table(rows: Iterable[Mapping[str, Any]]) -> Table:
    """Return a row per policy, run or job: seconds, and beside them ratios to the baseline."""
    from dltools.report.cells import cells

    found = cells(list(rows))
    looks = ["right" if right else _LOOKS.get(header, "name")
             for header, right in zip(found.headers, found.right, strict=True)]  # fmt: skip
    table = Fitted(*zip(found.headers, looks, strict=True))
    for row in found.rows:
        table.add_row(*row)
    return table
