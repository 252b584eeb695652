"""A container that logs ten thousand lines a second: the probe keeps its ticks."""

from datetime import datetime
from itertools import pairwise

import pytest
from helpers.containers import api, eventually
from helpers.examples import repeated
from real_engine.test_hostile_logs import sampled

pytestmark = [pytest.mark.slow, pytest.mark.alone]

LINES_A_SECOND = 10_000
SAMPLES = repeated(5, 8)
FLOOD = (
    "while :; do awk 'BEGIN { for (i = 0; i < 1000; i++) "
    'printf "step %d loss: %.4f lr: 0.001\\n", i, 0.5 }\'; usleep 90000; done'
)


def test_of_ten_thousand_lines_a_second_a_few_are_read(run, tmp_path, record_property) -> None:
    job = run(FLOOD, name="flood")
    eventually(lambda: b"loss" in api().logs(job.id, tail=1))
    rows, peak = sampled(run, SAMPLES, tmp_path)
    times = [datetime.fromisoformat(row["time"]) for row in rows if row["kind"] == "node"]
    gaps = [(later - before).total_seconds() for before, later in pairwise(times)]
    points = sum(row["kind"] == "progress" for row in rows)
    record_property("tried", f"{points} points of {LINES_A_SECOND * SAMPLES} lines")
    record_property("tried", f"ticks of 1 s took {min(gaps):.2f} to {max(gaps):.2f} s")
    ends = [number for number, row in enumerate(rows) if row["kind"] == "node"]
    last = [row["metric"] for row in rows[ends[-3] : ends[-1]] if row["kind"] == "progress"]
    assert 2 <= last.count("loss") <= 40
    assert [row for row in rows if row.get("gap")] == []
    assert sum(gaps) / len(gaps) < 1.3
    assert peak < 200
