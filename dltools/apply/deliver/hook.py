"""Running a command for a model that has been delivered."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Hook:
    """A command and how long it may take (s)."""

    command: tuple[str, ...]
    limit_s: float

    def run(self, path: Path) -> str | None:
        """Run the command, without a shell, with a path as its last argument; return why it failed,
        None if it did not.

        It is killed, with all of its process group, when its time is up. What it prints goes to
        standard error: standard output is for results.
        """
        return _run((*self.command, str(path)), self.limit_s)


def _run(command: Sequence[str], limit_s: float) -> str | None:
    try:
        process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=sys.stderr.fileno(), start_new_session=True
        )
    except OSError as error:
        return f"the hook {command[0]} cannot be run: {error.strerror}"
    try:
        code = process.wait(limit_s)
    except subprocess.TimeoutExpired:
        return f"the hook {command[0]} was killed: it took more than {limit_s:g} s"
    finally:
        _kill(process)
    if code < 0:
        return f"the hook {command[0]} was killed by signal {-code}"
    return f"the hook {command[0]} failed with exit status {code}" if code else None


def _kill(process: subprocess.Popen[bytes]) -> None:
    """Kill a process that still runs, and what it has started."""
    if process.poll() is None:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
