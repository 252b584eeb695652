"""The fields of Docker that set a limit, and how a container got its GPU."""

import math
from typing import Any

import pytest
from helpers.located_containers import (
    CPUS,
    EVERY_CPU,
    container,
    located,
    on_version_1,
    on_version_2,
)
from hypothesis import given
from hypothesis import strategies as st

from dltools.engine.interface import Container, LocatedContainer
from dltools.engine.kernel_scales import default_shares
from dltools.engine.limits.limit_updates import (
    equivalent_original,
    restoring_updates,
    setting_updates,
)
from dltools.notation.limits import Limits


def quota_fields(started: dict[str, int], cpus: float | None) -> dict[str, Any]:
    """The fields that set a quota in a container that was started with others."""
    (fields,) = setting_updates(located(**started), {"cpus": cpus}, CPUS)
    return fields


def weights(there: LocatedContainer, weight: float) -> list[dict[str, Any]]:
    return list(setting_updates(there, {"weight": weight}, CPUS))


def cpu_list(cpuset: str | None) -> dict[str, Any]:
    (fields,) = setting_updates(located(), {"cpuset": cpuset}, CPUS)
    return fields


# Quotas


@pytest.mark.parametrize(
    ("started", "cpus", "fields"),
    [
        ({}, 1.5, {"CpuPeriod": 100_000, "CpuQuota": 150_000}),
        ({"NanoCpus": 500_000_000}, 1.5, {"NanoCpus": 1_500_000_000}),
        ({"CpuQuota": 50_000}, 1.5, {"CpuPeriod": 100_000, "CpuQuota": 150_000}),
        ({"CpuQuota": 50_000, "CpuPeriod": 20_000}, 1.5, {"CpuPeriod": 20_000, "CpuQuota": 30_000}),
        ({}, None, {"CpuPeriod": 100_000, "CpuQuota": -1}),
        ({"CpuQuota": 50_000, "CpuPeriod": 20_000}, None, {"CpuPeriod": 20_000, "CpuQuota": -1}),
        ({"NanoCpus": 500_000_000}, None, {"NanoCpus": CPUS * 1_000_000_000}),
    ],
)
def test_a_quota_uses_the_field_of_the_container_s_start(started, cpus, fields) -> None:
    assert quota_fields(started, cpus) == fields


@given(cpus=st.floats(0.01, CPUS), period=st.integers(1000, 1_000_000))
def test_any_quota_fits_any_period_within_the_kernel_s_bounds(cpus, period) -> None:
    fields = quota_fields({"CpuPeriod": period, "CpuQuota": period}, cpus)
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
def test_the_original_fields_never_say_unchanged(started, fields) -> None:
    """The engine takes 0 for "as it is": it would reset nothing."""
    changed = {"NanoCpus": 1} if "NanoCpus" in started else {"CpuQuota": 12_345}
    there = located(**(started | changed))
    assert next(restoring_updates(there, started, {}, 1024)) == fields


@pytest.mark.parametrize("started", [{}, {"NanoCpus": 500_000_000}, {"CpuQuota": 50_000}])
def test_a_quota_that_is_as_it_was_is_not_restored(started) -> None:
    """After a period on the record Docker refuses an owner's docker update --cpus."""
    assert next(restoring_updates(located(**started), started, {}, 1024)) == {}


# Weights


@pytest.mark.parametrize(
    ("original", "present", "fields"),
    [
        (0, 0, {}),
        (512, 512, {}),
        (512, 2, {"CpuShares": 512}),
        (0, 2, {"CpuShares": 2598}),
        (0, 737, {"CpuShares": 2598}),
    ],
)
def test_of_a_stopped_container_the_record_is_restored(original, present, fields) -> None:
    """It starts next with what is on record, on a host of version 2 too."""
    there = located(CpuShares=present)
    wanted: Limits = {"weight": 1024.0}
    (found,) = restoring_updates(there, {"CpuShares": original}, wanted, 2598)
    assert found == fields


def test_of_a_running_one_the_shares_that_it_began_with_come_first(tmp_path) -> None:
    there, original = on_version_2(tmp_path, CpuShares=2), {"CpuShares": 512}
    found = restoring_updates(there, original, {"weight": 204.8}, 2598)
    assert [fields["CpuShares"] for fields in found] == [512, 501, 126]


def test_a_weight_that_is_as_it_was_is_not_sent(tmp_path) -> None:
    (tmp_path / "cpu.weight").write_text("100\n")
    (found,) = restoring_updates(on_version_2(tmp_path), {}, {"weight": 1024.0}, 2598)
    assert "CpuShares" not in found


