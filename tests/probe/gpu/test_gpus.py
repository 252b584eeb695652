"""GPUs by a faked NVML; on a machine with a GPU, by the real one."""

import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from probe.gpu.fake_nvml import ERRORS, FakeNvml, Gpu

from dltools.engine.host import memory_bytes
from dltools.observations.table import Row, to_table
from dltools.probe.gpu import gpu_rows, nvml
from dltools.probe.gpu.gpu_rows import Gpus, container_of, owners

A, B = "a" * 64, "b" * 64
SECOND = 1_000_000


def owned(pids: Iterable[int]) -> Mapping[int, str]:
    """Processes from 100 are A's, from 200 B's, others nobody's."""
    return {pid: A if pid < 200 else B for pid in pids if 100 <= pid < 300}


@pytest.fixture
def fake(monkeypatch: pytest.MonkeyPatch) -> FakeNvml:
    made = FakeNvml([])
    monkeypatch.setitem(sys.modules, "pynvml", made)
    monkeypatch.setattr(gpu_rows, "driver_present", lambda: True)
    return made


@pytest.fixture
def install(fake: FakeNvml) -> Callable[..., Gpus]:
    def installed(*gpus: Gpu) -> Gpus:
        fake.gpus.extend(gpus)
        return Gpus(owned)

    return installed


def by_owner(rows: list[Row]) -> dict[str | None, Row]:
    return {row.get("container_id"): row for row in rows}


def test_without_a_driver_nvml_is_not_loaded(monkeypatch) -> None:
    monkeypatch.setattr(nvml, "DRIVER", (Path("/no/such/device"),))
    monkeypatch.setitem(sys.modules, "pynvml", None)  # an import would fail
    gpus = Gpus()
    assert gpus.sample(0) == []
    assert (gpus.count, gpus.gap) == (0, None)


def test_a_gpu_and_the_container_on_it(install) -> None:
    processes, samples = {100: 1 << 30, 101: 1 << 30}, [(100, SECOND, 30), (101, SECOND, 20)]
    gpus = install(Gpu(b"GPU-1", 40, (80 << 30, 3 << 30), 250_000, 9_000_000, processes, samples))
    rows = by_owner(gpus.sample(0))
    assert gpus.count == 1
    assert rows[None] == {
        "kind": "gpu",
        "gpu_uuid": "GPU-1",
        "gpu_memory_limit_bytes": 80 << 30,
        "gpu_utilization_ratio": 0.4,
        "gpu_memory_used_bytes": 3 << 30,
        "gpu_power_watts": 250.0,
        "gpu_energy_joules": 9000.0,
        "gap": None,
    }
    assert rows[A]["gpu_memory_used_bytes"] == 2 << 30
    assert rows[A]["gpu_sm_ratio"] == 0.5
    assert rows[A]["gpu_utilization_ratio"] == 0.4  # alone on it: the GPU's own
    assert rows[A]["gap"] is None


def test_two_containers_share_a_gpu(install) -> None:
    processes = {100: 1 << 30, 200: 2 << 30, 7: 5}
    samples = [(100, SECOND, 60), (200, SECOND, 25), (7, SECOND, 5)]
    gpu = Gpu("GPU-1", 90, processes=processes, samples=samples)
    gpus = install(gpu)
    rows = by_owner(gpus.sample(0))
    assert [rows[key]["gpu_utilization_ratio"] for key in (A, B)] == [0.6, 0.25]
    assert [rows[key]["gpu_memory_used_bytes"] for key in (A, B)] == [1 << 30, 2 << 30]
    gpu.samples += [(100, 2 * SECOND, 10), (100, 3 * SECOND, 30)]
    rows = by_owner(gpus.sample(2))
    assert [rows[key]["gpu_sm_ratio"] for key in (A, B)] == [0.2, 0.0]  # the mean


def test_a_gpu_that_was_idle_for_long_is_measured_again(install) -> None:
    gpu = Gpu("GPU-1", 0, processes={100: 1, 200: 1}, samples=[(100, SECOND, 50)])
    gpus = install(gpu)
    gpus.sample(0)
    for now in (1, 300):  # NVML says NotFound: nothing ran
        rows = by_owner(gpus.sample(now))
        assert [rows[key]["gpu_sm_ratio"] for key in (A, B)] == [0.0, 0.0]
    gpu.samples = [(100, 599 * SECOND, 40), (200, 999 * SECOND, 7)]  # the second is impossible
    rows = by_owner(gpus.sample(600))
    assert [rows[key]["gpu_sm_ratio"] for key in (A, B)] == [0.4, 0.0]


