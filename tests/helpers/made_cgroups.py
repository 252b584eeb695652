"""Machines with cgroups made of files: of version 1, a hierarchy for each controller, or of 2."""

from collections.abc import Sequence
from pathlib import Path

from dltools.engine.cgroups.cgroup_engine import CgroupEngine
from dltools.engine.interface import LocatedContainer

V1 = ("cpu", "cpuset", "freezer", "cpuacct")
FILES = {
    "cpu": {
        "cpu.shares": "1024",
        "cpu.cfs_quota_us": "-1",
        "cpu.cfs_period_us": "100000",
        "cpu.cfs_burst_us": "0",
    },
    "cpuset": {"cpuset.cpus": "0-1"},
    "freezer": {"freezer.state": "THAWED"},
    "cpuacct": {"cpuacct.usage": "7000000000"},
    "v2": {
        "cpu.max": "max 100000",
        "cpu.max.burst": "0",
        "cpu.weight": "100",
        "cpuset.cpus": "",
        "cpuset.cpus.effective": "0-1",
        "cgroup.freeze": "0",
        "cgroup.events": "populated 1\nfrozen 0",
    },
}
"""The texts of a new cgroup, by controller."""


class Machine:
    """One machine. Its processes are files in `root`/proc."""

    def __init__(self, root: Path, controllers: Sequence[str] = V1) -> None:
        """Version 1 with these controllers; none: version 2."""
        self.root = root
        self.controllers = controllers
        self._pids: dict[str, list[int]] = {}
        (root / "proc/self").mkdir(parents=True)
        (root / "etc").mkdir()
        (root / "etc/machine-id").write_text("abc\n")
        (root / "proc/stat").write_text("cpu  1 2 3\nbtime 1700000000\n")
        random = root / "proc/sys/kernel/random"
        random.mkdir(parents=True)
        (random / "boot_id").write_text("b1\n")
        lines = [f"3 2 0:1 / /cg/{one} rw - cgroup cgroup rw,{one}" for one in controllers]
        lines = lines or ["3 2 0:1 / /cg/v2 rw - cgroup2 cgroup rw"]
        (root / "proc/self/mountinfo").write_text("\n".join(lines) + "\n")
        for folder in self.hierarchies:
            self.folder(folder, "/").mkdir(parents=True)
            (self.folder(folder, "/") / "cgroup.procs").touch()
        if not controllers:
            (self.folder("v2", "/") / "cgroup.controllers").write_text("cpuset cpu io memory pids")

    @property
    def hierarchies(self) -> Sequence[str]:
        return self.controllers or ("v2",)

    def folder(self, hierarchy: str, path: str) -> Path:
        return self.root / "cg" / hierarchy / path.lstrip("/")

    def add(
        self, path: str, *pids: int, only: Sequence[str] = (), name: str = "python3", began: int = 0
    ) -> None:
        """Make a cgroup with processes, in all hierarchies or `only` in some."""
        chosen = [one for one in self.hierarchies if not only or one in only]
        for hierarchy in chosen:
            folder = self.folder(hierarchy, path)
            for one in (*reversed(folder.relative_to(self.folder(hierarchy, "/")).parents), None):
                made = self.folder(hierarchy, str(one)) if one is not None else folder
                made.mkdir(exist_ok=True)
                (made / "cgroup.procs").touch()
            (folder / "cgroup.procs").write_text("".join(f"{pid}\n" for pid in pids))
            for file, text in FILES[hierarchy].items():
                (folder / file).write_text(text + "\n")
        for pid in pids:
            self.process(pid, path, chosen, name=name, began=began or pid)

    def process(self, pid: int, path: str, chosen: Sequence[str], *, name: str, began: int) -> None:
        proc = self.root / "proc" / str(pid)
        proc.mkdir(exist_ok=True)
        fields = " ".join(["S", *["0"] * 18, str(began), "0"])
        (proc / "stat").write_text(f"{pid} ({name}) {fields}\n")
        lines = [f"1:{one}:{path if one in chosen else '/'}" for one in self.controllers]
        (proc / "cgroup").write_text("\n".join(lines or [f"0::{path}"]) + "\n")
        (proc / "cmdline").write_bytes(b"python3\0train.py\0")
        (proc / "environ").write_bytes(b"")

    def texts(self, path: str) -> dict[str, str]:
        return {
            file: (folder / file).read_text().strip()
            for one in self.hierarchies
            if (folder := self.folder(one, path)).is_dir()
            for file in FILES[one]
            if (folder / file).exists()
        }


def located(engine: CgroupEngine, path: str) -> LocatedContainer:
    container = engine.inspect(path.lstrip("/"))
    tree = engine._tree
    return LocatedContainer(container, tree.at(path), 2.0, "0-1")
