"""Text files of metrics, read as they grow: CSV, JSON lines, trainer_state.json, MLflow's.

CSV: Keras' CSVLogger, Lightning's metrics.csv, Ultralytics' results.csv, DVCLive's TSV. A last line
without its end is left for later.
"""

from __future__ import annotations

import csv
import json
from collections.abc import Mapping
from typing import Any, Protocol

from dltools.probe.progress.base import Point, report
from dltools.probe.progress.jsonlines import Log as JsonLog

Timed = tuple[float | None, Point]
"""A point and when it was, in seconds since the epoch; None where the file does not say."""

_STEPS = ("step", "global_step", "iteration", "iter", "batch")
_TIMES = ("wall_time", "timestamp", "unix_time")
_LONGEST = 1 << 20


class Reader(Protocol):
    """Reads one file; `whole` readers get all of it each time it has changed."""

    whole: bool

    def feed(self, data: bytes) -> list[Timed]:
        """Return the points in what is new of the file, or in all of it for a `whole` reader."""


class Csv:
    """A CSV file with a header."""

    whole = False

    def __init__(self) -> None:
        """Before the header."""
        self._rest = b""
        self._names: list[str] = []
        self._delimiter = ","

    def feed(self, data: bytes) -> list[Timed]:
        """Return the points of the rows that are now whole."""
        head, newline, self._rest = (self._rest + data).rpartition(b"\n")
        if len(self._rest) > _LONGEST:
            self._rest = b""
        if not newline:
            return []
        found: list[Timed] = []
        for line in head.decode("utf-8", "replace").replace("\ufeff", "").splitlines():
            if line.strip():
                found += self._row(line)
        return found

    def _row(self, line: str) -> list[Timed]:
        if not self._names:
            self._delimiter = max(",\t;", key=line.count)
            self._names = [name.strip() for name in self._cut(line)]
            return []
        values = dict(zip(self._names, (cell.strip() for cell in self._cut(line)), strict=False))
        return points_of(values, "csv")

    def _cut(self, line: str) -> list[str]:
        try:
            return next(csv.reader([line], delimiter=self._delimiter), [])
        except csv.Error:
            return []


class JsonLines:
    """A file of JSON objects, one a line."""

    whole = False

    def __init__(self) -> None:
        """Nothing is read yet."""
        self._rest = b""
        self._log = JsonLog()

    def feed(self, data: bytes) -> list[Timed]:
        """Return the points of the lines that are now whole."""
        head, newline, self._rest = (self._rest + data).rpartition(b"\n")
        if len(self._rest) > _LONGEST:
            self._rest = b""
        if not newline:
            return []
        found: list[Timed] = []
        for line in head.decode("utf-8", "replace").splitlines():
            points = self._log.points(line)
            time = _time_in(line) if points else None
            found += [(time, point._replace(source="jsonl")) for point in points]
        return found


class TrainerState:
    """Hugging Face's trainer_state.json, which is written anew each time."""

    whole = True

    def feed(self, data: bytes) -> list[Timed]:
        """Return the points of the whole file."""
        try:
            history = json.loads(data)["log_history"]
            entries = [entry for entry in history if isinstance(entry, dict)]
        except (ValueError, KeyError, TypeError, RecursionError):
            return []
        found: list[Timed] = []
        for entry in entries:
            if "train_runtime" not in entry:  # the run's means
                found += points_of({str(k): v for k, v in entry.items()}, "trainer_state")
        return found


class MLflow:
    """An MLflow metric file: `1708382496112 0.432 0`, a time in ms, a value and a step a line."""

    whole = False

    def __init__(self, metric: str) -> None:
        """`metric` is the file's path below `metrics/`."""
        self._metric = metric
        self._rest = b""

    def feed(self, data: bytes) -> list[Timed]:
        """Return the points of the lines that are now whole."""
        head, _, self._rest = (self._rest + data).rpartition(b"\n")
        found: list[Timed] = []
        for line in head.splitlines():
            fields = line.decode("ascii", "replace").split()
            try:
                time, value = int(fields[0]) / 1000, float(fields[1])
                step = int(fields[2]) if len(fields) > 2 else None
            except (ValueError, IndexError, OverflowError):
                continue
            step = step if step is not None and abs(step) < 2**63 else None
            found += [(time, p) for p in report("mlflow", [(self._metric, value)], step=step)]
        return found


def points_of(values: Mapping[str, Any], source: str) -> list[Timed]:
    """Return the points of a record: column or key to number, or text of one."""
    numbers: dict[str, float] = {}
    for name, value in values.items():
        if isinstance(value, bool) or value is None or value == "":
            continue
        try:
            numbers[name] = float(value)
        except (ValueError, TypeError, OverflowError):
            continue
    step = next((numbers[name] for name in _STEPS if name in numbers), None)
    time = next((numbers[name] for name in _TIMES if name in numbers), None)
    found = report(
        source,
        [(name, value) for name, value in numbers.items() if name not in _STEPS],
        step=int(step) if step is not None and abs(step) < 2**63 else None,
        epoch=numbers.get("epoch"),
    )
    return [(time, point) for point in found]


def _time_in(line: str) -> float | None:
    try:
        record = json.loads(line[line.index("{") :])
    except (ValueError, RecursionError):
        return None
    found = next((record[name] for name in (*_TIMES, "ts", "time") if name in record), None)
    return float(found) if isinstance(found, (int, float)) and 1e9 < found < 4e9 else None
