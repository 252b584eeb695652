"""Tables for people."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from rich.cells import cell_len, set_cell_size
from rich.table import Table

from dltools.cli.fitting import Fitted
from dltools.cpus import parse_cpus, widest
from dltools.observations import metrics
from dltools.observations.schema import DEFAULT_CPU_WEIGHT
from dltools.text import printable

if TYPE_CHECKING:
    from dltools.apply.status import Held
    from dltools.plan.decisions import JobDecision
    from dltools.plan.realisation.settings import Settings
    from dltools.plan.records import Result

_CLASS_COLOURS = {
    "NL": "green", "WL": "yellow", "CL": "cyan", "PC": "green", "WC": "yellow", "CC": "cyan",
    "P1": "green", "P3": "cyan", "S": "green", "G": "cyan", "B": "red",
}  # fmt: skip
_LOOKS = {"REALIZE": "left", "SET": "wrap", "ACTIONS": "left", "LIMITS": "left"}
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
    listed = widest_list(newest.values())
    for key, row in newest.items():
        before = earlier.get(key)
        shown = {**(before or {}).get("progress", {}), **progress.get(key, {})}
        table.add_row(
            row["container_name"],
            row["state"],
            cores(row, before),
            limited(row, (nodes.get(row["host"]) or {}).get("cpu_count"), listed),
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


def widest_list(rows: Iterable[Mapping[str, Any]]) -> int:
    """Return how many CPUs the lists of containers hold together."""
    return len(parse_cpus(widest(None, (row.get("cpuset") for row in rows)) or ""))


def limited(row: Mapping[str, Any], cpus: float | None, listed: int) -> str:
    """Return what holds a container: 0.5, weight 10, CPUs 0-1, paused; - for one that nothing
    holds. Its node has so many `cpus`, and its neighbours' lists hold so many."""
    quota, weight, cpuset = row["cpu_limit_cores"], row.get("cpu_weight"), row.get("cpuset")
    words = ["paused"] if row["state"] == "paused" else []
    if row.get("turn_seconds"):
        words.append(f"turns {row['turn_seconds']:g} s")
    if quota is not None and quota != cpus:
        words.append(f"{quota:.3g}")
    if weight is not None and weight != DEFAULT_CPU_WEIGHT:
        words.append(f"weight {weight:g}")
    if cpuset and len(parse_cpus(cpuset)) < max(cpus or 0.0, listed):
        words.append(f"CPUs {cpuset}")
    return ", ".join(words) or "-"


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


def described(settings: Settings, named: Iterable[str] = (), *, whole: bool = True) -> str:
    """Return settings as people say them: 1.5 cpus, weight 300, paused.

    Defaults are left out, but of those that are `named`; "no limit" is said where nothing else is
    to be said of the `whole` of a container's settings.
    """
    words = [str(settings["state"])] if settings.get("state", "running") != "running" else []
    if settings.get("turn_s"):
        place = f"turn {settings['group'] + 1}," if "group" in settings else "turns of"
        words.append(f"{place} {settings['turn_s']:g} s")
    if settings.get("cpus") is not None:
        words.append(f"{settings['cpus']:g} cpus")
    weight = settings.get("cpu_weight")
    if weight is not None and (weight != DEFAULT_CPU_WEIGHT or "cpu_weight" in named):
        words.append(f"weight {weight:g}")
    if settings.get("cpuset"):
        words.append(f"on CPUs {settings['cpuset']}")
    if settings.get("memory") is not None:
        words.append(size(settings["memory"]))
    if whole:
        return ", ".join(words) or ("no limit" if settings else "-")
    defaults = {"state": "running", "cpus": "no quota", "cpuset": "on all CPUs",
                "memory": "no memory limit"}  # fmt: skip
    words += [word for name, word in defaults.items()
              if name in named and settings.get(name) in (None, word)]  # fmt: skip
    return ", ".join(words) or "-"


def _changed(before: Settings, after: Settings) -> tuple[str, str]:
    """Return what differs between settings before and after; where nothing does, all of them."""
    names = [name for name in {**before, **after}
             if before.get(name, _UNKNOWN) != after.get(name, _UNKNOWN)]  # fmt: skip
    names = names or [*before]
    told = [{name: found[name] for name in names if name in found} for found in (before, after)]
    return tuple(described(one, one, whole=False) for one in told)  # type: ignore[return-value]


_UNKNOWN = object()


def verdicts_table(verdicts: Iterable[JobDecision], *, wide: bool) -> Table:
    """Return a row per container: its class, share, setting now and then, and why; on a wide screen
    what it was judged by and what is predicted, too."""
    table = Fitted(
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


def results_table(results: Iterable[Result]) -> Table:
    """Return a row per action: what became of it, the setting before and after."""
    table = Fitted(
        ("CONTAINER", "left"), ("RESULT", "left"), ("BEFORE", "left"), ("AFTER", "left"),
        ("NOTE", "wrap"),
    )  # fmt: skip
    for result in results:
        before, after = _changed(result.before, result.after)
        table.add_row(
            result.container_name,
            result.status.value,
            before,
            after,
            result.error or "",
            style=_STATUS_COLOURS.get(result.status.value, ""),
        )
    return table


def held_table(rows: Iterable[Held]) -> Table:
    """Return a row per container that is held: how it was found, how it is now, since when and by
    which run."""
    table = Fitted(
        ("CONTAINER", "left"), ("FOUND", "left"), ("NOW", "left"), ("SINCE", "left"),
        ("BY", "wrap"),
    )  # fmt: skip
    for one in rows:
        found, now = _changed(one.found, {"state": "gone"} if one.now is None else one.now)
        run, ended = one.run, "" if one.run.alive else " (ended)"
        table.add_row(
            one.name,
            described(one.found) if found == "-" else found,
            now,
            f"{one.since[5:10]} {one.since[11:19]}" if one.since else "-",
            f"{run.policy or '-'}, pid {run.pid}{ended}: {run.command}" if run.pid else "-",
            style="" if one.run.alive else "yellow",
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