def test_old_samples_do_not_count_at_first(install) -> None:
    samples = [(100, SECOND, 100), (100, 9 * SECOND, 20), (200, 9 * SECOND, 30)]
    gpus = install(Gpu("GPU-1", 50, processes={100: 1, 200: 1}, samples=samples))
    rows = by_owner(gpus.sample(0))
    assert [rows[key]["gpu_sm_ratio"] for key in (A, B)] == [0.2, 0.3]


def test_rubbish_after_a_death_is_no_measurement(install) -> None:
    gpu = Gpu("GPU-1", 50, processes={100: 1, 200: 1}, samples=[(100, SECOND, 50)])
    gpus = install(gpu)
    gpus.sample(0)
    gpu.samples = [(100, 2 * SECOND, 4_294_967_295), (0, 2 * SECOND, 5), (200, 1 << 60, 7)]
    rows = by_owner(gpus.sample(1))
    assert [rows[key]["gpu_sm_ratio"] for key in (A, B)] == [None, None]
    assert "shared GPU: utilisation by process not available" in rows[A]["gap"]
    gpu.samples = [(100, 2 * SECOND, 30)]  # and the far time stamp was not taken over
    assert by_owner(gpus.sample(2))[A]["gpu_sm_ratio"] == 0.3


@pytest.mark.parametrize(("is_old", "limit", "used"), [(False, 79, 3), (True, 80, 4)])
def test_memory_that_the_driver_keeps_is_not_used(install, is_old, limit, used) -> None:
    gpu = Gpu("GPU-1", memory=(80 << 30, 3 << 30), reserved=1 << 30, is_old=is_old)
    (row,) = install(gpu).sample(0)
    assert row["gpu_memory_limit_bytes"] == limit << 30
    assert row["gpu_memory_used_bytes"] == used << 30


def test_unified_memory_is_the_host_s(install) -> None:
    """As a GB10 answers: memory is not supported, but for that of each process."""
    unsupported = {"nvmlDeviceGetMemoryInfo": "NOT_SUPPORTED"}
    gpu = Gpu("GPU-1", 40, processes={100: 1 << 30, 200: 2 << 30}, faults=unsupported)
    rows = by_owner(install(gpu).sample(0))
    total = memory_bytes()["MemTotal"]
    assert {row["gpu_memory_limit_bytes"] for row in rows.values()} == {total}
    assert 0 < rows[None]["gpu_memory_used_bytes"] < total
    assert rows[None]["gap"] == "unified memory: the host's"
    assert [rows[key]["gpu_memory_used_bytes"] >> 30 for key in (A, B)] == [1, 2]


@pytest.mark.parametrize("error", ["NO_PERMISSION", "FUNCTION_NOT_FOUND", "TIMEOUT"])
def test_memory_that_cannot_be_read_is_not_taken_for_unified(install, error) -> None:
    (row,) = install(Gpu("GPU-1", faults={"nvmlDeviceGetMemoryInfo": error})).sample(0)
    assert (row["gpu_memory_limit_bytes"], row["gap"]) == (None, None)


OLD, NEW = "nvmlDeviceGetProcessUtilization", "nvmlDeviceGetProcessesUtilizationInfo"


@pytest.mark.parametrize("error", ["NOT_SUPPORTED", "FUNCTION_NOT_FOUND", "INVALID_ARGUMENT"])
def test_where_the_old_call_fails_the_newer_one_tells(fake, install, error) -> None:
    samples = [(100, SECOND, 60), (200, SECOND, 25)]
    gpu = Gpu("GPU-1", 85, processes={100: 1, 200: 1}, samples=samples, faults={OLD: error})
    gpus = install(gpu)
    rows = by_owner(gpus.sample(0))
    assert [rows[key]["gpu_sm_ratio"] for key in (A, B)] == [0.6, 0.25]
    rows = by_owner(gpus.sample(1))  # NotFound: nothing ran
    assert [rows[key]["gpu_sm_ratio"] for key in (A, B)] == [0.0, 0.0]
    fake.faults[NEW] = error
    rows = by_owner(gpus.sample(2))
    assert [rows[key]["gpu_sm_ratio"] for key in (A, B)] == [None, None]


