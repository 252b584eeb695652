"""The live table: a row per container, redrawn in place with each sample."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Self

from rich import box
from rich.cells import cell_len
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from dltools.cli.console import make_console
from dltools.cli.probe.sparklines import sparkline, trend
from dltools.cli.screen import Screen
from dltools.cli.words import clipped, cores, limited, size, widest_list
from dltools.labels import METRIC, OBJECTIVE
from dltools.observations import metric_names
from dltools.text import printable

if TYPE_CHECKING:
    import pyarrow as pa

_KEPT = 120
"""Points of a metric that a sparkline shows at most."""

_GAP = 3
"""Blanks between two columns."""

_SHORT_NAME = 8
"""Columns to which names shrink where numbers need them."""

_HOST = 32
"""Columns of a host's name at most."""

_IN_LIMIT = ("running", "paused")
"""States that the column LIMIT shows."""


@dataclass(slots=True)
class _Seen:
    """What has been seen of one container: newest row, the one before, and its metrics' points."""

    row: Mapping[str, Any] = field(default_factory=dict)
    before: Mapping[str, Any] | None = None
    points: dict[str, deque[float]] = field(default_factory=dict)
    labels: dict[str, str] = field(default_factory=dict)
    gpu: list[Mapping[str, Any]] = field(default_factory=list)


@dataclass(slots=True)
class _Numbers:
    """A column that is as wide as its cells, and `least` at least."""

    header: str
    least: int
    cells: list[str]

    @property
    def width(self) -> int:
        return max(self.least, *map(cell_len, (self.header, *self.cells)))


class LiveTable:
    """Writes samples to the terminal; the last one stays when it is closed."""

    def __init__(self) -> None:
        """Nothing is drawn before the first sample."""
        self._console = make_console()
        self._seen: dict[str, _Seen] = {}
        self._node: Mapping[str, Any] = {}
        self._node_before: Mapping[str, Any] | None = None
        self._present: list[_Seen] | None = None
        self._screen = Screen(self._console, self._newest)

    def __enter__(self) -> Self:
        """Take the terminal."""
        self._screen.open()
        return self

    def __exit__(self, *_: object) -> None:
        """Give the terminal back, whatever has happened."""
        self._screen.close()

    def write(self, table: pa.Table) -> None:
        """Redraw the table with one more sample."""
        self._present = self._take(table.to_pylist())
        self._screen.draw()

    def wait(self, seconds: float) -> bool:
        """Wait for the next sample, redrawing as the screen needs it; tell whether to quit."""
        return self._screen.wait(seconds)

    def close(self) -> None:
        """Leave the last table on the screen."""

    def _newest(self) -> RenderableType | None:
        return None if self._present is None else self._view(self._present)

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
            parts.append(Text("no containers are running, or the filters match none"))
        return Group(*parts)

    def _header(self, count: int) -> Text:
        node = self._node
        if not node:
            return Text("no sample yet")
        words = [f"{clipped(node['host'], _HOST)}  {node['time']:%H:%M:%S}Z"]
        used = cores(node, self._node_before) if self._node_before else "-"
        if node["cpu_count"]:
            words.append(f"CPU {used} of {node['cpu_count']:g}")
        if node["memory_total_bytes"] and node["memory_available_bytes"] is not None:
            taken = node["memory_total_bytes"] - node["memory_available_bytes"]
            words.append(f"memory {size(taken)} of {size(node['memory_total_bytes'])}")
        if node["gpu_count"]:
            words.append(f"{node['gpu_count']} GPU")
        words.append(f"{count} container{'' if count == 1 else 's'}")
        while len(words) > 1 and cell_len("  ".join(words)) > self._console.width:
            words.pop()  # rather than a part of a number
        return Text("  ".join(words), style="bold", no_wrap=True, overflow="ellipsis")

    def _table(self, shown: list[_Seen], width: int) -> Table:
        wide = width >= 120
        numbers = self._numbers(shown, wide=wide)
        known = [_evaluated(seen) for seen in shown]
        names = [_name(seen) for seen in shown]
        longest = max(map(cell_len, [*names, "CONTAINER"]))
        name_width = min(longest, 40 if wide else 20)
        need = max((_narrowest(seen, of) for seen, of in zip(shown, known, strict=True)), default=1)

        def room() -> int:
            taken = sum(column.width + _GAP for column in numbers)
            return width - name_width - _GAP - taken

        name_width = max(min(name_width, _SHORT_NAME), name_width + min(0, room() - need))
        while numbers and room() < (need if numbers[1:] else need - _SHORT_NAME + 2):
            numbers.pop()  # a column less, rather than a part of a number

        table = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False, header_style="bold")
        table.add_column("CONTAINER", width=name_width, no_wrap=True, overflow="ellipsis")
        table.add_column("PROGRESS", width=max(1, room()), no_wrap=True, overflow="ellipsis")
        for column in numbers:
            table.add_column(column.header, justify="right", width=column.width, no_wrap=True)
        said = [_said(seen, of[:1]) for seen, of in zip(shown, known, strict=True)]
        label = min(max(map(cell_len, said), default=0), room())
        plain = not self._console.encoding.startswith("utf")
        bars = 0 if plain else min(room() - label - 1, 40 if wide else 16)
        for at, (seen, of) in enumerate(zip(shown, known, strict=True)):
            table.add_row(
                clipped(names[at], name_width),
                _progress(seen, of, label, bars, wide=wide),
                *(column.cells[at] for column in numbers),
                style="dim" if seen.row["state"] != "running" else "",
            )
        return table

    def _numbers(self, shown: list[_Seen], *, wide: bool) -> list[_Numbers]:
        """Return the columns of numbers; on a narrow screen the last ones go first."""
        cpus, listed = self._node.get("cpu_count"), widest_list(seen.row for seen in shown)
        found = [
            _Numbers("CPU", 5, [cores(seen.row, seen.before) for seen in shown]),
            _Numbers("LIMIT", 6, [limited(seen.row, cpus, listed) for seen in shown]),
            _Numbers("MEMORY", 8, [size(seen.row["memory_working_set_bytes"]) for seen in shown]),
        ]
        if any(seen.gpu for seen in shown):
            found.append(_Numbers("GPU", 13, [_gpu(seen) for seen in shown]))
        if wide:
            threads = [seen.row["thread_count"] for seen in shown]
            found.append(_Numbers("THREADS", 7, ["-" if n is None else str(n) for n in threads]))
            found.append(_Numbers("HELD BACK", 9, [_held_back(seen) for seen in shown]))
        return found


