"""The engine fields that set a limit, whatever the container was started with."""

from __future__ import annotations

import math
from pathlib import Path

import pytest
from helpers.located_containers import CPUS, EVERY_CPU, located, on_version_1, on_version_2
from hypothesis import given
from hypothesis import strategies as st

from dltools.apply.engine_fields import (
    cpuset_fields,
    equivalent_quota_fields,
    original_quota_fields,
    quota_fields,
    weight_candidates,
)

# Quotas


@pytest.mark.parametrize(
    ("started", "fields"),
    [
        ({}, {"CpuPeriod": 100_000, "CpuQuota": 150_000}),
        (
            {"NanoCpus": 0, "CpuQuota": 0, "CpuPeriod": 0},
            {"CpuPeriod": 100_000, "CpuQuota": 150_000},
        ),
        ({"NanoCpus": 500_000_000}, {"NanoCpus": 1_500_000_000}),
        ({"CpuQuota": 50_000}, {"CpuPeriod": 100_000, "CpuQuota": 150_000}),
        ({"CpuQuota": 50_000, "CpuPeriod": 20_000}, {"CpuPeriod": 20_000, "CpuQuota": 30_000}),
        ({"CpuShares": 512}, {"CpuPeriod": 100_000, "CpuQuota": 150_000}),
    ],
)  # fmt: skip
def test_a_quota_uses_the_field_of_the_container_s_start(
    started: dict[str, int], fields: dict[str, int]
) -> None:
    assert quota_fields(started, 1.5, CPUS) == fields


@pytest.mark.parametrize(
    ("started", "fields"),
    [
        ({}, {"CpuQuota": -1}),
        ({"CpuQuota": 50_000, "CpuPeriod": 20_000}, {"CpuQuota": -1}),
        ({"NanoCpus": 500_000_000}, {"NanoCpus": CPUS * 1_000_000_000}),
    ],
)
def test_no_quota_has_a_neutral_value(started: dict[str, int], fields: dict[str, int]) -> None:
    assert quota_fields(started, None, CPUS) == fields


@given(cpus=st.floats(0.01, CPUS), period=st.integers(1000, 1_000_000))
def test_any_quota_fits_any_period_within_the_kernel_s_bounds(cpus: float, period: int) -> None:
    fields = quota_fields({"CpuPeriod": period, "CpuQuota": period}, cpus, CPUS)
    assert fields["CpuQuota"] >= 1000
    assert 1000 <= fields["CpuPeriod"] <= 1_000_000
    met = fields["CpuQuota"] / fields["CpuPeriod"]
    assert met == pytest.approx(cpus, abs=0.5 / fields["CpuPeriod"] + 1e-9)


@pytest.mark.parametrize(
    ("started", "fields"),
    [
        ({}, {"CpuPeriod": 100_000, "CpuQuota": -1}),
        ({"NanoCpus": 500_000_000, "CpuPeriod": 0, "CpuQuota": 0}, {"NanoCpus": 500_000_000}),
        ({"CpuQuota": 50_000}, {"CpuPeriod": 100_000, "CpuQuota": 50_000}),
        ({"CpuQuota": -1, "CpuPeriod": 100_000}, {"CpuPeriod": 100_000, "CpuQuota": -1}),
        ({"CpuQuota": 50_000, "CpuPeriod": 20_000}, {"CpuPeriod": 20_000, "CpuQuota": 50_000}),
        ({"CpuPeriod": 20_000}, {"CpuPeriod": 20_000, "CpuQuota": -1}),
    ],
)
def test_the_original_fields_never_say_unchanged(
    started: dict[str, int], fields: dict[str, int]
) -> None:
    """The engine takes 0 for "as it is": it would reset nothing."""
    assert original_quota_fields(started) == fields


# Weights


def linear(shares: int) -> int:
    """What runc up to 1.3.1 makes of Docker's shares."""
    return 1 + ((shares - 2) * 9999) // 262142


def quadratic(shares: int) -> int:
    """What runc makes of them since 1.3.2."""
    if shares <= 2:
        return 1
    if shares >= 262144:
        return 10_000
    level = math.log2(shares)
    return math.ceil(10 ** ((level * level + 125 * level) / 612 - 7 / 34))


def test_every_kernel_weight_is_met_by_one_candidate_for_each_formula(tmp_path: Path) -> None:
    there = on_version_2(tmp_path)
    for wanted in range(1, 10_001):
        first, second = weight_candidates(there, wanted * 10.24)
        assert linear(first["CpuShares"]) == wanted
        assert quadratic(second["CpuShares"]) == wanted
        assert all(2 <= f["CpuShares"] <= 262_144 for f in (first, second))


def test_the_default_weight_is_the_engine_s_own_default(tmp_path: Path) -> None:
    _, second = weight_candidates(on_version_2(tmp_path), 1024)
    assert second == {"CpuShares": 1024}


@pytest.mark.parametrize(("weight", "shares"), [(1024.0, 1024), (300.4, 300), (1.0, 2), (0.1, 2)])
def test_version_1_takes_shares_as_they_are(tmp_path: Path, weight: float, shares: int) -> None:
    there = on_version_1(tmp_path)
    assert weight_candidates(there, weight) == [{"CpuShares": shares}]


# Quotas in other fields


@pytest.mark.parametrize(
    ("original", "recorded", "fields"),
    [
        ({"CpuQuota": 150_000}, {"NanoCpus": 1}, {"NanoCpus": 1_500_000_000}),
        ({}, {"NanoCpus": 1}, {"NanoCpus": CPUS * 1_000_000_000}),
        ({"NanoCpus": 500_000_000}, {"NanoCpus": 1}, {}),
        ({"CpuQuota": 150_000}, {"CpuQuota": 50_000}, {}),
    ],
)
def test_nano_cpus_on_record_are_met_by_their_equivalent(
    original: dict[str, int], recorded: dict[str, int], fields: dict[str, int]
) -> None:
    assert equivalent_quota_fields(located(**recorded), original, CPUS) == fields


# CPU lists


def test_all_cpus_are_named() -> None:
    assert cpuset_fields(located(), "0,2") == {"CpusetCpus": "0,2"}
    assert cpuset_fields(located(), None) == {"CpusetCpus": EVERY_CPU}
