"""Where the cgroup of a process is, on machines of version 1, of version 2, and of both."""

import os
from collections.abc import Mapping
from pathlib import Path

import pytest

from dltools.engine import cgroup
from dltools.engine.cgroup import Cgroup
from dltools.engine.cgroup_files import Directory
from dltools.engine.interface import Container

V2 = "30 25 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup rw\n"


def mounts(root: Path, mountinfo: str, processes: Mapping[int, str]) -> list[cgroup.Mount]:
    """Make a machine with these mounts and the cgroups of these processes."""
    (root / "proc/self").mkdir(parents=True)
    (root / "proc/self/mountinfo").write_text(mountinfo)
    for pid, text in processes.items():
        (root / f"proc/{pid}").mkdir()
        (root / f"proc/{pid}/cgroup").write_text(text)
    return cgroup.mounts(root)


def test_a_process_belongs_to_its_container_alone(machine) -> None:
    pid = machine.pid("plain")
    assert cgroup.belongs_to(pid, machine.id("plain"), machine.root)
    assert not cgroup.belongs_to(pid, machine.id("cpus05"), machine.root)
    assert not cgroup.belongs_to(1 << 22, machine.id("plain"), machine.root)


def test_a_process_that_is_gone_has_no_cgroup(machine) -> None:
    assert cgroup.of_process(1 << 22, cgroup.mounts(machine.root), machine.root) is None


def test_a_container_that_ends_is_not_taken_for_the_root(tmp_path) -> None:
    """Seen in Docker 20.10: /proc/PID/cgroup while a container is killed."""
    mounted = mounts(
        tmp_path,
        "31 25 0:27 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu\n"
        "32 25 0:28 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n"
        "33 25 0:29 / /sys/fs/cgroup/unified rw - cgroup2 cgroup rw\n",
        {7: "4:memory:/docker/c1\n1:cpu:/\n0::/docker/c1\n"},
    )
    found = cgroup.of_process(7, mounted, tmp_path, container_id="c1")
    assert found is not None
    assert found.directory("cpu") is None
    assert found.directory("memory") == (tmp_path / "sys/fs/cgroup/memory/docker/c1", 1)


def test_a_pod_finds_the_containers_of_its_node_from_its_own_namespace(tmp_path) -> None:
    """As seen with unshare --cgroup, and the node's mount as a volume."""
    top = tmp_path / "sys/fs/cgroup"
    for path, pids in (("kubepods/poda/own", f"3\n{os.getpid()}\n"), ("kubepods/podb/c1", "7\n")):
        (top / path).mkdir(parents=True)
        (top / path / "cgroup.procs").write_text(pids)
    mounted = mounts(
        tmp_path,
        "30 25 0:26 /../../.. /sys/fs/cgroup ro - cgroup2 cgroup rw\n",
        {7: "0::/../../podb/c1\n", 8: "0::/../../../system.slice/x\n", 9: "0::/\n"},
    )
    groups = [cgroup.of_process(pid, mounted, tmp_path) for pid in (7, 8, 9)]
    found = [one and one.unified for one in groups]
    assert found == [top / "kubepods/podb/c1", top / "system.slice/x", top / "kubepods/poda/own"]


def test_mount_whose_root_is_a_cgroup_shows_only_what_is_below(tmp_path) -> None:
    mounted = mounts(
        tmp_path,
        "30 25 0:26 /docker/abc /sys/fs/cgroup ro - cgroup2 cgroup rw\n",
        {7: "0::/docker/abc/x\n", 8: "0::/docker/abcd\n"},
    )
    inside = cgroup.of_process(7, mounted, tmp_path)
    assert inside is not None
    assert inside.directory("cpu") == (tmp_path / "sys/fs/cgroup/x", 2)
    assert cgroup.of_process(8, mounted, tmp_path) is None


