"""The live table: a row per container, redrawn in place with each sample."""

from __future__ import annotations

import itertools
import math
from collections import deque
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from rich import box
from rich.console import Group, RenderableType
from rich.live import Live
from rich.table import Table
from rich.text import Text

from dltools import metrics
from dltools.cli import options
from dltools.cli.tables import cores, limited, size, widest_list
from dltools.labels import METRIC, OBJECTIVE

if TYPE_CHECKING:
    import pyarrow as pa

_KEPT = 120
"""Points of a metric that a sparkline shows at most."""

_GAP = 3
"""Blanks between two columns."""

_IN_LIMIT = ("running", "paused")
"""States that the column LIMIT shows."""

_BARS = "▁▂▃▄▅▆▇█"


@dataclass(slots=True)
class _Seen:
    """What has been seen of one container: newest row, the one before, and its metrics' points."""

    row: Mapping[str, Any] = field(default_factory=dict)
    before: Mapping[str, Any] | None = None
    points: dict[str, deque[float]] = field(default_factory=dict)
    labels: dict[str, str] = field(default_factory=dict)
    gpu: list[Mapping[str, Any]] = field(default_factory=list)


class LiveTable:
    """Writes samples to the terminal; the last one stays when it is closed."""

    def __init__(self) -> None:
        """Nothing is drawn before the first sample."""
        self._console = options.console()
        self._live = Live(
            console=self._console, auto_refresh=False, vertical_overflow="crop",
            redirect_stdout=False, redirect_stderr=False,
        )  # fmt: skip
        self._seen: dict[str, _Seen] = {}
        self._node: Mapping[str, Any] = {}
        self._node_before: Mapping[str, Any] | None = None

    def write(self, table: pa.Table) -> None:
        """Redraw the table with one more sample."""
        present = self._take(table.to_pylist())
        if not self._live.is_started:
            self._live.start()
        self._live.update(self._view(present), refresh=True)

    def close(self) -> None:
        """Leave the last table on the screen."""
        if self._live.is_started:
            self._live.stop()

    def _take(self, rows: Iterable[Mapping[str, Any]]) -> list[_Seen]:
        import json

        present: dict[str, _Seen] = {}
        gpus: dict[str, list[Mapping[str, Any]]] = {}
        for row in rows:
            key = row["container_id"]
            if row["kind"] == "node":
                self._node_before = self._node or None
                self._node = row
            elif row["kind"] == "container":
                seen = self._seen.setdefault(key, _Seen())
                if key not in present:
                    seen.before = seen.row or None
                seen.row = row
                seen.labels = json.loads(row["labels"]) if row["labels"] else {}
                present[key] = seen
            elif row["kind"] == "progress":
                points = self._seen.setdefault(key, _Seen()).points
                points.setdefault(row["metric"], deque(maxlen=_KEPT)).append(row["value"])
            elif row["kind"] == "gpu" and key:
                gpus.setdefault(key, []).append(row)
        self._seen = present
        for key, seen in present.items():
            seen.gpu = gpus.get(key, [])
        return sorted(present.values(), key=lambda seen: str(seen.row["container_name"]))

    # The view

    def _view(self, present: list[_Seen]) -> RenderableType:
        width, height = self._console.size
        room = max(1, height - 4)
        shown = present if len(present) <= room else present[: room - 1]
        parts: list[RenderableType] = [self._header(len(present)), self._table(shown, width)]
        if len(shown) < len(present):
            parts.append(Text(f"and {len(present) - len(shown)} more", style="dim"))
        if not present:
            parts.append(Text("no containers are running, or none that the filters let through"))
        return Group(*parts)

    def _header(self, count: int) -> Text:
        node = self._node
        if not node:
            return Text("no sample yet")
        words = [f"{node['host']}  {node['time']:%H:%M:%S}Z"]
        used = cores(node, self._node_before) if self._node_before else "-"
        if node["cpu_count"]:
            words.append(f"CPU {used} of {node['cpu_count']:g}")
        if node["memory_total_bytes"] and node["memory_available_bytes"] is not None:
            taken = node["memory_total_bytes"] - node["memory_available_bytes"]
            words.append(f"memory {size(taken)} of {size(node['memory_total_bytes'])}")
        if node["gpu_count"]:
            words.append(f"{node['gpu_count']} GPU")
        words.append(f"{count} container{'' if count == 1 else 's'}")
        return Text("  ".join(words), style="bold", no_wrap=True, overflow="ellipsis")

    def _table(self, shown: list[_Seen], width: int) -> Table:
        table = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False, header_style="bold")
        gpus = any(seen.gpu for seen in shown)
        wide = width >= 120
        names = [_name(seen) for seen in shown]
        name_width = min(max(map(len, [*names, "CONTAINER"])), 40 if wide else 20)
        cpus, listed = self._node.get("cpu_count"), widest_list(seen.row for seen in shown)
        limits = [limited(seen.row, cpus, listed) for seen in shown]
        limit_width = max(map(len, [*limits, "LIMIT "]))
        fixed = name_width + 5 + limit_width + 8 + 4 * _GAP
        table.add_column("CONTAINER", width=name_width, no_wrap=True, overflow="ellipsis")
        table.add_column("PROGRESS", no_wrap=True, overflow="ellipsis", ratio=1)
        table.add_column("CPU", justify="right", width=5)
        table.add_column("LIMIT", justify="right", width=limit_width)
        table.add_column("MEMORY", justify="right", width=8)
        if gpus:
            table.add_column("GPU", justify="right", width=13)
            fixed += 13 + _GAP
        if wide:
            table.add_column("THREADS", justify="right", width=7)
            table.add_column("HELD BACK", justify="right", width=9)
            fixed += 7 + 9 + 2 * _GAP
        table.expand = True
        known = [_evaluated(seen) for seen in shown]
        label = max((len(_said(seen, of[:1])) for seen, of in zip(shown, known, strict=True)),
                    default=0)  # fmt: skip
        plain = not self._console.encoding.startswith("utf")
        bars = 0 if plain else min(width - fixed - label - 1, 40 if wide else 16)
        for seen, name, of, limit in zip(shown, names, known, limits, strict=True):
            cells: list[RenderableType] = [
                name,
                _progress(seen, of, label, bars, wide=wide),
                cores(seen.row, seen.before),
                limit,
                size(seen.row["memory_working_set_bytes"]),
            ]
            if gpus:
                cells.append(_gpu(seen))
            if wide:
                threads = seen.row["thread_count"]
                cells += ["-" if threads is None else str(threads), _held_back(seen)]
            table.add_row(*cells, style="dim" if seen.row["state"] != "running" else "")
        return table


