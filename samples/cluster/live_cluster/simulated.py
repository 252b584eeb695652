"""What dl-sim says of the same workload file under the same arm."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from dltools.errors import DataError
from live_cluster.arms import INTERVAL_S, Arm


def simulated(arm: Arm, file: Path) -> Mapping[str, float]:
    """Return the completion times of the jobs (s), by name."""
    words = [
        str(Path(sys.executable).parent / "dl-sim"),
        "-i",
        str(INTERVAL_S),
        *arm.simulated,
        "--jobs",
        "--format",
        "jsonl",
        str(file),
    ]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    if done.returncode:
        raise DataError(done.stderr.strip())
    rows = [json.loads(line) for line in done.stdout.splitlines()]
    return {row["name"]: row["completion"] for row in rows}
