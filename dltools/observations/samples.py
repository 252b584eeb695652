"""A table of observations as plain lists, host by host: what the fold walks over.

A host's node and container rows of one time are a tick. Container rows of all ticks stand in one
set of lists, so that as long as the same containers run, every n-th element is one container's.
"""

from __future__ import annotations

import bisect
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from dltools.observations.column_values import integers, optional, plain, reals, texts
from dltools.observations.schema import Kind
from dltools.observations.table import is_one_of

if TYPE_CHECKING:
    import pyarrow as pa

CHUNK = 1 << 16
"""Rows that are lists at one time, so that memory does not grow with the recording."""

_TEXTS = ("container_id", "container_name", "state", "labels", "cpuset")
_REALS = ("cpu_seconds", "cpu_limit_cores", "cpu_weight", "turn_seconds")
_INTEGERS = ("started_at", "thread_count")
_ROWS = (*_TEXTS, *_REALS, *_INTEGERS)
COLUMNS = ("time", "host", "kind", "cpu_count", "metric", "value", "step", "epoch", *_ROWS)
"""The columns that decide; no other is read."""

_RUNNING = ("running", "paused", "restarting")

Lists = dict[str, list[Any]]
Point = tuple[str, str, int, float, int | None, float]
"""Container id, metric, microseconds, value, step, epoch (NaN: unknown)."""


@dataclass(slots=True)
class Points:
    """Progress points of one container and metric in order of arrival; `at` is the next one."""

    times: list[int] = field(default_factory=list)
    values: list[float] = field(default_factory=list)
    steps: list[int | None] = field(default_factory=list)
    epochs: list[float] = field(default_factory=list)
    at: int = 0

    def upto(self, time: int) -> int:
        """Return the index behind the last point not later than a time."""
        return bisect.bisect_right(self.times, time, self.at)


@dataclass(slots=True)
class HostSamples:
    """A host's ticks: `times` (microseconds), `sizes` (CPUs; NaN: not said), `bounds` of the
    container rows of each in `rows`, and `first`, where in the table its first row stands."""

    times: list[int]
    first: list[int]
    sizes: list[float]
    bounds: list[int]
    rows: Lists
    points: dict[str, dict[str, Points]]

    def layout(self, tick: int) -> tuple[list[str], list[int | None], list[str | None]]:
        """Return who runs at a tick: ids, starts, labels."""
        low, high = self.bounds[tick], self.bounds[tick + 1]
        return (
            self.rows["container_id"][low:high],
            self.rows["started_at"][low:high],
            self.rows["labels"][low:high],
        )


@dataclass(slots=True)
class Remainder:
    """What a feed leaves for the next: the rows of the pending tick (`time` None: none) and the
    points after the last settled one."""

    time: int | None = None
    size: float = math.nan
    rows: Lists = field(default_factory=lambda: {name: [] for name in _ROWS})
    points: list[Point] = field(default_factory=list)

    def to_json(self) -> dict[str, Any]:
        """Return JSON values from which `rest_from_json` restores it."""
        return {
            "time": self.time,
            "size": _known(self.size),
            "rows": {name: [_known(v) for v in column] for name, column in self.rows.items()},
            "points": [[*p[:3], _text(p[3]), p[4], _known(p[5])] for p in self.points],
        }


def rest_from_json(data: Mapping[str, Any]) -> Remainder:
    """Return the rest that was saved. Raises KeyError, TypeError, ValueError or IndexError."""
    unknown = [None] * len(data["rows"]["container_id"])
    later = {"turn_seconds": unknown}  # a state saved before there was this column
    rows: Lists = {name: list({**later, **data["rows"]}[name]) for name in _ROWS}
    for name in _REALS:
        rows[name] = [math.nan if v is None else float(v) for v in rows[name]]
    if len({len(column) for column in rows.values()}) > 1:
        raise ValueError("columns of unequal length")
    points = [
        (str(p[0]), str(p[1]), int(p[2]), float(p[3]), p[4], math.nan if p[5] is None else p[5])
        for p in data["points"]
    ]
    size = data["size"]
    return Remainder(data["time"], math.nan if size is None else float(size), rows, points)


def _known(value: Any) -> Any:
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _text(value: float) -> float | str:
    return value if math.isfinite(value) else str(value)


# From tables


def chunks(table: pa.Table) -> Iterator[pa.Table]:
    """Yield a table's rows that decide, some at a time."""
    table = table.select(list(COLUMNS)).unify_dictionaries()
    for at in range(0, table.num_rows, CHUNK):
        yield table.slice(at, CHUNK)


