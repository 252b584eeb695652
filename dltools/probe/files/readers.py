"""Which reader a file takes, by its well-known name."""

from __future__ import annotations

from pathlib import PurePosixPath

from dltools.observations.metric_names import is_metric, normal_name
from dltools.probe.files.event_file import EventFile
from dltools.probe.files.tables import Csv, JsonLines, MLflow, Reader, Timed, TrainerState
from dltools.probe.progress.base import Point

_CSV_NAMES = frozenset((
    "results.csv", "metrics.csv", "training.csv", "history.csv", "training_log.csv",
    "progress.csv", "train.tsv", "log.csv",
))  # fmt: skip


class TensorBoard:
    """An event file of TensorBoard."""

    whole = False

    def __init__(self) -> None:
        self._file = EventFile()

    def feed(self, data: bytes) -> list[Timed]:
        """Return the points of the records that are now whole."""
        return [
            Timed(time, Point(normal_name(tag), value, step if abs(step) < 2**63 else None, None,
                         "tensorboard", tag))
            for time, step, tag, value in self._file.feed(data)
            if is_metric(normal_name(tag))
        ]  # fmt: skip


def reader_of(path: str) -> Reader | None:
    """Return the reader for a file by its well-known name, None for any other file."""
    name = PurePosixPath(path).name
    if "tfevents" in name:
        return TensorBoard()
    if name == "trainer_state.json":
        return TrainerState()
    if "/metrics/" in path and "mlruns/" in path:
        return MLflow(path.partition("/metrics/")[2])
    if name.endswith((".jsonl", ".log.json")):
        return JsonLines()
    return Csv() if name in _CSV_NAMES else None


def reader_of_named(path: str) -> Reader:
    """Return the reader for a file that a label names: by its name, else by its ending."""
    return reader_of(path) or (JsonLines() if path.endswith((".json", ".log")) else Csv())
