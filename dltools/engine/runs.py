"""Runs of dl-apply: which process it is, and whether it still runs."""

from __future__ import annotations

import os
import signal
from dataclasses import dataclass

from dltools.engine.kernel_reading import stat_of
from dltools.engine.patience import comes_true
from dltools.errors import AccessError

_LOOKS_EVERY_S = 0.1


@dataclass(frozen=True, slots=True)
class ApplyRun:
    """A run of dl-apply. All is empty if the run is unknown."""

    pid: int = 0
    """The number of its process."""

    began: int = 0
    """When that process began (clock ticks since the machine's start)."""

    command: str = ""
    """Its command line."""

    policy: str = ""
    """The policy whose plan it applies, "" before it has one."""

    @property
    def is_alive(self) -> bool:
        """Whether its process still runs, and not another one that got its number."""
        if self.pid <= 0:
            return False
        state, began = _state_and_start(self.pid)
        return bool(began) and began == self.began and state != "Z"

    @property
    def is_stopped(self) -> bool:
        """Whether its process is there, and stands still until it gets SIGCONT: Ctrl-Z, SIGSTOP, a
        debugger."""
        if self.pid <= 0:
            return False
        state, began = _state_and_start(self.pid)
        return began == self.began and state in ("T", "t")

    @classmethod
    def of_this_process(cls, command: str) -> ApplyRun:
        """Return the run that this process is."""
        return cls(os.getpid(), process_start(os.getpid()), command)

    def end(self, patience_s: float) -> bool:
        """Send SIGTERM to its process, which may be stopped, and tell whether it has ended within
        so long (s). Raises `AccessError` where the process is another user's."""
        try:
            for number in (signal.SIGTERM, signal.SIGCONT):
                if self.is_alive:
                    os.kill(self.pid, number)
        except ProcessLookupError:
            return True
        except PermissionError as error:
            raise AccessError(f"process {self.pid} belongs to another user: be root") from error
        return comes_true(lambda: not self.is_alive, patience_s, _LOOKS_EVERY_S)


UNKNOWN_RUN = ApplyRun()


def process_start(pid: int) -> int:
    """Return when a process began, in clock ticks since the machine's start; 0 if it is not
    there."""
    return _state_and_start(pid)[1]


def _state_and_start(pid: int) -> tuple[str, int]:
    """Return the kernel's letter for a process's state, and when it began; "" and 0 if it is not
    there."""
    words = stat_of(pid)
    return (words[0], int(words[19])) if len(words) > 19 else ("", 0)