@pytest.mark.parametrize(
    ("version", "runc", "shares"),
    [
        ("1", "1.1.5", 1024),
        ("2", "1.1.5+ds1-1+deb12u1", 2598),
        ("2", "v1.3.1-0-g1", 2598),
        ("2", "v1.3.2-0-g2", 1024),
        ("2", "1.10.0", 1024),
        ("2", "N/A", 2598),
        ("None", "", 1024),
    ],
)
def test_some_shares_have_the_effect_of_none(version, runc, shares) -> None:
    assert default_shares(version, runc) == shares
    if version == "2":
        assert (quadratic if shares == 1024 else linear)(shares) == 100


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


def test_every_kernel_weight_is_met_by_one_candidate_for_each_formula(tmp_path) -> None:
    there = on_version_2(tmp_path)
    for wanted in range(1, 10_001):
        first, second = weights(there, wanted * 10.24)
        assert linear(first["CpuShares"]) == wanted
        assert quadratic(second["CpuShares"]) == wanted
        assert all(2 <= f["CpuShares"] <= 262_144 for f in (first, second))


def test_the_default_weight_is_the_engine_s_own_default(tmp_path) -> None:
    _, second = weights(on_version_2(tmp_path), 1024)
    assert second == {"CpuShares": 1024}


@pytest.mark.parametrize(("weight", "shares"), [(1024.0, 1024), (300.4, 300), (1.0, 2), (0.1, 2)])
def test_version_1_takes_shares_as_they_are(tmp_path, weight, shares) -> None:
    there = on_version_1(tmp_path)
    assert weights(there, weight) == [{"CpuShares": shares}]


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
def test_nano_cpus_on_record_are_met_by_their_equivalent(original, recorded, fields) -> None:
    assert equivalent_original(located(**recorded), original, CPUS) == fields


# CPU lists


def test_all_cpus_are_named() -> None:
    assert cpu_list("0,2") == {"CpusetCpus": "0,2"}
    assert cpu_list(None) == {"CpusetCpus": EVERY_CPU}


GPUS_ALL = {"Driver": "", "Count": -1, "DeviceIDs": None, "Capabilities": [["gpu"]], "Options": {}}
GPUS_NVIDIA = {**GPUS_ALL, "Driver": "nvidia"}
CDI = {"Driver": "cdi", "Count": 0, "DeviceIDs": ["nvidia.com/gpu=0"], "Capabilities": None}
NVIDIA_DEVICE = {"PathOnHost": "/dev/nvidia0", "PathInContainer": "/dev/nvidia0"}
FUSE = {"PathOnHost": "/dev/fuse", "PathInContainer": "/dev/fuse"}
VISIBLE = ["PATH=/bin", "NVIDIA_VISIBLE_DEVICES=all"]


def gpu_container(environment: list[str] | None = None, **host_config: Any) -> Container:
    return container({"Config": {"Env": environment}, "HostConfig": host_config})


@pytest.mark.parametrize(
    ("case", "expected"),
    [
        (gpu_container(), (False, False)),
        (gpu_container(DeviceRequests=None, Devices=None, Runtime="runc"), (False, False)),
        (gpu_container(Devices=[FUSE]), (False, False)),
        (gpu_container(DeviceRequests=[GPUS_ALL]), (True, True)),
        (gpu_container(DeviceRequests=[GPUS_NVIDIA]), (True, True)),
        (gpu_container(DeviceRequests=[CDI]), (True, False)),
        (gpu_container(DeviceRequests=[CDI, GPUS_ALL]), (True, True)),
        (gpu_container(Devices=[NVIDIA_DEVICE]), (True, False)),
        (gpu_container(VISIBLE, Runtime="nvidia"), (True, True)),
        (gpu_container(VISIBLE, Runtime="runc"), (False, False)),
        (gpu_container(Runtime="nvidia"), (False, False)),
        (gpu_container(["NVIDIA_VISIBLE_DEVICES=void"], Runtime="nvidia"), (False, False)),
        (gpu_container(["NVIDIA_VISIBLE_DEVICES=none"], Runtime="nvidia"), (False, False)),
        (gpu_container(["NVIDIA_VISIBLE_DEVICES="], Runtime="nvidia"), (False, False)),
        (
            gpu_container([*VISIBLE, "NVIDIA_VISIBLE_DEVICES=void"], Runtime="nvidia"),
            (False, False),
        ),
        (gpu_container(["NVIDIA_VISIBLE_DEVICES=GPU-8a5"], Runtime="nvidia"), (True, True)),
        (gpu_container(VISIBLE, Runtime="nvidia", DeviceRequests=[CDI]), (True, True)),
    ],
)
def test_access(case, expected) -> None:
    assert (case.has_gpu, case.files_only) == expected
