from collections.abc import Iterator
from pathlib import Path

import pytest
from helpers.cgroup_trees import TREES, Machine

from dltools.engine import cgroup, host
from dltools.engine.host import shared_cgroups, usable_cpus


def groups(machine: Machine) -> list[cgroup.Cgroup]:
    mounted = cgroup.mounts(machine.root)
    found = (
        cgroup.of_process(machine.pid(name), mounted, machine.root) for name in machine.containers
    )
    return [one for one in found if one is not None]


def test_the_host_has_the_cpus_and_memory_of_the_machine(machine) -> None:
    row = host.measure(
        host.shared_cgroups(groups(machine), cgroup.mounts(machine.root)), machine.root
    )
    assert row["cpu_count"] == 2
    assert row["memory_total_bytes"] > row["memory_available_bytes"] > 1 << 30
    assert row["cpu_seconds"] > 10
    assert row["cpu_pressure_seconds"] > 0


def test_a_host_without_containers_is_still_measured(machine) -> None:
    assert usable_cpus(shared_cgroups([], cgroup.mounts(machine.root)), machine.root) == 2


@pytest.fixture
def own_machine(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Machine]:
    yield Machine(request.param, tmp_path)


@pytest.mark.parametrize("own_machine", TREES, indirect=True)
@pytest.mark.slow
def test_quota_of_the_parent_bounds_the_host(own_machine) -> None:
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
        usable_cpus(host.shared_cgroups(found, cgroup.mounts(own_machine.root)), own_machine.root)
        == 1.3
    )


def test_quota_of_one_container_does_not_bound_the_host(machine) -> None:
    mounted = cgroup.mounts(machine.root)
    one = cgroup.of_process(machine.pid("cpus05"), mounted, machine.root)
    assert one is not None
    assert usable_cpus(shared_cgroups([one], mounted), machine.root) == 2


@pytest.mark.parametrize("own_machine", TREES, indirect=True)
@pytest.mark.slow
def test_cpuset_of_the_parent_bounds_the_host(own_machine) -> None:
    found = groups(own_machine)
    above = found[0].directory("cpuset")
    assert above is not None
    name = "cpuset.effective_cpus" if own_machine.version == 1 else "cpuset.cpus.effective"
    (above[0].parent / name).write_text("1\n")
    assert (
        usable_cpus(host.shared_cgroups(found, cgroup.mounts(own_machine.root)), own_machine.root)
        == 1
    )
