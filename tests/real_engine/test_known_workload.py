"""A container that burns a known amount of CPU reads as that amount."""

from typing import Any

import pytest
from helpers.containers import api, eventually
from helpers.tools import records

SECONDS = 3

BURN = f"""awk '
function used(  fields) {{
    getline line < "/proc/self/stat"; close("/proc/self/stat")
    split(line, fields)
    return (fields[14] + fields[15]) / 100
}}
BEGIN {{ while (used() < {SECONDS}) for (i = 0; i < 10000; i++) x += i; print "done" }}
'; sleep 600"""
"""Works until it has used so many CPU seconds, by its own account, whatever else runs."""


@pytest.mark.slow
def test_three_cpu_seconds_are_three_cpu_seconds(tool, run) -> None:
    job = run(BURN)
    eventually(job.log, seconds=300)
    before = usage_by_the_engine(job.id)
    done = tool("dl-probe", *run.only, "--window", 1, "--format", "jsonl")
    after = usage_by_the_engine(job.id)

    first, second = (row for row in records(done.stdout) if row["kind"] == "container")
    assert first["cpu_seconds"] == pytest.approx(SECONDS, abs=0.25)
    assert before <= first["cpu_seconds"] <= second["cpu_seconds"] <= after


def usage_by_the_engine(id_: str) -> Any:
    """The CPU seconds that `docker stats` reads."""
    stats = api().stats(id_, stream=False, one_shot=True)
    return stats["cpu_stats"]["cpu_usage"]["total_usage"] / 1e9
