"""Running a command for a model that has been delivered."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

PATIENCE_S = 1.0
"""How long a plan waits for a hook to end; then it goes on in the background (ours)."""


@dataclass(frozen=True, slots=True)
class Hook:
    """A command, how long it may take (s), and how long a plan waits for it (s)."""

    command: tuple[str, ...]
    limit_s: float
    patience_s: float = PATIENCE_S

    def begin(self, path: Path) -> RunningHook:
        """Run the command, without a shell, with a path as its last argument.

        What it prints goes to standard error: standard output is for results.
        """
        return RunningHook((*self.command, str(path)), self.limit_s)


class RunningHook:
    """A command that was begun: `failure` says why it failed, None if it has not."""

    def __init__(self, command: Sequence[str], limit_s: float) -> None:
        """Begin it, in a process group of its own."""
        self.failure: str | None = None
        self._name = command[0]
        self._limit_s = limit_s
        self._ends = time.monotonic() + limit_s
        self._process: subprocess.Popen[bytes] | None = None
        try:
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=sys.stderr.fileno(),
                start_new_session=True,
            )
        except OSError as error:
            self.failure = f"the hook {self._name} cannot be run: {error.strerror}"

    def is_over(self, patience_s: float = 0.0) -> bool:
        """Tell whether it has ended; wait so long for that. It is killed, with all of its process
        group, when its time is up."""
        if self._process is None:
            return True
        left_s = max(0.0, self._ends - time.monotonic())
        try:
            code = self._process.wait(min(patience_s, left_s))
        except subprocess.TimeoutExpired:
            if patience_s < left_s:
                return False
            self.kill()
            self.failure = (
                f"the hook {self._name} was killed: it took more than {self._limit_s:g} s"
            )
            return True
        self._process = None
        if code:
            ended = (
                f"was killed by signal {-code}" if code < 0 else f"failed with exit status {code}"
            )
            self.failure = f"the hook {self._name} {ended}"
        return True

    def kill(self) -> None:
        """Kill it and what it has started, if it still runs."""
        process, self._process = self._process, None
        if process is not None and process.poll() is None:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
