"""dl-probe | dl-plan | dl-apply, stages of which are killed, and who watches over the last one."""

import os
import signal
import subprocess
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from helpers.tools import Tools, records

STAGES = ("dl-probe", "dl-plan", "dl-apply")


class Pipe:
    """The pipe, each stage a process that can be killed. `only` chooses containers, `host` the
    engine, `options` are dl-plan's."""

    def __init__(
        self, tool: Tools, only: Sequence[str], *options: str, host: Sequence[str] = ()
    ) -> None:
        none = subprocess.DEVNULL
        self.stages = {"dl-probe": tool.begin("dl-probe", *host, *only, "-i", "0.5", stdin=none)}
        for name, words in (("dl-plan", options), ("dl-apply", host)):
            before = list(self.stages.values())[-1]
            last = {"stdout": none} if name == "dl-apply" else {}
            self.stages[name] = tool.begin(name, *words, stdin=before.stdout, **last)
            assert before.stdout is not None
            before.stdout.close()

    def kill(self, names: tuple[str, ...]) -> None:
        for name in names:
            os.kill(self.stages[name].pid, signal.SIGKILL)


def watchdogs(state: Path) -> list[int]:
    """Return the processes that watch runs with this state directory."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with suppress(OSError):
            words = path.read_bytes().split(b"\0")
            if b"dltools.apply.leases" in words and os.fsencode(state) in words:
                found.append(int(path.parent.name))
    return found


def give(process: subprocess.Popen[bytes], plans: bytes) -> None:
    """Give a tool that runs more input."""
    assert process.stdin is not None
    process.stdin.write(plans)
    process.stdin.flush()


def feed(process: subprocess.Popen[bytes], plans: bytes) -> dict[str, Any]:
    """Give a dl-apply that runs a plan of one action, and return its result."""
    give(process, plans)
    assert process.stdout is not None
    return records(process.stdout.readline())[0]