def newest(table: pa.Table) -> int | None:
    """Return the newest time of the rows that decide, None where there are none."""
    import pyarrow.compute as pc

    counted = is_one_of(table.column("kind"), (Kind.NODE, Kind.CONTAINER, Kind.PROGRESS))
    latest: int | None = pc.max(table.column("time").cast("int64").filter(counted)).as_py()
    return latest


def feeds(
    table: pa.Table, rests: Mapping[str, Remainder], settled: Mapping[str, int | None]
) -> dict[str, HostSamples]:
    """Return each host's ticks in a table, behind what earlier ones have left.

    Ticks that are not later than the host's last settled one are passed over. Hosts that only
    have a rest are left out.
    """
    import pyarrow as pa

    table = table.append_column("position", pa.array(range(table.num_rows), pa.int64()))
    hosts = table.column("host")
    found = {}
    names = hosts.unique().to_pylist()
    for name in names:
        own = table if len(names) == 1 else table.filter(is_one_of(hosts, (name,)))
        found[name] = _feed(own, rests.get(name) or Remainder(), settled.get(name))
    return found


def pending(rest: Remainder) -> HostSamples:
    """Return the feed of one tick that a rest holds."""
    if rest.time is None:
        return HostSamples([], [], [], [0], rest.rows, _grouped(rest.points))
    bounds = [0, len(rest.rows["container_id"])]
    feed = HostSamples([rest.time], [-1], [rest.size], bounds, rest.rows, _grouped(rest.points))
    return _unique(feed)


def _feed(table: pa.Table, rest: Remainder, settled: int | None) -> HostSamples:
    kinds = table.column("kind")
    nodes, containers, progress = (
        table.filter(is_one_of(kinds, (kind,)))
        for kind in (Kind.NODE, Kind.CONTAINER, Kind.PROGRESS)
    )
    times, places = integers(containers, "time"), integers(containers, "position")
    rows = {
        **{name: texts(containers, name) for name in _TEXTS},
        **{name: reals(containers, name) for name in _REALS},
        **{name: optional(containers, name) for name in _INTEGERS},
    }
    node_times, node_places = integers(nodes, "time"), integers(nodes, "position")
    sizes = reals(nodes, "cpu_count")
    if settled is not None:
        times, places, rows = _later(settled, times, places, rows)
        node_times, node_places, kept = _later(settled, node_times, node_places, {"": sizes})
        sizes = kept[""]
    if rest.time is not None:
        many = len(rest.rows["container_id"])
        times = [rest.time] * many + times
        places = [-1] * many + places
        rows = {name: rest.rows[name] + rows[name] for name in _ROWS}
        node_times, node_places = [rest.time, *node_times], [-1, *node_places]
        sizes = [rest.size, *sizes]
        if any(time < rest.time for time in (*times[: many + 1], *node_times[:2])):
            times, places, rows = _sorted(times, places, rows)
            node_times, node_places, kept = _sorted(node_times, node_places, {"": sizes})
            sizes = kept[""]
    feed = _ticks(times, places, rows, node_times, node_places, sizes)
    feed.points = _points(progress, rest.points)
    return _unique(_running(feed))


def _ticks(
    times: list[int], places: list[int], rows: Lists,
    node_times: list[int], node_places: list[int], sizes: list[float],
) -> HostSamples:  # fmt: skip
    starts = [0, *(i for i in range(1, len(times)) if times[i] != times[i - 1])] if times else []
    begins = {times[i]: i for i in starts}
    size_at: dict[int, float] = {}
    place_at = {times[i]: places[i] for i in starts}
    for time, place, size in zip(node_times, node_places, sizes, strict=True):
        sound = 0 < size < math.inf
        if sound or time not in size_at:
            size_at[time] = size if sound else math.nan
        place_at[time] = min(place, place_at.get(time, place))
    ticks = sorted(place_at)
    bounds, at = [], len(times)
    for time in reversed(ticks):
        at = begins.get(time, at)
        bounds.append(at)
    bounds.reverse()
    return HostSamples(
        ticks,
        [place_at[time] for time in ticks],
        [size_at.get(time, math.nan) for time in ticks],
        [*bounds, len(times)],
        rows,
        {},
    )


def _running(feed: HostSamples) -> HostSamples:
    """Leave out rows without an id and of containers that do not run."""
    states, ids = feed.rows["state"], feed.rows["container_id"]
    odd = {state for state in set(states) if state and state not in _RUNNING}
    if not odd and all(ids):
        return feed
    kept = [i for i, (key, state) in enumerate(zip(ids, states, strict=True))
            if key and state not in odd]  # fmt: skip
    return _only(feed, kept)


