"""Saved logs that dl-probe reads: rows go out while they are read."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from itertools import chain
from typing import TYPE_CHECKING

from dltools.cli.exits import print_message
from dltools.cli.formats import ObservationFormat, is_directory
from dltools.cli.input_streams import open_log
from dltools.cli.probe.outputs import holds_one_sample, open_output
from dltools.cli.remarks import print_remark
from dltools.observations.formats.parquet import FEWEST_ROWS
from dltools.probe import saved_logs
from dltools.probe.progress import Automatic, Pattern
from dltools.text import listed

if TYPE_CHECKING:
    from dltools.cli.probe.request import Request
    from dltools.observations.table import Row


def read_logs(request: Request, pattern: Pattern | None) -> None:
    """Write the rows of saved logs, or list their metrics."""
    count = 0
    gaps: Counter[str] = Counter()
    dropped: dict[str, dict[str, int]] = {}

    def counting(batches: Iterator[list[Row]]) -> Iterator[list[Row]]:
        nonlocal count
        for batch in batches:
            count += len(batch)
            gaps.update(f"{row['container_name']}: {row['gap']}" for row in batch if row.get("gap"))
            yield batch

    with _opened(request, pattern, dropped) as batches:
        counted = counting(batches)
        if request.lists_metrics or (
            request.format is ObservationFormat.TABLE and request.output is None
        ):
            from dltools.cli.probe.tables import print_metrics

            print_metrics(chain.from_iterable(counted), dropped)
        else:
            _write(request, counted)
    if not count:
        print_remark(f"no progress found in {listed(request.logs)}; --pattern finds more")
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
        batches = iter([list(_newest(chain.from_iterable(batches)))])
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


def _newest(rows: Iterable[Row]) -> Iterable[Row]:
    """Return the newest row of each metric."""
    newest: dict[tuple[str, str], Row] = {}
    for row in rows:
        newest[row["container_id"], row["metric"]] = row
    return newest.values()
