from __future__ import annotations

from typing import Any

import pytest

from dltools.engine.quota import configured_quota, nano_cpus, quota_in_cores


@pytest.mark.parametrize(
    ("fields", "cores"),
    [
        ({"NanoCpus": 1_500_000_000, "CpuQuota": 0, "CpuPeriod": 0}, 1.5),
        ({"NanoCpus": 0, "CpuQuota": 150_000, "CpuPeriod": 0}, 1.5),
        ({"NanoCpus": 0, "CpuQuota": 25_000, "CpuPeriod": 50_000}, 0.5),
        ({"NanoCpus": 0, "CpuQuota": -1, "CpuPeriod": 100_000}, None),
        ({"NanoCpus": 0, "CpuQuota": 0, "CpuPeriod": 0}, None),
        ({"NanoCpus": None, "CpuQuota": None, "CpuPeriod": None}, None),
        ({}, None),
    ],
)
def test_the_fields_of_the_engine_give_cores(fields: dict[str, Any], cores: float | None) -> None:
    assert configured_quota(fields) == cores


@pytest.mark.parametrize(
    ("quota", "period", "cores"),
    [(130_000, 100_000, 1.3), (-1, 100_000, None), (None, 100_000, None), (50_000, None, 0.5)],
)
def test_the_numbers_of_the_kernel_give_cores(
    quota: int | None, period: int | None, cores: float | None
) -> None:
    assert quota_in_cores(quota, period) == cores


def test_nano_cpus_come_back_as_the_same_cores() -> None:
    for cores in (0.01, 0.5, 1.3, 64.0):
        assert configured_quota({"NanoCpus": nano_cpus(cores)}) == cores
