"""The live table of dl-probe: a row per container, redrawn in place with each sample.

It shows as much as fits onto the screen, without cutting a number.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

from rich.cells import cell_len
from rich.console import Console, Group, RenderableType
from rich.text import Text

from dltools.cli.destinations import make_console
from dltools.cli.fitted_table import FittedTable
from dltools.cli.screen import Event, Screen
from dltools.cli.words import clip, cpu_use, limits, listed_cpus, named, size
from dltools.observations.newest_rows import Observed, ObservedContainer, ObservedHosts

if TYPE_CHECKING:
    import pyarrow as pa

_WIDE = 120
"""Columns from which a screen shows more numbers and metrics."""
_LONGEST_NAME, _LONGEST_HOST = 40, 32
"""Columns of a container's and of a host's name at most."""
_SHORT_HOST = 16
"""Columns of a host's name where there are several."""
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


_Key = Callable[[ObservedContainer], Any]

SORTS: Mapping[str, _Key] = {
    "name": lambda one: (str(one.row["host"]), str(one.row["container_name"])),
    "CPU": lambda one: -(one.rate("cpu_seconds") or 0.0),
    "memory": lambda one: -(one.row["memory_working_set_bytes"] or 0),
    "weight": lambda one: -(one.row.get("cpu_weight") or 0.0),
    "role": lambda one: str(one.row.get("role") or "~"),
}
"""The orders, by name; within one, containers are in order of host and name."""


@dataclass(slots=True)
class Controls:
    """What a person has chosen by keys: the order, and the first row that is shown. `page_rows` is
    how many rows the last drawing had room for."""

    sort: str = "name"
    first: int = 0
    page_rows: int = 1
    _count: int = 0

    def press(self, key: str) -> Event | None:
        """Take a key: a character, or the name of one such as "up"."""
        if key in ("q", "Q"):
            return Event.QUIT
        before = self.sort, self.first
        steps = {"j": 1, "down": 1, "k": -1, "up": -1}
        steps |= {"pagedown": self.page_rows, "pageup": -self.page_rows}
        self.first = self._within(self.first + steps.get(key, 0))
        if key == "s":
            names = list(SORTS)
            self.sort = names[(names.index(self.sort) + 1) % len(names)]
        return Event.CHANGED if (self.sort, self.first) != before else None

    def page(self, containers: Sequence[ObservedContainer]) -> list[ObservedContainer]:
        """Return the containers that are shown."""
        self._count = len(containers)
        self.first = self._within(self.first)
        by_name = sorted(containers, key=SORTS["name"])
        return sorted(by_name, key=SORTS[self.sort])[self.first : self.first + self.page_rows]

    def _within(self, first: int) -> int:
        return max(0, min(first, self._count - self.page_rows))


def live_view(
    hosts: ObservedHosts, console: Console, controls: Controls | None = None
) -> RenderableType:
    """Return a header, a row per container as the controls choose, and how many do not fit."""
    width, height = console.size
    controls = controls or Controls()
    room, count = max(1, height - 4), len(hosts.containers)
    is_sorted = controls.sort != "name"
    controls.page_rows = room - 1 if count > room or is_sorted else room
    shown = controls.page(hosts.containers)
    is_plain = not console.encoding.startswith("utf")
    parts: list[RenderableType] = [_header(hosts, width), _table(hosts, shown, width, is_plain)]
    more = count - len(shown) - controls.first
    words = [f"and {more} more"] if more else []
    words += [f"{controls.first} above"] if controls.first else []
    chosen = f"by {controls.sort}" if is_sorted else ""
    if foot := "  ".join(filter(None, (", ".join(words), chosen))):
        parts.append(Text(foot, style="dim", no_wrap=True, overflow="ellipsis"))
    if not count:
        parts.append(Text("no containers are running, or the filters match none"))
    return Group(*parts)


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
) -> FittedTable:
    """Return a row per container, what matters least behind; of that a narrow screen lacks some."""
    is_wide = width >= _WIDE
    several, has_gpus = len(observed.nodes) > 1, any(one.gpus for one in shown)
    names = (several and "HOST:name", "CONTAINER:name", "METRIC:name", "VALUE:right")
    numbers = ("CPU:right", "LIMIT:right", "MEMORY:right", has_gpus and "GPU:right")
    more = (is_wide and "THREADS:right", is_wide and "HELD BACK:right")
    progress = (not is_plain and "COURSE", is_wide and "OTHERS")
    table = FittedTable(*names, *numbers, *more, *progress, is_cut=True)
    listed = listed_cpus(one.row for one in shown)
    for one in shown:
        row, metrics = one.row, one.metrics
        points = one.values[metrics[0]].newest if metrics else []
        threads, held = row["thread_count"], one.rate("cpu_throttled_seconds")
        table.add_row(
            clip(str(row["host"]), _SHORT_HOST),
            clip(named(row), _LONGEST_NAME),
            metrics[0] if metrics else "-",
            f"{points[-1]:.4g}" if points else "-",
            cpu_use(row, one.before),
            limits(row, observed.cpus_of(one), listed),
            size(row["memory_working_set_bytes"]),
            _gpu_use(one),
            "-" if threads is None else str(threads),
            "-" if held is None else f"{100 * held:.0f} %",
            sparkline(points, width // 8),
            "  ".join(f"{name} {one.values[name].last:.4g}" for name in metrics[1:4]),
            style=_style(one),
        )
    return table


def _style(container: ObservedContainer) -> str:
    """Return the colour of a row: how its first metric goes, dim while it does not run."""
    if container.row["state"] != "running":
        return "dim"
    metrics = container.metrics[:1]
    return "".join(trend(container.values[one].newest, container.objective(one)) for one in metrics)


def _gpu_use(container: ObservedContainer) -> str:
    if not container.gpus:
        return "-"
    ratios = [row["gpu_utilization_ratio"] for row in container.gpus]
    known = [ratio for ratio in ratios if ratio is not None]
    used = sum(row["gpu_memory_used_bytes"] or 0 for row in container.gpus)
    return f"{f'{100 * sum(known) / len(known):.0f} %' if known else '-'} {size(used)}"


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
    most = len(_BARS) - 1
    step = high / most - low / most or 1.0

    def bar(value: float) -> str:  # the means of equal values differ by their rounding
        return _BARS[min(most, round(value / step - low / step))]

    return "".join(bar(value) if math.isfinite(value) else "x" for value in values)
