"""Saved logs that dl-probe reads: rows go out while they are read, or a line is explained."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from itertools import chain
from typing import TYPE_CHECKING

from dltools.cli.exits import print_message
from dltools.cli.formats import ObservationFormat, is_directory
from dltools.cli.input_streams import open_log
from dltools.cli.probe.outputs import holds_one_sample, open_output
from dltools.cli.remarks import print_remark
from dltools.errors import DataError
from dltools.labels import METRIC, PATTERN
from dltools.observations.formats.parquet import FEWEST_ROWS
from dltools.probe import saved_logs
from dltools.probe.explained_line import Drawing, LeftOut, explain_line
from dltools.probe.progress import Automatic, Pattern
from dltools.text import listed, printable

if TYPE_CHECKING:
    from dltools.cli.probe.request import Request
    from dltools.observations.table import Row
    from dltools.probe.progress import Point

_LONGEST = 160
_MOST_DRAWINGS = 3


def read_logs(request: Request, pattern: Pattern | None) -> None:
    """Write the rows of saved logs, or list their metrics."""
    count, wanted = 0, request.metrics
    gaps: Counter[str] = Counter()
    dropped: dict[str, dict[str, int]] = {}

    def asked_for(batches: Iterator[list[Row]]) -> Iterator[list[Row]]:
        """Yield the rows that are asked for, and count all."""
        nonlocal count
        for batch in batches:
            count += len(batch)
            gaps.update(f"{row['container_name']}: {row['gap']}" for row in batch if row.get("gap"))
            kept = [row for row in batch if not wanted or row["metric"] in wanted]
            if kept:
                yield kept

    with _opened(request, pattern, dropped) as batches:
        counted = asked_for(batches)
        if request.lists_metrics or (
            request.format is ObservationFormat.TABLE and request.output is None
        ):
            from dltools.cli.probe.tables import print_metrics

            print_metrics(chain.from_iterable(counted), dropped)
        else:
            _write(request, counted)
    if not count:
        print_remark(
            f"no progress found in {listed(request.logs)}; LOG:LINE says how a line was read, "
            "--pattern finds more"
        )
    if request.is_verbose:
        print_message(f"sampled {count} progress")
        for gap, number in gaps.items():
            print_message(f"{gap} ({number} rows)")


@contextmanager
def _opened(
    request: Request, pattern: Pattern | None, dropped: dict[str, dict[str, int]]
) -> Iterator[Iterator[list[Row]]]:
    """Open the logs, and give their rows in order of time.

    At the end `dropped` has the number of points that were taken for no series, by log and metric.
    """
    start = request.logs_start or saved_logs.START
    names = saved_logs.container_names(request.logs)
    with ExitStack() as stack:
        streams = [stack.enter_context(open_log(file)) for file in request.logs]
        yield saved_logs.merged(
            [
                saved_logs.progress_batches(
                    stream, name, pattern or Automatic(), start, dropped.setdefault(name, {})
                )
                for stream, name in zip(streams, names, strict=True)
            ]
        )


def _write(request: Request, batches: Iterator[list[Row]]) -> None:
    from dltools.observations.table import to_table

    if holds_one_sample(request.format):
        batches = iter([_newest(chain.from_iterable(batches))])
    elif request.output is not None and is_directory(request.output):
        batches = _in_large_parts(batches)
    with open_output(request) as writer:
        first = next(batches, [])
        for batch in chain([first], batches):
            writer.write(to_table(batch))


def _in_large_parts(batches: Iterator[list[Row]]) -> Iterator[list[Row]]:
    """Join batches, so that a directory does not get a file for each."""
    rows: list[Row] = []
    for batch in batches:
        rows += batch
        if len(rows) >= FEWEST_ROWS:
            yield rows
            rows = []
    yield rows


def _newest(rows: Iterable[Row]) -> list[Row]:
    """Return the newest row of each metric."""
    found: dict[tuple[str, str], Row] = {}
    for row in rows:
        key = (row["container_id"], row["metric"])
        if key not in found or found[key]["time"] <= row["time"]:
            found[key] = row
    return list(found.values())


def explain(file: str, number: int, pattern: Pattern | None) -> None:
    """Print how a line of a log was read. Raises `DataError` if there is none."""
    with open_log(file) as stream:
        drawings = explain_line(stream, number, pattern)
    if not drawings:
        raise DataError(f"{file}: line {number} is blank, or the log is shorter")
    for drawing in drawings[-_MOST_DRAWINGS:]:
        for title, text in _lines(drawing):
            print(f"{title:<10}{printable(text)}")
    earlier = len(drawings) - _MOST_DRAWINGS
    if earlier > 0:
        print(f"{'':<10}{earlier} earlier drawings of this line are left out here")
    sys.stdout.flush()


def _lines(drawing: Drawing) -> Iterator[tuple[str, str]]:
    line = drawing.line
    yield ("text", line.text if len(line.text) <= _LONGEST else f"{line.text[:_LONGEST]}...")
    if line.rank:
        yield "rank", line.rank
    if line.stamp:
        yield "stamp", f"{line.stamp}, before the program's own line"
    if line.is_redrawn:
        yield "drawn", "over the line before"
    for point in drawing.kept:
        yield "point", f"{_shown(point)}, found by {point.source}"
    for point in drawing.repeated:
        yield "repeated", f"{_shown(point)}: an earlier line, or another rank, has it"
    for point in drawing.noise:
        yield "doubtful", f"{_shown(point)}: no line like this one came again"
    for one in drawing.left_out:
        yield "left out", f"{one.name} {one.number}: {one.why}"
    if not (drawing.points or drawing.repeated or drawing.left_out):
        yield "nothing", "no name with a number beside it"
    yield from _advice(drawing)


def _shown(point: Point) -> str:
    place = [f"step {point.step}"] if point.step is not None else []
    place += [f"epoch {point.epoch:g}"] if point.epoch is not None else []
    name = "" if point.original in ("", point.metric) else f" (printed as {point.original})"
    return ", ".join([f"{point.metric} = {point.value:g}{name}", *place])


def _advice(drawing: Drawing) -> Iterator[tuple[str, str]]:
    if drawing.kept:
        names = " or ".join(f"{METRIC}={point.metric}" for point in drawing.kept[:3])
        yield "label", f"{names} judges the job by it"
    elif drawing.noise:
        yield (
            "label",
            f"{PATTERN}, with a group such as (?P<{drawing.noise[0].metric}>...), counts it",
        )
    elif not drawing.repeated and (wanted := _wanted(drawing)) is not None:
        yield "label", f"{PATTERN}='{wanted.pattern}' finds it"


def _wanted(drawing: Drawing) -> LeftOut | None:
    """Return what a user probably wants to be found."""
    known: Sequence[LeftOut] = [one for one in drawing.left_out if one.pattern]
    likely = (one for one in known if one.why != "a counter" and "." in one.number)
    return next(likely, next(iter(known), None))
