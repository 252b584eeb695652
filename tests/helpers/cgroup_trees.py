"""The cgroup trees recorded on real machines (tests/emulated says how), unpacked."""

import json
import tarfile
from pathlib import Path
from typing import Any

FIXTURES = Path(__file__).parents[1] / "fixtures" / "cgroup"
TREES = ("v1-cgroupfs", "v2-systemd", "v2-cgroupfs")


class Machine:
    """One recorded machine: the root of its files, and its containers by what they show."""

    def __init__(self, tree: str, directory: Path) -> None:
        with tarfile.open(FIXTURES / f"{tree}.tar.gz") as archive:
            archive.extractall(directory, filter="data")
        self.tree = tree
        self.version = int(tree[1])
        self.root = directory / tree / "root"
        inspected = json.loads((directory / tree / "inspect.json").read_text())
        self.containers: dict[str, dict[str, Any]] = {
            raw["Name"].strip("/").removeprefix("fx-"): raw for raw in inspected
        }

    def pid(self, name: str) -> int:
        return int(self.containers[name]["State"]["Pid"])

    def id(self, name: str) -> str:
        return str(self.containers[name]["Id"])
