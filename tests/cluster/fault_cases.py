"""The faults that are tried while a job moves from node2 to node3, and what repairs them."""

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from helpers.cluster_nodes import NODES

from dltools.apply.migrate.migration import Step

_SUFFIX = os.environ.get("CLUSTER", "0").removeprefix("0")
_HOME = os.environ.get("CLUSTER_HOME", f"/var/lib/dltools-cluster{_SUFFIX}")
_MEMORY = f"/sys/fs/cgroup/memory/dlcluster{_SUFFIX}-node3"
_MEMORY_V2 = f"/sys/fs/cgroup/dlcluster{_SUFFIX}-node3"
_MOVING = (Step.CREATE, Step.STOP, Step.START, Step.REMOVE)


@dataclass(frozen=True)
class Case:
    """One case. `breaks` and `repair` are shell commands, in which {ckpt} is the folder of the
    checkpoint; it breaks after the step has been noted, or `before`. `is_small`: the checkpoint is
    on a disk of 64 KiB."""

    fault: str
    step: Step
    is_service: bool
    breaks: str
    repair: str = ""
    before: bool = False
    is_small: bool = False

    @property
    def name(self) -> str:
        moment = "before" if self.before else "at"
        return (
            f"{self.fault}, {moment} {self.step}, {'service' if self.is_service else 'container'}"
        )

    def commands(self, folder: Path) -> tuple[str, str]:
        """What breaks it, and what repairs it, where the checkpoint is in a folder."""
        return (
            self.breaks.replace("{ckpt}", str(folder)),
            self.repair.replace("{ckpt}", str(folder)),
        )


def _cases(
    fault: str, steps: Sequence[Step], breaks: str, repair: str = "", *, is_small: bool = False
) -> list[Case]:
    return [
        Case(fault, step, is_service, breaks, repair, is_small=is_small)
        for is_service in (False, True)
        for step in steps
    ]


def _signal(node: str, name: str) -> str:
    return f"kill -{name} $(cat {_HOME}/{node}/pid)"


def _memory(limit: str, limit_v2: str = "") -> str:
    """Limit what the target's containers use; version 1 refuses less than is in use, and is then
    given just that."""
    file, used = f"{_MEMORY}/memory.limit_in_bytes", f"{_MEMORY}/memory.usage_in_bytes"
    return (
        f"if [ -d {_MEMORY.rpartition('/')[0]} ]; then mkdir -p {_MEMORY} && "
        f"{{ echo {limit} > {file} || cat {used} > {file}; }}; "
        f"else echo {limit_v2 or limit} > {_MEMORY_V2}/memory.max; fi"
    )


CASES = [
    *(Case("dl-apply is killed (kill -9)", step, kind, "kill", before=before)
      for kind in (False, True) for step in (*_MOVING, Step.DONE) for before in (True, False)),
    *_cases("the target's dockerd hangs (SIGSTOP)", _MOVING, _signal("node3", "STOP"),
            _signal("node3", "CONT")),
    *_cases("the source's dockerd hangs (SIGSTOP)", _MOVING, _signal("node2", "STOP"),
            _signal("node2", "CONT")),
    *_cases("the target loses power", _MOVING, f"{NODES} down node3", f"{NODES} up node3"),
    *_cases("the source loses power", _MOVING, f"{NODES} down node2", f"{NODES} up node2"),
    *_cases("the target's disk is full", (Step.CREATE, Step.STOP),
            f"mount -t tmpfs -o size=4k tmpfs {_HOME}/node3/root/containers && "
            f"head -c 4096 /dev/zero > {_HOME}/node3/root/containers/full",
            f"umount -l {_HOME}/node3/root/containers"),
    *_cases("the checkpoint's disk is full", (Step.CREATE, Step.STOP),
            "head -c 1M /dev/zero > {ckpt}/filler 2>/dev/null || true", "rm {ckpt}/filler",
            is_small=True),
    *_cases("the target's memory is full", _MOVING, _memory("200K"), _memory("-1", "max")),
    *_cases("the target's network is cut", _MOVING, f"{NODES} cut node3", f"{NODES} join node3"),
    *_cases("the source's network is cut", _MOVING, f"{NODES} cut node2", f"{NODES} join node2"),
]  # fmt: skip
