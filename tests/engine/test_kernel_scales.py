"""Quotas and weights: in the fields of an engine, for the kernel, and for people."""

import pytest
from helpers.located_containers import located

from dltools.engine.kernel_scales import asked_weight, quota_in_cores, weight_from_v2, weight_to_v2
from dltools.engine.limits.limit_updates import recorded_limits, setting_updates


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
def test_the_fields_of_the_engine_give_cores(fields, cores) -> None:
    assert recorded_limits(fields)["cpus"] == cores


@pytest.mark.parametrize(
    ("quota", "period", "cores"),
    [(130_000, 100_000, 1.3), (-1, 100_000, None), (None, 100_000, None), (50_000, None, 0.5)],
)
def test_the_numbers_of_the_kernel_give_cores(quota, period, cores) -> None:
    assert quota_in_cores(quota, period) == cores


def test_nano_cpus_come_back_as_the_same_cores() -> None:
    for cores in (0.01, 0.5, 1.3, 64.0):
        (fields,) = setting_updates(located(NanoCpus=1), {"cpus": cores}, 64)
        assert recorded_limits(fields)["cpus"] == cores


@pytest.mark.parametrize("steps", [1, 50, 100, 9999, 10_000])
def test_a_step_of_version_2_comes_back(steps) -> None:
    assert weight_to_v2(weight_from_v2(steps)) == steps


@pytest.mark.parametrize(
    ("shares", "steps", "asked"),
    [
        (None, 100, 1024),
        (None, 39, 1024),
        (512, 20, 512),  # runc 1.1
        (2048, 79, 2048),
        (2598, 100, 1024),  # what an undo records where nobody had asked for anything
        (1024, 39, 1024),
        (1024, 100, 1024),  # runc 1.3.2
        (512, 29, 296.96),  # somebody else has set another
    ],
)
def test_what_was_asked_for_on_version_2(shares, steps, asked) -> None:
    assert asked_weight(shares, weight_from_v2(steps), is_v2=True) == asked