def test_each_controller_has_its_own_version(tmp_path) -> None:
    mounted = mounts(
        tmp_path,
        "30 25 0:26 / /sys/fs/cgroup/unified rw - cgroup2 cgroup rw\n"
        "31 25 0:27 / /sys/fs/cgroup/cpu,cpuacct rw - cgroup cgroup rw,cpu,cpuacct\n"
        "32 25 0:28 / /a\\040folder rw - cgroup cgroup rw,name=systemd\n",
        {7: "5:cpu,cpuacct:/docker/c1\n1:name=systemd:/x\n0::/system.slice/c1\n"},
    )
    found = cgroup.of_process(7, mounted, tmp_path)
    assert found is not None
    v1 = Directory(tmp_path / "sys/fs/cgroup/cpu,cpuacct/docker/c1", 1)
    v2 = Directory(tmp_path / "sys/fs/cgroup/unified/system.slice/c1", 2)
    assert (found.directory("cpu"), found.directory("cpuacct")) == (v1, v1)
    assert (found.directory("memory"), found.unified) == (v2, v2.path)
    assert found.directory("name=systemd") == Directory(tmp_path / "a folder/x", 1)


def test_a_machine_without_cgroups_has_none(tmp_path) -> None:
    assert mounts(tmp_path, "25 1 0:25 / / rw - ext4 /dev/sda rw\n", {7: "1:cpu:/x\n"}) == []
    assert cgroup.of_process(7, [], tmp_path) is None


def test_the_directories_above_a_cgroup_end_at_the_mount(tmp_path) -> None:
    inner = tmp_path / "mount/docker/c1"
    inner.mkdir(parents=True)
    for folder in (inner, inner.parent, inner.parent.parent):
        (folder / "cgroup.procs").touch()
    above = cgroup.Cgroup({}, inner).ancestors("cpu")
    assert [directory.path.name for directory in above] == ["docker", "mount"]
    assert list(cgroup.Cgroup({}, None).ancestors("cpu")) == []


def test_processes_are_those_that_are_visible_here(tmp_path) -> None:
    (tmp_path / "cgroup.procs").write_text("12\n0\n7\n12\n")
    assert Cgroup({}, tmp_path).processes == [7, 12]
    assert Cgroup({}, tmp_path / "gone").processes == []
    assert Cgroup({}, None).processes == []


@pytest.mark.parametrize("controller", ["cpu", "cpuset", "freezer", "memory"])
def test_a_cgroup_without_the_controller_cpu_is_there(tmp_path, controller) -> None:
    (tmp_path / "cgroup.procs").write_text("7\n")
    found = Cgroup({"cpu": None, controller: tmp_path}, None)
    assert found.exists
    assert found.processes == [7]
    assert not Cgroup({"cpu": None, controller: tmp_path / "gone"}, None).exists


def of_two_jobs(root: Path) -> list[cgroup.Mount]:
    """Make a machine on which process 7 is of job_12, process 8 of a step of job_1."""
    return mounts(
        root,
        "31 25 0:27 / /cg/freezer rw - cgroup cgroup rw,freezer\n"
        "32 25 0:28 / /cg/cpu rw - cgroup cgroup rw,cpu\n",
        {7: "2:freezer:/slurm/job_12\n1:cpu:/\n", 8: "2:freezer:/slurm/job_1/step_0\n1:cpu:/\n"},
    )


def test_the_process_of_job_12_is_not_in_job_1(tmp_path) -> None:
    mounted = of_two_jobs(tmp_path)
    assert cgroup.of_process(7, mounted, tmp_path, container_id="job_1") is None
    assert cgroup.of_process(7, mounted, tmp_path, path="/slurm/job_1") is None
    assert not cgroup.belongs_to(7, "job_1", tmp_path)
    assert cgroup.belongs_to(7, "job_12", tmp_path)
    assert cgroup.belongs_to(8, "job_1", tmp_path)


def job(pid: int) -> Container:
    return Container("x", "job-1", pid=pid, cgroup_path="/slurm/job_1")


