"""Starting the watchdog of a run, and telling it that the run is alive."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from dltools.apply.watchdog import FAREWELL, LEASES, address_word, beat
from dltools.engine.docker.addresses import Address
from dltools.engine.runs import ApplyRun

BEAT_S = 1.0
"""How often a run should say that it is alive, at least."""

STILL_S = 5.0
"""How long a run whose containers take turns may be stopped (ours): one of them waits."""

_HANGS_S = 60.0
_ENDS_S = 10.0


class Guard:
    """The watchdog of one run of dl-apply."""

    def __init__(
        self, directory: Path, run: ApplyRun, addresses: Sequence[Address], patience_s: float
    ) -> None:
        """Nothing is watched yet. `directory` holds the state; at `addresses` are the engines;
        `patience_s` is the longest time for which the run may wait in silence."""
        self._words = (
            str(directory),
            str(run.pid),
            str(run.began),
            str(patience_s + _HANGS_S),
            *map(address_word, addresses),
        )
        self._process: subprocess.Popen[bytes] | None = None
        self._pipe = -1

    @property
    def is_watching(self) -> bool:
        """Whether a watchdog has been started."""
        return self._process is not None

    def watch(self, still_s: float) -> None:
        """See that a watchdog runs, and tell it that this run may be stopped for so long (s). It is
        in a session of its own: what is sent to the whole pipe does not reach it."""
        if self._process is not None:
            if self._process.poll() is None and self._say(beat(still_s)):
                return
            os.close(self._pipe)
        theirs, self._pipe = os.pipe()
        self._process = subprocess.Popen(
            [sys.executable, "-P", "-m", "dltools.apply.watchdog", *self._words],
            stdin=theirs,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
            cwd="/",
        )
        os.close(theirs)
        os.set_blocking(self._pipe, False)
        self._say(beat(still_s))

    def beat(self, still_s: float) -> None:
        """Say that the run is alive and may be stopped for so long (s); start another watchdog if
        that has died."""
        if self._process is not None and not self._say(beat(still_s)):
            self.watch(still_s)

    def leave(self) -> None:
        """Let the watchdog go on until the leases are over that this run leaves behind."""
        self.watch(0.0)
        self._say(LEASES)
        os.close(self._pipe)
        self._process = None

    def dismiss(self) -> None:
        """Let the watchdog end: the run ends in order."""
        if self._process is None:
            return
        self._say(FAREWELL)
        os.close(self._pipe)
        try:
            self._process.wait(_ENDS_S)
        except subprocess.TimeoutExpired:  # somebody has stopped it
            self._process.kill()
            self._process.wait()
        self._process = None

    def _say(self, word: bytes) -> bool:
        """Tell whether the watchdog is there to hear a word."""
        try:
            os.write(self._pipe, word)
        except BlockingIOError:  # it is stopped, and has enough to read
            return True
        except OSError:
            return False
        return True