def test_several_containers_on_one_mig_instance(install) -> None:
    """Each has its memory; nobody's use is known, and none is taken for idle."""
    faults = {"nvmlDeviceGetUtilizationRates": "NOT_SUPPORTED", OLD: "NOT_FOUND"}
    part = Gpu("MIG-1", memory=(10 << 30, 3 << 30), processes={100: 5, 200: 6}, faults=faults)
    rows = by_owner(install(Gpu("GPU-1", mig=[part])).sample(0))
    assert [rows[key]["gpu_memory_used_bytes"] for key in (A, B)] == [5, 6]
    assert [rows[key]["gpu_utilization_ratio"] for key in (A, B)] == [None, None]
    assert {rows[key]["gap"] for key in (A, B)} == {"MIG: utilisation by process not available"}


def test_memory_that_nvml_does_not_know(install) -> None:
    gpu = Gpu("GPU-1", processes={100: nvml.NOT_AVAILABLE, 200: None})
    rows = by_owner(install(gpu).sample(0))
    for key in (A, B):
        assert rows[key]["gpu_memory_used_bytes"] is None
        assert "memory by process: not available" in rows[key]["gap"]


def test_mig_instances_stand_for_themselves(install) -> None:
    unsupported = {"nvmlDeviceGetUtilizationRates": "NOT_SUPPORTED"}
    parts = [
        Gpu("MIG-1", memory=(10 << 30, 1 << 30), processes={100: 5}, faults=unsupported),
        None,
        Gpu("MIG-2", memory=(20 << 30, 2 << 30), processes={200: 6}, faults=unsupported),
    ]
    rows = install(Gpu("GPU-1", mig=parts, power_mw=70_000)).sample(0)
    assert [row["gpu_uuid"] for row in rows] == ["MIG-1", "MIG-1", "MIG-2", "MIG-2"]
    whole, of_a = rows[:2]
    assert whole["gpu_memory_limit_bytes"] == 10 << 30
    assert whole["gap"] == "utilisation: not measured for MIG instances"
    assert whole["gpu_power_watts"] == 70.0
    assert (of_a["container_id"], of_a["gpu_memory_used_bytes"]) == (A, 5)
    assert of_a["gpu_utilization_ratio"] is None


def test_a_lost_gpu_does_not_hide_the_others(fake, install) -> None:
    lost = Gpu("GPU-1", faults={"nvmlDeviceGetMemoryInfo": "GPU_IS_LOST"})
    gpus = install(lost, Gpu("GPU-2", 10))
    first, second = gpus.sample(0)
    assert first == {"kind": "gpu", "gpu_uuid": "GPU-1", "gap": "GPU lost: GPU is lost"}
    assert second["gpu_utilization_ratio"] == 0.1
    for now, inits in ((30, 1), (61, 1), (62, 2)):  # it is tried again
        assert gpus.sample(now)[0]["gap"] == "GPU lost: GPU is lost"
        assert fake.inits == inits
    lost.faults.clear()
    for now in (122, 123, 124):
        first, _ = gpus.sample(now)
    assert first["gpu_utilization_ratio"] == 0.0


def test_a_gpu_that_cannot_be_opened_is_counted(fake, install) -> None:
    real = fake._DeviceGetHandleByIndex

    def handle(index: int) -> Gpu:
        if index == 0:
            raise fake.NVMLError("GPU_IS_LOST")
        return real(index)

    fake._DeviceGetHandleByIndex = handle
    gpus = install(Gpu("GPU-1"), Gpu("GPU-2"))
    assert [row["gpu_uuid"] for row in gpus.sample(0)] == ["GPU-2"]
    assert (gpus.count, gpus.gap) == (2, "NVML: 1 of 2 GPUs cannot be opened")


@pytest.mark.parametrize("error", ["DRIVER_NOT_LOADED", "LIBRARY_NOT_FOUND"])
def test_nvml_that_does_not_start_is_told_and_tried_again(fake, install, error) -> None:
    fake.faults["nvmlInit"] = error
    gpus = install(Gpu("GPU-1"))
    assert gpus.sample(0) == []
    assert gpus.count is None
    assert (gpus.gap or "").startswith("NVML: ")
    fake.faults.clear()
    assert gpus.sample(30) == []
    assert len(gpus.sample(60)) == 1
    assert (gpus.count, gpus.gap) == (1, None)