def test_a_cgroup_at_a_path_has_the_processes_below(tmp_path) -> None:
    mounted = of_two_jobs(tmp_path)
    step = tmp_path / "cg/freezer/slurm/job_1/step_0"
    step.mkdir(parents=True)
    (step.parent / "cgroup.procs").write_text("5\n")
    (step / "cgroup.procs").write_text("8\n")
    found = job(8).local_cgroup(mounted, tmp_path)
    assert found is not None
    assert found.directory("freezer") == Directory(step.parent, 1)
    assert found.directory("cpu") is None
    assert (found.exists, found.processes) == (True, [5, 8])
    assert job(7).local_cgroup(mounted, tmp_path) is None


ID = "4f2a" * 16
OTHER = "9c1b" * 16


@pytest.mark.parametrize(
    ("present", "own"),
    [
        # Podman with crun, systemd as its manager of cgroups: limits are those of the cgroup
        # `container`, as root and as a user (tests/emulated)
        (
            f"/machine.slice/libpod-{ID}.scope/container/init.scope",
            f"/machine.slice/libpod-{ID}.scope/container",
        ),
        (f"/machine.slice/libpod-{ID}.scope", f"/machine.slice/libpod-{ID}.scope"),
        (f"/libpod_parent/libpod-{ID}", f"/libpod_parent/libpod-{ID}"),
        # Docker, by systemd and without it, and with a systemd inside
        (f"/system.slice/docker-{ID}.scope", f"/system.slice/docker-{ID}.scope"),
        (f"/system.slice/docker-{ID}.scope/init.scope", f"/system.slice/docker-{ID}.scope"),
        (f"/docker/{ID}", f"/docker/{ID}"),
        (f"/docker/{OTHER}/docker/{ID}/x/{ID}", f"/docker/{OTHER}/docker/{ID}"),
        # kubelet, by systemd and without it
        (f"/kubepods/besteffort/pod1/{ID}/a/b", f"/kubepods/besteffort/pod1/{ID}"),
    ],
)
def test_a_containers_cgroup_is_the_one_that_is_named_after_it(tmp_path, present, own) -> None:
    mounted = mounts(tmp_path, V2, {7: f"0::{present}\n"})
    top = tmp_path / "sys/fs/cgroup"
    for folder in (top, *reversed((top / present[1:]).relative_to(top).parents)):
        (top / folder).mkdir(parents=True, exist_ok=True)
        (top / folder / "cgroup.procs").write_text("")
    (top / present[1:]).mkdir(exist_ok=True)
    (top / present[1:] / "cgroup.procs").write_text("7\n")
    found = cgroup.of_process(7, mounted, tmp_path, container_id=ID)
    assert found is not None
    assert found.unified == top / own[1:]
    assert found.processes == [7]
    assert found.parent == own.rpartition("/")[0]


@pytest.mark.parametrize(
    ("text", "is_alone"),
    [
        (f"0::/machine.slice/libpod-{ID}.scope/container\n", True),
        (f"0::/machine.slice/libpod-{ID}.scope/container/init.scope\n", True),
        (f"0::/machine.slice/libpod-{ID}.scope\n", False),
        (f"0::/libpod_parent/libpod-{ID}\n", False),
        (f"0::/kubepods/burstable/pod1/{ID}\n", False),
        # weights are version 1's here, where crun makes no cgroup in the scope
        (
            f"4:cpu,cpuacct:/machine.slice/libpod-{ID}.scope\n"
            f"0::/machine.slice/libpod-{ID}.scope/container\n",
            False,
        ),
        ("0::/\n", False),
    ],
)
def test_a_container_may_be_alone_in_a_scope_of_its_own(tmp_path, text, is_alone) -> None:
    (tmp_path / "proc/7").mkdir(parents=True)
    (tmp_path / "proc/7/cgroup").write_text(text)
    assert cgroup.is_alone_in_scope(7, ID, tmp_path) is is_alone
    assert not cgroup.is_alone_in_scope(7, "", tmp_path)
