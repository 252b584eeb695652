"""The live table of dl-probe: a row per container, redrawn in place with each sample.

It shows as much as fits onto the screen, without cutting a number.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

from rich import box
from rich.cells import cell_len
from rich.console import Console, Group, RenderableType
from rich.table import Table
from rich.text import Text

from dltools.cli.destinations import make_console
from dltools.cli.fitted_table import FittedTable
from dltools.cli.probe.controls import HELP, Controls
from dltools.cli.probe.observed_hosts import Observed, ObservedContainer, ObservedHosts
from dltools.cli.screen import Screen
from dltools.cli.words import clip, cpu_use, limits, listed_cpus, named, role, size

if TYPE_CHECKING:
    import pyarrow as pa

_WIDE = 120
"""Columns from which a screen shows more numbers and metrics."""
_GAP = 3
"""Blanks between two columns."""
_SHORT_NAME = 8
"""Columns to which names shrink where numbers need them."""
_LONGEST_HOST = 32
"""Columns of a host's name at most."""
_SHORT_HOST = 16
"""Columns of a host's name where there are several."""
_FEWEST_BARS = 4
_BARS = "▁▂▃▄▅▆▇█"


class LiveTable:
    """Draws samples on the terminal; the last drawing stays when it is closed."""

    def __init__(self) -> None:
        """Nothing is drawn before the first sample."""
        self._console = make_console()
        self._hosts = ObservedHosts()
        self._controls = Controls()
        self._screen = Screen(self._console, self._view, self._controls.press)

    def __enter__(self) -> Self:
        """Take the terminal."""
        self._screen.open()
        return self

    def __exit__(self, *_: object) -> None:
        """Give the terminal back."""
        self._screen.close()

    def write(self, table: pa.Table) -> None:
        """Redraw the table with one more sample."""
        self._hosts.take(table.to_pylist())
        self._screen.draw()

    def wait(self, seconds: float) -> bool:
        """Wait for the next sample, and redraw where the screen changes; tell whether to quit."""
        return self._screen.wait(seconds)

    def close(self) -> None:
        """Leave the last drawing on the screen."""

    def _view(self) -> RenderableType | None:
        if not self._hosts.is_sampled:
            return None
        return live_view(self._hosts, self._console, self._controls)


@dataclass(slots=True)
class _Numbers:
    """A column of numbers, as wide as its cells and at least `least`."""

    header: str
    least: int
    cells: list[str]

    @property
    def width(self) -> int:
        return max(self.least, *map(cell_len, (self.header, *self.cells)))


def live_view(
    hosts: ObservedHosts, console: Console, controls: Controls | None = None
) -> RenderableType:
    """Return a header, a row per container as the controls choose, and how many do not fit."""
    width, height = console.size
    controls = controls or Controls()
    parts: list[RenderableType] = [_header(hosts, width)]
    if controls.has_help:
        return Group(*parts, *(Text(line, no_wrap=True, overflow="ellipsis") for line in HELP))
    room = max(1, height - 4)
    chosen = hosts.by_name
    controls.page_rows = room - 1 if len(chosen) > room or controls.in_words else room
    chosen = controls.chosen(chosen)
    shown = chosen[controls.first : controls.first + controls.page_rows]
    is_plain = not console.encoding.startswith("utf")
    if controls.has_details:
        parts.append(_details(hosts, shown))
    else:
        parts.append(_table(hosts, shown, width, is_plain))
    more = len(chosen) - len(shown) - controls.first
    words = [f"and {more} more"] if more else []
    words += [f"{controls.first} above"] if controls.first else []
    if foot := "  ".join(filter(None, (", ".join(words), controls.in_words))):
        parts.append(Text(foot, style="dim", no_wrap=True, overflow="ellipsis"))
    if not chosen and not controls.filter:
        parts.append(Text("no containers are running, or the filters match none"))
    return Group(*parts)


