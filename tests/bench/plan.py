"""dl-plan, whole process, over recordings of growing size: time a row, and how it grows.

    python tests/bench/plan.py

Synthetic: 20 containers, a sample every 2 s with one loss each. Prints; nothing is asserted.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path

from dltools.streams import Format, Row, to_table, writer

CONTAINERS = 20


def recording(samples: int) -> list[Row]:
    begun = datetime(2026, 1, 1, tzinfo=UTC)
    rows: list[Row] = []
    for sample in range(samples):
        now = begun + timedelta(seconds=2 * sample)
        rows.append({"time": now, "host": "node", "kind": "node", "cpu_count": 4.0})
        for number in range(CONTAINERS):
            job = {"time": now, "host": "node", "container_id": f"{number:064x}",
                   "container_name": f"job-{number}"}  # fmt: skip
            rows.append(job | {"kind": "container", "state": "running", "started_at": begun,
                               "cpu_seconds": 0.4 * sample, "cpu_limit_cores": 4.0})  # fmt: skip
            loss = 1 / (1 + sample * number / 1000)
            rows.append(job | {"kind": "progress", "metric": "loss", "value": loss})
    return rows


def main() -> None:
    plan = str(Path(sys.executable).parent / "dl-plan")
    print("dl-plan --policy flowcon, whole process")
    with tempfile.TemporaryDirectory() as directory:
        for samples in (250, 500, 1000, 2000):
            file = Path(directory) / "recording.parquet"
            table = to_table(recording(samples))
            with file.open("wb") as out:
                made = writer(Format.PARQUET, out)
                made.write(table)
                made.close()
            begun = time.perf_counter()
            subprocess.run([plan, str(file)], stdout=subprocess.DEVNULL, check=True)
            taken = time.perf_counter() - begun
            per_row = taken / table.num_rows * 1e6
            print(f"  {table.num_rows:7d} rows  {taken:5.2f} s  {per_row:5.1f} us/row")


if __name__ == "__main__":
    main()