def _name(seen: _Seen) -> str:
    state = seen.row["state"]
    return f"{seen.row['container_name']}{f' ({state})' if state not in _IN_LIMIT else ''}"


def _gpu(seen: _Seen) -> str:
    if not seen.gpu:
        return "-"
    known = [row["gpu_utilization_ratio"] for row in seen.gpu]
    busy = [ratio for ratio in known if ratio is not None]
    used = sum(row["gpu_memory_used_bytes"] or 0 for row in seen.gpu)
    return f"{f'{100 * sum(busy) / len(busy):.0f} %' if busy else '-'} {size(used)}"


def _held_back(seen: _Seen) -> str:
    """Return the share of the time in which the quota held it back."""
    key = "cpu_throttled_seconds"
    if seen.before is None or seen.row[key] is None or seen.before[key] is None:
        return "-"
    span = (seen.row["time"] - seen.before["time"]).total_seconds()
    return f"{100 * (seen.row[key] - seen.before[key]) / span:.0f} %" if span > 0 else "-"


def _evaluated(seen: _Seen) -> list[str]:
    """Return a container's metrics, the one to go by first."""
    names = sorted(seen.points, key=metrics.rank)
    wanted = seen.labels.get(METRIC)
    if wanted in seen.points:
        names.remove(wanted)
        names.insert(0, wanted)
    return names


def _said(seen: _Seen, names: list[str]) -> str:
    return "  ".join(f"{name} {seen.points[name][-1]:.4g}" for name in names)


def _progress(seen: _Seen, names: list[str], label: int, bars: int, *, wide: bool) -> Text:
    """Return the evaluation metric and its newest value, `label` wide, its course in `bars`, and
    the other metrics on a wide screen."""
    if not names:
        return Text("-", style="dim")
    shown = Text(_said(seen, names[:1]).ljust(label))
    points = seen.points[names[0]]
    if bars >= 4:
        aim = seen.labels.get(OBJECTIVE) or metrics.objective(names[0])
        course = sparkline(points, bars) if len(points) > 1 else ""
        shown.append(f" {course.ljust(bars)}", style=_trend(points, aim))
    if wide and names[1:]:
        shown.append(f"  {_said(seen, names[1:4])}", style="dim")
    return shown


def _trend(points: Iterable[float], aim: str) -> str:
    """Return a colour: green while the newest quarter is better than the one before, else yellow;
    red for what is no longer finite."""
    values = list(points)
    if not math.isfinite(values[-1]):
        return "red"
    count = max(1, len(values) // 4)
    new = [value for value in values[-count:] if math.isfinite(value)]
    old = [value for value in values[-2 * count : -count] if math.isfinite(value)]
    if not new or not old:
        return ""
    change = sum(new) / len(new) - sum(old) / len(old)
    return "green" if (change < 0) == (aim == "min") and change != 0 else "yellow"


def sparkline(points: Iterable[float], width: int) -> str:
    """Return the course of some values as at most `width` bars; x is what is not finite."""
    values = list(points)
    if len(values) > width:  # means of equal stretches
        edges = [round(index * len(values) / width) for index in range(width + 1)]
        values = [sum(values[a:b]) / (b - a) for a, b in itertools.pairwise(edges)]
    finite = [value for value in values if math.isfinite(value)]
    if not finite:
        return "x" * len(values)
    low, high = min(finite), max(finite)
    step = high / (len(_BARS) - 1) - low / (len(_BARS) - 1) or 1.0
    return "".join(
        _BARS[round(value / step - low / step)] if math.isfinite(value) else "x" for value in values
    )
