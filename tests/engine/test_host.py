from collections.abc import Iterator
from pathlib import Path

import pytest
from helpers.cgroup_trees import TREES, Machine

from dltools.engine import cgroup, host
from dltools.engine.host import shared_cgroups, usable_cpus


def groups(machine: Machine) -> list[cgroup.Cgroup]:
    mounted = cgroup.mounts(machine.root)
    found = (cgroup.of_process(machine.pid(n), mounted, machine.root) for n in machine.containers)
    return [one for one in found if one is not None]


def test_the_host_has_the_cpus_and_memory_of_the_machine(machine) -> None:
    row = host.measure(shared_cgroups(groups(machine), cgroup.mounts(machine.root)), machine.root)
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
@pytest.mark.parametrize(
    ("controller", "files", "usable"),
    [
        ("cpu", ({"cfs_quota_us": "130000"}, {"max": "130000 100000"}), 1.3),
        ("cpuset", ({"effective_cpus": "1"}, {"cpus.effective": "1"}), 1),
    ],
)
@pytest.mark.slow
def test_limits_of_the_parent_bound_the_host(own_machine, controller, files, usable) -> None:
    found = groups(own_machine)
    above = found[0].directory(controller)
    assert above is not None
    for name, text in files[own_machine.version - 1].items():
        (above.path.parent / f"{controller}.{name}").write_text(f"{text}\n")
    shared = shared_cgroups(found, cgroup.mounts(own_machine.root))
    assert usable_cpus(shared, own_machine.root) == usable


def test_quota_of_one_container_does_not_bound_the_host(machine) -> None:
    mounted = cgroup.mounts(machine.root)
    one = cgroup.of_process(machine.pid("cpus05"), mounted, machine.root)
    assert one is not None
    assert usable_cpus(shared_cgroups([one], mounted), machine.root) == 2


@pytest.mark.parametrize(
    ("siblings", "expected"),
    [
        (("0,2", "1,3", "0,2", "1,3"), "0,2+1,3"),
        (("0-1", "0-1", "2-3", "2-3"), "0-1+2-3"),
        (("0", "1"), None),
        (("", "?"), None),
    ],
)
def test_cores_are_the_cpus_that_share_one(siblings, expected, tmp_path) -> None:
    for number, text in enumerate(siblings):
        topology = tmp_path / f"sys/devices/system/cpu/cpu{number}/topology"
        topology.mkdir(parents=True)
        (topology / "thread_siblings_list").write_text(f"{text}\n")
    assert host.cores(tmp_path) == expected
