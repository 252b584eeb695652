"""Counters and limits of containers, in the cgroup trees of real machines of both versions."""

import pytest
from helpers.cgroup_trees import Machine

from dltools.engine import cgroup
from dltools.engine.cgroup import Cgroup
from dltools.engine.cgroup_files import Usage, network_bytes
from dltools.notation.limits import Limits


def group_of(machine: Machine, name: str) -> Cgroup:
    found = cgroup.of_process(machine.pid(name), cgroup.mounts(machine.root), machine.root)
    assert found is not None
    return found


def usage(machine: Machine, name: str) -> Usage:
    return group_of(machine, name).usage()


def limits(machine: Machine, name: str) -> Limits:
    return group_of(machine, name).limits()


@pytest.mark.parametrize(
    ("name", "cores"),
    [("plain", None), ("cpus05", 0.5), ("quota150", 1.5), ("shares512", None), ("cpuset1", None)],
)
def test_quota_is_what_the_container_was_started_with(machine, name, cores) -> None:
    assert limits(machine, name)["cpus"] == cores


def test_weight_is_in_docker_shares_with_1024_the_default(machine) -> None:
    assert limits(machine, "plain")["weight"] == 1024
    # runc 1.1 turns 512 shares into weight 20 of 100 on version 2: a fifth of the default's CPU.
    assert limits(machine, "shares512")["weight"] == (512 if machine.version == 1 else 204.8)


def test_cpuset_is_the_effective_one(machine) -> None:
    assert limits(machine, "plain")["cpuset"] == "0-1"
    assert limits(machine, "cpuset1")["cpuset"] == "1"


def test_memory_is_told_apart(machine) -> None:
    found = usage(machine, "mem256")
    assert found.memory.limit == 256 << 20
    assert found.memory.shmem is not None
    assert found.memory.shmem >= 32 << 20  # it holds 32 MiB in /dev/shm
    assert found.memory.used is not None
    assert found.memory.working_set is not None
    assert found.memory.shmem <= found.memory.working_set <= found.memory.used < 256 << 20
    assert usage(machine, "plain").memory.limit is None


def test_cpu_seconds_agree_with_those_of_the_processes(machine) -> None:
    for name in ("plain", "cpus05", "shares512", "cpuset1", "paused"):
        stat = (machine.root / f"proc/{machine.pid(name)}/stat").read_text()
        ticks = sum(map(int, stat.rpartition(")")[2].split()[11:15]))  # own and waited-for
        assert usage(machine, name).cpu.seconds == pytest.approx(ticks / 100, rel=0.05, abs=0.2)


def test_throttling_is_in_seconds(machine) -> None:
    for name in machine.containers:
        throttled = usage(machine, name).cpu.throttled_seconds
        assert throttled is not None
        assert 0 <= throttled < 5


def test_threads_are_counted(machine) -> None:
    assert usage(machine, "plain").threads == 1
    assert usage(machine, "quota150").threads == 2


def test_pressure_is_read_from_the_unified_hierarchy_on_both_versions(machine) -> None:
    assert usage(machine, "plain").pressure.keys() == {"cpu", "memory", "io"}
    assert usage(machine, "plain").pressure["cpu"] > 0


def test_network_bytes_leave_lo_out(machine) -> None:
    found = network_bytes(machine.pid("plain"), machine.root)
    assert found.read is not None
    assert found.written is not None
    assert 0 <= found.written < 100_000


def test_a_vanished_cgroup_gives_unknowns_and_no_error(tmp_path) -> None:
    gone = cgroup.Cgroup({}, tmp_path / "gone")
    assert not gone.exists
    assert gone.usage().cpu.seconds is None
    assert "cpus" not in gone.limits()
    assert not gone.usage().memory.is_limit_known