def _unique(feed: HostSamples) -> HostSamples:
    """Of rows that name the same container at the same tick, keep the last."""
    ids = feed.rows["container_id"]
    doubled = False
    last: list[str] = []
    for low, high in pairwise(feed.bounds):
        layout = ids[low:high]
        if layout != last and len(set(layout)) != len(layout):
            doubled = True
            break
        last = layout
    if not doubled:
        return feed
    kept = []
    for low, high in pairwise(feed.bounds):
        kept += sorted({ids[i]: i for i in range(low, high)}.values())
    return _only(feed, kept)


def _only(feed: HostSamples, kept: Sequence[int]) -> HostSamples:
    rows = {name: [column[i] for i in kept] for name, column in feed.rows.items()}
    bounds = [bisect.bisect_left(kept, bound) for bound in feed.bounds]
    return HostSamples(feed.times, feed.first, feed.sizes, bounds, rows, feed.points)


def _later(
    settled: int, times: list[int], places: list[int], rows: Lists
) -> tuple[list[int], list[int], Lists]:
    at = bisect.bisect_right(times, settled)
    if at == 0:
        return times, places, rows
    return times[at:], places[at:], {name: column[at:] for name, column in rows.items()}


def _sorted(times: list[int], places: list[int], rows: Lists) -> tuple[list[int], list[int], Lists]:
    order = sorted(range(len(times)), key=times.__getitem__)
    return (
        [times[i] for i in order],
        [places[i] for i in order],
        {name: [column[i] for i in order] for name, column in rows.items()},
    )


def _points(progress: pa.Table, rest: Sequence[Point]) -> dict[str, dict[str, Points]]:
    """Return the points of a rest and of a table, by container and metric, in order of time."""
    import pyarrow as pa
    import pyarrow.compute as pc

    found = _grouped(rest)
    progress = progress.filter(pc.is_valid(progress.column("value")))
    ids, names = (progress.column(c).combine_chunks() for c in ("container_id", "metric"))
    progress = progress.filter(pc.and_(pc.is_valid(ids), pc.is_valid(names)))
    if progress.num_rows == 0:
        return found
    ids, names = (progress.column(c).combine_chunks() for c in ("container_id", "metric"))
    many = len(names.dictionary)
    keys = pc.add(pc.multiply(ids.indices.cast(pa.int64()), many), names.indices)
    order = pc.array_sort_indices(keys)  # stable
    sorted_ = progress.take(order)
    times, steps = integers(sorted_, "time"), optional(sorted_, "step")
    values = plain(sorted_.column("value").combine_chunks(), "d")
    epochs = reals(sorted_, "epoch")
    runs = plain(keys.take(order), "q")
    starts = [0, *(i for i in range(1, len(runs)) if runs[i] != runs[i - 1]), len(runs)]
    id_words, name_words = ids.dictionary.to_pylist(), names.dictionary.to_pylist()
    for low, high in pairwise(starts):
        key, metric = id_words[runs[low] // many], name_words[runs[low] % many]
        if not key or not metric:
            continue
        group = found.setdefault(key, {}).setdefault(metric, Points())
        late = bool(group.times) and group.times[-1] > times[low]
        group.times += times[low:high]
        group.values += values[low:high]
        group.steps += steps[low:high]
        group.epochs += epochs[low:high]
        if late:
            _put_in_order(group)
    return found


def _put_in_order(group: Points) -> None:
    order = sorted(range(len(group.times)), key=group.times.__getitem__)
    group.times = [group.times[i] for i in order]
    group.values = [group.values[i] for i in order]
    group.steps = [group.steps[i] for i in order]
    group.epochs = [group.epochs[i] for i in order]


def _grouped(points: Sequence[Point]) -> dict[str, dict[str, Points]]:
    found: dict[str, dict[str, Points]] = {}
    for key, metric, time, value, step, epoch in sorted(points, key=lambda point: point[2]):
        group = found.setdefault(key, {}).setdefault(metric, Points())
        group.times.append(time)
        group.values.append(value)
        group.steps.append(step)
        group.epochs.append(epoch)
    return found


def ungrouped(points: Mapping[str, Mapping[str, Points]], after: int | None) -> list[Point]:
    """Return the points after a time, in order of time."""
    found: list[Point] = []
    for key, own in points.items():
        for metric, group in own.items():
            at = 0 if after is None else bisect.bisect_right(group.times, after)
            found += [
                (key, metric, *point)
                for point in zip(
                    group.times[at:],
                    group.values[at:],
                    group.steps[at:],
                    group.epochs[at:],
                    strict=True,
                )
            ]
    return sorted(found, key=lambda point: (point[2], point[0], point[1]))