def _details(observed: ObservedHosts, shown: Sequence[ObservedContainer]) -> FittedTable:
    """Return a row per container: weight, quota, turn, role and what shows it."""
    table = FittedTable("CONTAINER", "WEIGHT:right", "QUOTA:right", "TURN:right", "ROLE:name")
    for one in shown:
        row, cpus = one.row, observed.cpus_of(one)
        quota, turn = row["cpu_limit_cores"], row.get("turn_seconds")
        weight = row.get("cpu_weight")
        table.add_row(
            clip(named(one.row), _LONGEST_HOST),
            "-" if weight is None else f"{weight:g}",
            "-" if quota in (None, cpus) else f"{quota:.3g}",
            f"{turn:g} s" if turn else "-",
            role(row),
            style="dim" if row["state"] != "running" else "",
        )
    return table


def _header(hosts: ObservedHosts, width: int) -> Text:
    count = len(hosts.containers)
    counted = f"{count} container{'' if count == 1 else 's'}"
    if not hosts.nodes:
        return Text("no sample yet")
    newest = max(node.row["time"] for node in hosts.nodes.values())
    if len(hosts.nodes) == 1:
        (node,) = hosts.nodes.values()
        name = clip(node.row["host"], _LONGEST_HOST)
        words = [f"{name}  {newest:%H:%M:%S}Z", *_use(node), counted]
    else:
        words = [f"{len(hosts.nodes)} hosts  {newest:%H:%M:%S}Z", counted]
        words += [
            f"{clip(name, _SHORT_HOST)}: {' '.join(_use(node)[:1]) or 'no sample'}"
            for name, node in sorted(hosts.nodes.items())
        ]
    while len(words) > 1 and cell_len("  ".join(words)) > width:
        words.pop()
    return Text("  ".join(words), style="bold", no_wrap=True, overflow="ellipsis")


def _use(node: Observed) -> list[str]:
    """Return what is used of a host, as far as it is known."""
    row, words = node.row, []
    if row["cpu_count"]:
        used = cpu_use(row, node.before) if node.before and node.before["cpu_count"] else "-"
        words.append(f"CPU {used} of {row['cpu_count']:g}")
    if row["memory_total_bytes"] and row["memory_available_bytes"] is not None:
        taken = row["memory_total_bytes"] - row["memory_available_bytes"]
        words.append(f"memory {size(taken)} of {size(row['memory_total_bytes'])}")
    if row["gpu_count"]:
        words.append(f"{row['gpu_count']} GPU")
    return words


def _table(
    observed: ObservedHosts, shown: Sequence[ObservedContainer], width: int, is_plain: bool
) -> Table:
    is_wide = width >= _WIDE
    numbers = _numbers(observed, shown, is_wide=is_wide)
    names = [named(one.row) for one in shown]
    hosts = [clip(str(one.row["host"]), _SHORT_HOST) for one in shown]
    host_width = max(map(cell_len, [*hosts, "HOST"])) if len(observed.nodes) > 1 else 0
    room = width - host_width - _GAP if host_width else width
    name_width, progress_width = _fit(shown, names, numbers, room)
    table = Table(
        box=box.SIMPLE_HEAD,
        pad_edge=False,
        show_edge=False,
        header_style="bold",
        padding=(0, 1, 0, _GAP - 2),
    )
    if host_width:
        table.add_column("HOST", width=host_width, no_wrap=True)
    table.add_column("CONTAINER", width=name_width, no_wrap=True, overflow="ellipsis")
    table.add_column("PROGRESS", width=max(1, progress_width), no_wrap=True, overflow="ellipsis")
    for column in numbers:
        table.add_column(column.header, justify="right", width=column.width, no_wrap=True)
    values = [_values(one, one.metrics[:1]) for one in shown]
    value_width = min(max(map(cell_len, values), default=0), progress_width)
    bars = 0 if is_plain else min(progress_width - value_width - 1, 40 if is_wide else 16)
    for at, one in enumerate(shown):
        table.add_row(
            *([hosts[at]] if host_width else []),
            clip(names[at], name_width),
            _progress(one, value_width, bars, is_wide=is_wide),
            *(column.cells[at] for column in numbers),
            style="dim" if one.row["state"] != "running" else "",
        )
    return table


