"""A container that burns a known amount of CPU reads as that amount."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import pytest
from engine.containers import Containers, api
from engine.tools import Tools, records

SECONDS = 20
CORES = 0.5


@pytest.mark.slow
def test_half_a_core_for_twenty_seconds_is_ten_cpu_seconds(tool: Tools, run: Containers) -> None:
    # The weight keeps the machine's other work from taking what the quota allows.
    job = run("while :; do :; done", nano_cpus=int(CORES * 1e9), cpu_shares=100_000)

    before = usage_by_the_engine(job.id)
    done = tool("dl-probe", *run.only, "--window", SECONDS, "--format", "jsonl")
    after = usage_by_the_engine(job.id)

    first, second = (row for row in records(done.stdout) if row["kind"] == "container")
    span = seconds_between(first["time"], second["time"])
    used = second["cpu_seconds"] - first["cpu_seconds"]
    assert span == pytest.approx(SECONDS, abs=2)
    assert used / span * SECONDS == pytest.approx(10, abs=0.5)

    their_used = after["cpu"] - before["cpu"]
    their_span = seconds_between(before["read"], after["read"])
    assert used / span == pytest.approx(their_used / their_span, rel=0.05)
    assert before["cpu"] <= first["cpu_seconds"] < second["cpu_seconds"] <= after["cpu"]


def usage_by_the_engine(id_: str) -> dict[str, Any]:
    """What `docker stats` reads."""
    stats = api().stats(id_, stream=False, one_shot=True)
    return {"read": stats["read"], "cpu": stats["cpu_stats"]["cpu_usage"]["total_usage"] / 1e9}


def seconds_between(first: str, second: str) -> float:
    moments = [datetime.fromisoformat(text) for text in (first, second)]
    return (moments[1] - moments[0]).total_seconds()
