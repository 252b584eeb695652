"""Directories of recordings, and the rows in them."""

from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa

from dltools.observations.recording.directory import RecordingDirectory
from dltools.observations.table import Row

NOON = datetime(2026, 1, 31, 12, tzinfo=UTC)


def node(time: datetime, host: str = "h") -> Row:
    return {"time": time, "host": host, "kind": "node", "cpu_count": 2.0}


def point(time: datetime, step: int, value: float = 0.5) -> Row:
    return {
        "time": time,
        "host": "h",
        "kind": "progress",
        "container_id": "c" * 64,
        "metric": "loss",
        "value": value,
        "step": step,
    }


def recording(root: Path) -> RecordingDirectory:
    made = RecordingDirectory(root)
    made.prepare()
    return made


def times(table: pa.Table) -> list[datetime]:
    found: list[datetime] = table.column("time").to_pylist()
    return found


def tree(root: Path) -> list[str]:
    return sorted(str(f.relative_to(root)) for f in root.rglob("*") if f.is_file())