CALLS = (
    "DeviceGetCount DeviceGetHandleByIndex DeviceGetUUID DeviceGetMigMode DeviceGetMemoryInfo "
    "DeviceGetUtilizationRates DeviceGetPowerUsage DeviceGetTotalEnergyConsumption "
    "DeviceGetComputeRunningProcesses DeviceGetGraphicsRunningProcesses "
    "DeviceGetProcessUtilization DeviceGetProcessesUtilizationInfo Shutdown Init"
)


@given(
    st.lists(
        st.dictionaries(
            st.sampled_from([f"nvml{c}" for c in CALLS.split()]), st.sampled_from(list(ERRORS))
        ),
        min_size=1,
        max_size=6,
    )
)
def test_no_series_of_faults_makes_it_fail(series) -> None:
    with pytest.MonkeyPatch.context() as patch:
        fake = FakeNvml([Gpu("GPU-1", 50, processes={100: 5}, samples=[(100, SECOND, 5)])])
        patch.setitem(sys.modules, "pynvml", fake)
        patch.setattr(gpu_rows, "driver_present", lambda: True)
        gpus = Gpus(owned)
        for number, faults in enumerate(series):
            fake.faults = faults
            rows = gpus.sample(number * 45.0)
            stamp = {"time": datetime.now(UTC), "host": "h"}
            assert to_table([stamp | row for row in rows]).num_rows == len(rows)


def test_eight_gpus_with_forty_processes_each_take_few_calls(fake, install) -> None:
    pids = range(100, 140)
    processes, samples = dict.fromkeys(pids, 1), [(pid, SECOND, 2) for pid in pids]
    each = [Gpu(f"GPU-{n}", 50, processes=processes, samples=samples) for n in range(8)]
    gpus = install(*each)
    gpus.sample(0)
    fake.calls.clear()
    assert len(gpus.sample(1)) == 16
    assert len(fake.calls) <= 8 * 8, "calls are made for each GPU, not for each process"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (f"0::/system.slice/docker-{A}.scope\n", A),
        (f"12:cpu,cpuacct:/docker/{A}\n0::/docker/{A}\n", A),
        (f"0::/kubepods.slice/kubepods-pod1.slice/cri-containerd-{A}.scope\n", A),
        (f"5:memory:/kubepods/burstable/pod123/{A}\n", A),
        (f"0::/docker/{A}/docker/{B}\n", A),
        (f"3:devices:/user.slice\n1:name=systemd:/my.slice/{B}\n", B),
        (f"0::/docker/{A[:40]}\n", None),
        (f"0::/docker/{A}f\n", None),
        ("", None),
    ],
)
def test_a_process_is_found_in_its_container(text, expected) -> None:
    assert container_of(text) == expected


@pytest.fixture
def real() -> Iterator[Gpus]:
    if not nvml.driver_present():
        pytest.skip("no NVIDIA driver on this machine: the real NVML is not tried")
    yield Gpus()


def test_the_real_nvml_answers(real) -> None:
    rows = real.sample(0)
    assert real.gap is None
    assert real.count and len(rows) >= real.count
    for row in rows:
        assert row["gpu_uuid"].startswith(("GPU-", "MIG-"))
        assert row["gpu_memory_limit_bytes"] > 1 << 28
        assert 0 <= row["gpu_memory_used_bytes"] <= row["gpu_memory_limit_bytes"]


def test_a_container_without_an_id_in_its_path_is_found_by_the_path(tmp_path) -> None:
    places = {"/jobs/a": A, "/jobs/a/inner": B}
    assert container_of("3:cpu:/jobs/a/task_0\n", places) == A
    assert container_of("3:cpu:/jobs/a/inner\n", places) == B
    assert container_of("3:cpu:/jobs/ab\n4:pids:/\n", places) is None


def test_processes_have_owners_and_those_that_have_ended_none(tmp_path) -> None:
    for pid, path in ((5, "/jobs/a"), (7, f"/docker/{A}")):
        (tmp_path / f"proc/{pid}").mkdir(parents=True)
        (tmp_path / f"proc/{pid}/cgroup").write_text(f"0::{path}\n")
    assert owners([5, 6], tmp_path, {"/jobs/a": B}) == {5: B}
    assert owners([6, 7], tmp_path) == {7: A}
