"""CPU weights on the scales of Docker and of cgroup version 2."""

from __future__ import annotations

import pytest

from dltools.engine.weight import configured_weight, weight_from_v2, weight_to_v2


@pytest.mark.parametrize(
    ("fields", "weight"), [({}, 1024), ({"CpuShares": 0}, 1024), ({"CpuShares": 512}, 512)]
)
def test_a_container_without_shares_has_the_default_weight(
    fields: dict[str, int], weight: float
) -> None:
    assert configured_weight(fields) == weight


@pytest.mark.parametrize(
    ("weight", "steps"), [(1024, 100), (512, 50), (2, 1), (300, 29), (262_144, 10_000)]
)
def test_version_2_has_the_nearest_step(weight: float, steps: int) -> None:
    assert weight_to_v2(weight) == steps


@pytest.mark.parametrize("steps", [1, 50, 100, 9999, 10_000])
def test_a_step_of_version_2_comes_back(steps: int) -> None:
    assert weight_to_v2(weight_from_v2(steps)) == steps