def _fit(
    shown: Sequence[ObservedContainer], names: Sequence[str], numbers: list[_Numbers], width: int
) -> tuple[int, int]:
    """Return the widths of names and of progress; drop the last columns of numbers where even the
    narrowest names leave no room."""
    longest = max(map(cell_len, [*names, "CONTAINER"]))
    name_width = min(longest, 40)
    needed = max(map(_narrowest, shown), default=1)

    def room() -> int:
        return width - name_width - _GAP - sum(column.width + _GAP for column in numbers)

    name_width = max(min(name_width, _SHORT_NAME), name_width + min(0, room() - needed))
    while numbers and room() < (needed if numbers[1:] else needed - _SHORT_NAME + 2):
        numbers.pop()
    return name_width, room()


def _numbers(
    observed: ObservedHosts, shown: Sequence[ObservedContainer], *, is_wide: bool
) -> list[_Numbers]:
    """Return the columns of numbers, the most important first."""
    listed = listed_cpus(one.row for one in shown)
    found = [
        _Numbers("CPU", 5, [cpu_use(one.row, one.before) for one in shown]),
        _Numbers("LIMIT", 6, [limits(one.row, observed.cpus_of(one), listed) for one in shown]),
        _Numbers("MEMORY", 8, [size(one.row["memory_working_set_bytes"]) for one in shown]),
    ]
    if any(one.gpus for one in shown):
        found.append(_Numbers("GPU", 13, [_gpu_use(one) for one in shown]))
    if is_wide:
        threads = [one.row["thread_count"] for one in shown]
        found.append(_Numbers("THREADS", 7, ["-" if n is None else str(n) for n in threads]))
        held = [one.rate("cpu_throttled_seconds") for one in shown]
        parts = ["-" if part is None else f"{100 * part:.0f} %" for part in held]
        found.append(_Numbers("HELD BACK", 9, parts))
    return found


def _gpu_use(container: ObservedContainer) -> str:
    if not container.gpus:
        return "-"
    ratios = [row["gpu_utilization_ratio"] for row in container.gpus]
    known = [ratio for ratio in ratios if ratio is not None]
    used = sum(row["gpu_memory_used_bytes"] or 0 for row in container.gpus)
    return f"{f'{100 * sum(known) / len(known):.0f} %' if known else '-'} {size(used)}"


def _values(container: ObservedContainer, metrics: Sequence[str], width: int = 1000) -> str:
    """Return metrics with their newest values; names are cut to fit a width."""
    values = [f"{container.points[metric][-1]:.4g}" for metric in metrics]
    longest_name = (width - sum(map(len, values))) // (len(values) or 1) - 1
    pairs = zip(metrics, values, strict=True)
    return "  ".join(f"{clip(metric, longest_name)} {value}" for metric, value in pairs)


def _narrowest(container: ObservedContainer) -> int:
    """Return the columns of the first metric's value and a few letters of its name."""
    metrics = container.metrics
    return len(f" {container.points[metrics[0]][-1]:.4g}") + _SHORT_NAME if metrics else 1


def _progress(container: ObservedContainer, width: int, bars: int, *, is_wide: bool) -> Text:
    """Return the first metric with its newest value, `width` wide, its sparkline of `bars`, and on
    a wide screen other metrics."""
    metrics = container.metrics
    if not metrics:
        return Text("-", style="dim")
    value = _values(container, metrics[:1], width)
    shown = Text(value + " " * (width - cell_len(value)))
    if bars >= _FEWEST_BARS:
        points = container.points[metrics[0]]
        course = sparkline(points, bars) if len(points) > 1 else ""
        style = trend(points, container.objective(metrics[0]))
        shown.append(f" {course.ljust(bars)}", style=style)
    if is_wide and metrics[1:]:
        shown.append(f"  {_values(container, metrics[1:4])}", style="dim")
    return shown


def trend(points: Iterable[float], aim: str) -> str:
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
