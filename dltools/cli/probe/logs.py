"""Saved logs as observations: rows go out while the logs are read."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from itertools import chain
from typing import TYPE_CHECKING

from dltools.cli.exits import print_message
from dltools.cli.input_streams import open_log
from dltools.cli.observation_formats import ObservationFormat
from dltools.cli.probe.metrics import print_metrics
from dltools.cli.probe.outputs import holds_one_sample, open_output
from dltools.probe import saved_logs
from dltools.probe.progress import Automatic, Pattern

if TYPE_CHECKING:
    from dltools.cli.probe.request import Request
    from dltools.observations.table import Row


def read_logs(request: Request, pattern: Pattern | None) -> None:
    """Write the rows of saved logs, or list their metrics."""
    account = _Account(request)
    dropped: dict[str, dict[str, int]] = {}
    with _opened(request, pattern, dropped) as batches:
        counted = account.counted(batches)
        if request.lists_metrics or (
            request.format is ObservationFormat.TABLE and request.output is None
        ):
            print_metrics(chain.from_iterable(counted), dropped)
        else:
            _write(request, counted)
    account.report()


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
    with open_output(request) as writer:
        first = next(batches, [])
        for batch in chain([first], batches):
            writer.write(to_table(batch))


def _newest(rows: Iterable[Row]) -> list[Row]:
    """Return the newest row of each metric."""
    found: dict[tuple[str, str], Row] = {}
    for row in rows:
        key = (row["container_id"], row["metric"])
        if key not in found or found[key]["time"] <= row["time"]:
            found[key] = row
    return list(found.values())


class _Account:
    """What has been read: rows, and what is missing in them."""

    def __init__(self, request: Request) -> None:
        self._request = request
        self._rows = 0
        self._gaps: Counter[str] = Counter()

    def counted(self, batches: Iterable[list[Row]]) -> Iterator[list[Row]]:
        """Yield the rows that are asked for, and count them."""
        wanted = self._request.selection.metrics
        for batch in batches:
            self._rows += len(batch)
            if self._request.is_verbose:
                gaps = (row for row in batch if row.get("gap"))
                self._gaps.update(f"{row['container_name']}: {row['gap']}" for row in gaps)
            kept = [row for row in batch if not wanted or row["metric"] in wanted]
            if kept:
                yield kept

    def report(self) -> None:
        """Say that nothing was found; with --verbose, what was."""
        if not self._rows:
            print_message("no progress found in " + ", ".join(self._request.logs))
        if self._request.is_verbose:
            print_message(f"sampled {self._rows} progress")
            for gap, count in self._gaps.items():
                print_message(f"{gap} ({count} rows)")
