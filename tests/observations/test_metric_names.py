"""Which response time a serving container is judged by."""

from __future__ import annotations

import pytest

from dltools.observations.metric_names import latencies


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        (["loss"], []),
        (["latency_p95_seconds", "loss", "latency_seconds"],
         ["latency_seconds", "latency_p95_seconds"]),
        (["latency_p99_seconds", "latency_mean_seconds", "latency_p95_seconds"],
         ["latency_mean_seconds", "latency_p95_seconds", "latency_p99_seconds"]),
    ],
)  # fmt: skip
def test_response_times_by_preference(names: list[str], expected: list[str]) -> None:
    assert latencies(names) == expected
