"""Containers that log without measure: the probe keeps its memory."""

import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from helpers.containers import Containers, api, eventually
from helpers.examples import repeated
from helpers.tools import environment, records

pytestmark = pytest.mark.slow

PEAK = """
import sys
from dltools.cli.probe import main
try:
    main()
finally:
    with open("/proc/self/status") as file:
        sys.stderr.write(file.read())
"""


def peak_mib(status: str) -> float:
    found = re.search(r"VmHWM:\s+(\d+) kB", status)
    assert found
    return int(found[1]) / 1024


def sampled(run: Containers, count: int, tmp_path: Path) -> tuple[list[dict[str, Any]], float]:
    """Return the rows of a stream, a sample a second, and the most memory it took (MiB)."""
    words = ["-i", "1", "-c", str(count), "--format", "jsonl", *run.only]
    with (tmp_path / "rows").open("wb") as rows:
        done = subprocess.run(
            [sys.executable, "-c", PEAK, *words],
            stdout=rows,
            timeout=300,
            stderr=subprocess.PIPE,
            env=environment(),
        )
    return records((tmp_path / "rows").read_bytes()), peak_mib(done.stderr.decode())


def test_a_flood_without_a_line_end_takes_no_memory(run, tmp_path, record_property) -> None:
    size = repeated(320_000_000, 1_000_000_000)  # more than the memory that it may take
    job = run(
        f"head -c {size} /dev/zero | tr '\\0' x; echo; while :; do echo loss: 0.5; sleep 0.2; done"
    )
    eventually(lambda: b"loss" in api().logs(job.id, tail=1))
    rows, peak = sampled(run, 6, tmp_path)
    record_property("tried", f"{size / 1e9:g} GB without a line end: {peak:.0f} MiB at most")
    assert peak < 300
    assert 0.5 in {row["value"] for row in rows if row["kind"] == "progress"}
    assert any("the newest lines are read" in str(row.get("gap")) for row in rows)