def _name(seen: _Seen) -> str:
    state = seen.row["state"]
    return printable(f"{seen.row['container_name']}{'' if state in _IN_LIMIT else f' ({state})'}")


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
    held = max(0.0, seen.row[key] - seen.before[key])  # a restart begins anew
    return f"{100 * held / span:.0f} %" if span > 0 else "-"


def _evaluated(seen: _Seen) -> list[str]:
    """Return a container's metrics, the one to go by first."""
    names = sorted(seen.points, key=metric_names.evaluation_rank)
    wanted = seen.labels.get(METRIC)
    if wanted in seen.points:
        names.remove(wanted)
        names.insert(0, wanted)
    return names


def _said(seen: _Seen, names: list[str], width: int = 1000) -> str:
    """Return metrics and their newest values; the names give way to fit a width."""
    values = [f"{seen.points[name][-1]:.4g}" for name in names]
    most = (width - sum(map(len, values))) // (len(values) or 1) - 1
    return "  ".join(
        f"{clipped(name, most)} {value}" for name, value in zip(names, values, strict=True)
    )


def _narrowest(seen: _Seen, names: list[str]) -> int:
    """Return how much room the first metric's value needs, beside a few letters of its name."""
    return len(f"{seen.points[names[0]][-1]:.4g}") + _SHORT_NAME if names else 1


def _progress(seen: _Seen, names: list[str], label: int, bars: int, *, wide: bool) -> Text:
    """Return the evaluation metric and its newest value, `label` wide, its course in `bars`, and
    the other metrics on a wide screen."""
    if not names:
        return Text("-", style="dim")
    said = _said(seen, names[:1], label)
    shown = Text(said + " " * (label - cell_len(said)))
    points = seen.points[names[0]]
    if bars >= 4:
        aim = seen.labels.get(OBJECTIVE) or metric_names.objective(names[0])
        course = sparkline(points, bars) if len(points) > 1 else ""
        shown.append(f" {course.ljust(bars)}", style=trend(points, aim))
    if wide and names[1:]:
        shown.append(f"  {_said(seen, names[1:4])}", style="dim")
    return shown
