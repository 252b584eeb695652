"""Readers of files of metrics, chosen by a file's well-known name; called by `file_source`.

Text files are CSV, JSON lines, trainer_state.json and MLflow's; the CSV files are those of Keras'
CSVLogger, Lightning (metrics.csv), Ultralytics (results.csv) and DVCLive (TSV). A last line is read
once its newline is there. Of trackers that keep a run in one file, wandb (also offline), SwanLab
and trackio are read.
"""

from __future__ import annotations

import csv
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from pathlib import PurePosixPath
from typing import Any, NamedTuple, Protocol

from dltools.bounded_reading import LineSplitter
from dltools.notation.json_values import table_from
from dltools.probe.files.event_file import EventFile, Logged
from dltools.probe.files.tracker_files import Database, Journal
from dltools.probe.progress.base import Point, report
from dltools.probe.progress.families.jsonlines import Log as JsonLog


class Timed(NamedTuple):
    """A point and its time, in seconds since the epoch; None if the file does not say it."""

    seconds: float | None
    point: Point


class Reader(Protocol):
    """Reads one file. A `whole` reader gets the whole file each time it has changed."""

    whole: bool

    def feed(self, data: bytes) -> list[Timed]:
        """Return the points of new data, or of the whole file for a `whole` reader."""


_STEPS = ("step", "global_step", "iteration", "iter", "batch")
_TIMES = ("wall_time", "timestamp", "unix_time")

_LONGEST = 1 << 20
"""Bytes of a line of a text file."""

_CSV_NAMES = frozenset((
    "results.csv", "metrics.csv", "training.csv", "history.csv", "training_log.csv",
    "progress.csv", "train.tsv", "log.csv",
))  # fmt: skip


def reader_of(path: str) -> Reader | None:
    """Return the reader for a file by its well-known name, None for any other file."""
    name = PurePosixPath(path).name
    if "tfevents" in name:
        return Records(EventFile())
    if name == "trainer_state.json":
        return TrainerState()
    if name.endswith((".wandb", ".swanlab")):
        return Records(Journal())
    if name.endswith(".db") and "/trackio/" in path:
        return Trackio()
    if "/metrics/" in path and "mlruns/" in path:
        return MLflow(path.partition("/metrics/")[2])
    if name.endswith((".jsonl", ".log.json")):
        return JsonLines()
    return Csv() if name in _CSV_NAMES else None


def reader_of_named(path: str) -> Reader:
    """Return the reader for a file that a label names: by its name, else by its ending."""
    return reader_of(path) or (JsonLines() if path.endswith((".json", ".log")) else Csv())


class Records:
    """An event file of TensorBoard, or a journal of wandb or SwanLab."""

    whole = False

    def __init__(self, file: EventFile | Journal) -> None:
        self._file = file

    def feed(self, data: bytes) -> list[Timed]:
        """Return the points of the records that are now whole."""
        return _of_tracker(self._file.feed(data), self._file.tracker)


class Trackio:
    """A database of trackio; `log` is its write-ahead log, which another file holds."""

    whole = True

    def __init__(self) -> None:
        self._database = Database()
        self.log = b""

    def feed(self, data: bytes) -> list[Timed]:
        """Return the points of the new rows of the whole database."""
        return _of_tracker(self._database.feed(data, self.log), "trackio")


def _of_tracker(logged: Iterable[Logged], source: str) -> list[Timed]:
    return [
        Timed(event.seconds, point)
        for event in logged
        for point in report(
            source,
            event.values.items(),
            step=event.step if event.step is not None and abs(event.step) < 2**63 else None,
            epoch=event.values.get("epoch", event.values.get("train/epoch")),
        )
    ]


class TextFile(ABC):
    """A text file that is read line by line as it grows; a line beyond `_LONGEST` is dropped."""

    whole = False

    def __init__(self) -> None:
        self._splitter = LineSplitter()

    def feed(self, data: bytes) -> list[Timed]:
        """Return the points of the lines that are now whole."""
        lines = self._splitter.feed(data)
        if self._splitter.begun_bytes > _LONGEST:
            self._splitter.end()
        texts = (text for line in lines for text in line.decode("utf-8", "replace").splitlines())
        return [timed for text in texts for timed in self._points(text)]

    @abstractmethod
    def _points(self, line: str) -> list[Timed]:
        """Return the points of a line."""


class Csv(TextFile):
    """A CSV file with a header."""

    def __init__(self) -> None:
        """Start before the header."""
        super().__init__()
        self._names: list[str] = []
        self._delimiter = ","

    def _points(self, line: str) -> list[Timed]:
        line = line.replace("\ufeff", "")
        if not line.strip():
            return []
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


class JsonLines(TextFile):
    """A file of JSON objects, one a line."""

    def __init__(self) -> None:
        super().__init__()
        self._log = JsonLog()

    def _points(self, line: str) -> list[Timed]:
        points = self._log.points(line) or []
        time = _time_in(line) if points else None
        return [Timed(time, point._replace(source="jsonl")) for point in points]


class TrainerState:
    """Hugging Face's trainer_state.json, which is written as a whole each time."""

    whole = True

    def feed(self, data: bytes) -> list[Timed]:
        """Return the points of the whole file."""
        history = table_from(data).get("log_history")
        points: list[Timed] = []
        for entry in history if isinstance(history, list) else ():
            if isinstance(entry, dict) and "train_runtime" not in entry:  # the run's means
                points += points_of(entry, "trainer_state")
        return points


class MLflow(TextFile):
    """An MLflow metric file: `1708382496112 0.432 0`, a time in ms, a value and a step a line."""

    def __init__(self, metric: str) -> None:
        """`metric` is the file's path below `metrics/`."""
        super().__init__()
        self._metric = metric

    def _points(self, line: str) -> list[Timed]:
        fields = line.split()
        try:
            time, value = int(fields[0]) / 1000, float(fields[1])
            step = int(fields[2]) if len(fields) > 2 else None
        except (ValueError, IndexError, OverflowError):
            return []
        step = step if step is not None and abs(step) < 2**63 else None
        return [Timed(time, p) for p in report("mlflow", [(self._metric, value)], step=step)]


def points_of(values: Mapping[str, Any], source: str) -> list[Timed]:
    """Return the points of a record, which maps names to numbers or to the text of numbers."""
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
    points = report(
        source,
        [(name, value) for name, value in numbers.items() if name not in _STEPS],
        step=int(step) if step is not None and abs(step) < 2**63 else None,
        epoch=numbers.get("epoch"),
    )
    return [Timed(time, point) for point in points]


def _time_in(line: str) -> float | None:
    record = table_from(line[line.find("{") :])
    time = next((record[name] for name in (*_TIMES, "ts", "time") if name in record), None)
    return float(time) if isinstance(time, (int, float)) and 1e9 < time < 4e9 else None
