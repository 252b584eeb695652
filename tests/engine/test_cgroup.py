from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from helpers.cgroup_trees import TREES, Machine

from dltools.engine import cgroup, node


@pytest.fixture(scope="module", params=TREES)
def machine(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Machine:
    return Machine(request.param, tmp_path_factory.mktemp("machine"))


def usage(machine: Machine, name: str) -> cgroup.Usage:
    found = cgroup.of_process(machine.pid(name), cgroup.mounts(machine.root), machine.root)
    assert found is not None
    return cgroup.usage(found)


@pytest.mark.parametrize(
    ("name", "cores"),
    [("plain", None), ("cpus05", 0.5), ("quota150", 1.5), ("shares512", None), ("cpuset1", None)],
)
def test_quota_is_what_the_container_was_started_with(
    machine: Machine, name: str, cores: float | None
) -> None:
    found = usage(machine, name)
    assert found.cpu_limit == cores
    assert "cpu_limit" in found.known


def test_weight_is_in_docker_shares_with_1024_the_default(machine: Machine) -> None:
    assert usage(machine, "plain").cpu_weight == 1024
    # runc 1.1 turns 512 shares into weight 20 of 100 on version 2: a fifth of the default's CPU.
    assert usage(machine, "shares512").cpu_weight == (512 if machine.version == 1 else 204.8)


def test_cpuset_is_the_effective_one(machine: Machine) -> None:
    assert usage(machine, "plain").cpuset == "0-1"
    assert usage(machine, "cpuset1").cpuset == "1"


def test_memory_is_told_apart(machine: Machine) -> None:
    found = usage(machine, "mem256")
    assert found.memory_limit == 256 << 20
    assert found.memory_shmem is not None
    assert found.memory_shmem >= 32 << 20  # it holds 32 MiB in /dev/shm
    assert found.memory_usage is not None
    assert found.memory_working_set is not None
    assert found.memory_shmem <= found.memory_working_set <= found.memory_usage < 256 << 20
    assert usage(machine, "plain").memory_limit is None


def test_cpu_seconds_agree_with_those_of_the_processes(machine: Machine) -> None:
    for name in ("plain", "cpus05", "shares512", "cpuset1", "paused"):
        stat = (machine.root / f"proc/{machine.pid(name)}/stat").read_text()
        ticks = sum(map(int, stat.rpartition(")")[2].split()[11:15]))  # own and waited-for
        assert usage(machine, name).cpu_seconds == pytest.approx(ticks / 100, rel=0.05, abs=0.2)


def test_throttling_is_in_seconds(machine: Machine) -> None:
    for name in machine.containers:
        throttled = usage(machine, name).throttled_seconds
        assert throttled is not None
        assert 0 <= throttled < 5


def test_threads_are_counted(machine: Machine) -> None:
    assert usage(machine, "plain").threads == 1
    assert usage(machine, "quota150").threads == 2


def test_pressure_is_read_from_the_unified_hierarchy_on_both_versions(machine: Machine) -> None:
    assert usage(machine, "plain").pressure.keys() == {"cpu", "memory", "io"}
    assert usage(machine, "plain").pressure["cpu"] > 0


def test_a_process_belongs_to_its_container_alone(machine: Machine) -> None:
    pid = machine.pid("plain")
    assert cgroup.belongs_to(pid, machine.id("plain"), machine.root)
    assert not cgroup.belongs_to(pid, machine.id("cpus05"), machine.root)
    assert not cgroup.belongs_to(1 << 22, machine.id("plain"), machine.root)


def test_network_bytes_leave_lo_out(machine: Machine) -> None:
    received, sent = cgroup.network_bytes(machine.pid("plain"), machine.root)
    assert received is not None
    assert sent is not None
    assert 0 <= sent < 100_000


def test_a_process_that_is_gone_has_no_cgroup(machine: Machine) -> None:
    assert cgroup.of_process(1 << 22, cgroup.mounts(machine.root), machine.root) is None


def test_a_vanished_cgroup_gives_unknowns_and_no_error(tmp_path: Path) -> None:
    gone = cgroup.Cgroup({}, tmp_path / "gone")
    assert not gone.exists
    assert cgroup.usage(gone).cpu_seconds is None
    assert cgroup.usage(gone).known == frozenset()


# The node


def groups(machine: Machine) -> list[cgroup.Cgroup]:
    mounted = cgroup.mounts(machine.root)
    found = (
        cgroup.of_process(machine.pid(name), mounted, machine.root) for name in machine.containers
    )
    return [one for one in found if one is not None]


def test_node_has_the_cpus_and_memory_of_the_machine(machine: Machine) -> None:
    row = node.sample(node.bounds(groups(machine), cgroup.mounts(machine.root)), machine.root)
    assert row["cpu_count"] == 2
    assert row["memory_total_bytes"] > row["memory_available_bytes"] > 1 << 30
    assert row["cpu_seconds"] > 10
    assert row["cpu_pressure_seconds"] > 0


def test_node_without_containers_is_still_measured(machine: Machine) -> None:
    assert node.usable_cpus(node.bounds([], cgroup.mounts(machine.root)), machine.root) == 2


@pytest.fixture
def own_machine(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Machine]:
    yield Machine(request.param, tmp_path)


@pytest.mark.parametrize("own_machine", TREES, indirect=True)
def test_quota_of_the_parent_bounds_the_node(own_machine: Machine) -> None:
    found = groups(own_machine)
    above = found[0].directory("cpu")
    assert above is not None
    parent = above[0].parent
    if own_machine.version == 1:
        (parent / "cpu.cfs_period_us").write_text("100000\n")
        (parent / "cpu.cfs_quota_us").write_text("130000\n")
    else:
        (parent / "cpu.max").write_text("130000 100000\n")
    assert (
        node.usable_cpus(node.bounds(found, cgroup.mounts(own_machine.root)), own_machine.root)
        == 1.3
    )


@pytest.mark.parametrize("own_machine", TREES, indirect=True)
def test_quota_of_one_container_does_not_bound_the_node(own_machine: Machine) -> None:
    mounted = cgroup.mounts(own_machine.root)
    one = cgroup.of_process(own_machine.pid("cpus05"), mounted, own_machine.root)
    assert one is not None
    assert node.usable_cpus(node.bounds([one], mounted), own_machine.root) == 2


@pytest.mark.parametrize("own_machine", TREES, indirect=True)
def test_cpuset_of_the_parent_bounds_the_node(own_machine: Machine) -> None:
    found = groups(own_machine)
    above = found[0].directory("cpuset")
    assert above is not None
    name = "cpuset.effective_cpus" if own_machine.version == 1 else "cpuset.cpus.effective"
    (above[0].parent / name).write_text("1\n")
    assert (
        node.usable_cpus(node.bounds(found, cgroup.mounts(own_machine.root)), own_machine.root) == 1
    )


def test_mount_whose_root_is_a_cgroup_shows_only_what_is_below(tmp_path: Path) -> None:
    (tmp_path / "proc/self").mkdir(parents=True)
    (tmp_path / "proc/self/mountinfo").write_text(
        "30 25 0:26 /docker/abc /sys/fs/cgroup ro - cgroup2 cgroup rw\n"
    )
    for pid, path in (("7", "/docker/abc/x"), ("8", "/docker/abcd")):
        (tmp_path / "proc" / pid).mkdir()
        (tmp_path / "proc" / pid / "cgroup").write_text(f"0::{path}\n")
    mounted = cgroup.mounts(tmp_path)
    inside = cgroup.of_process(7, mounted, tmp_path)
    assert inside is not None
    assert inside.directory("cpu") == (tmp_path / "sys/fs/cgroup/x", 2)
    assert cgroup.of_process(8, mounted, tmp_path) is None
