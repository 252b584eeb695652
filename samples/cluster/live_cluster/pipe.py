"""dl-probe --swarm | tee | dl-plan | tee | dl-apply --swarm, or dl-probe alone."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import IO

from live_cluster.arms import INTERVAL_S, Arm

_PATIENCE_S = 60.0


class Pipe:
    """The processes of an arm; `folder` gets what they write."""

    def __init__(self, arm: Arm, manager: str, folder: Path) -> None:
        """Start them."""
        self.recording, self.results = folder / "observed.arrow", folder / "results.jsonl"
        self._log = (folder / "messages").open("wb")
        self._environment = os.environ | {
            "DOCKER_HOST": manager,
            "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
        }
        self._running: list[subprocess.Popen[bytes]] = []
        probe = ["dl-probe", "--swarm", "-i", str(INTERVAL_S), "--format", "arrow"]
        with self.recording.open("wb") as seen, self.results.open("wb") as done:
            if not arm.plan:
                self._start(probe, None, seen)
                return
            self._start(probe, None, None)
            self._start(["tee", str(self.recording)], self._out, None)
            self._start(["dl-plan", *arm.plan, "--format", "jsonl"], self._out, None)
            self._start(["tee", str(folder / "plans.jsonl")], self._out, None)
            state = ["--state-dir", str(folder / "state")]
            self._start(["dl-apply", "--swarm", "--format", "jsonl", *state], self._out, done)

    def stop(self) -> None:
        """End dl-probe, and wait for the others, which end with their input."""
        if self._running:
            self._running[0].send_signal(signal.SIGTERM)
        until = time.monotonic() + _PATIENCE_S
        for process in self._running:
            try:
                process.wait(max(0.1, until - time.monotonic()))
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        self._log.close()

    @property
    def _out(self) -> IO[bytes] | None:
        return self._running[-1].stdout

    def _start(self, words: list[str], source: IO[bytes] | None, out: IO[bytes] | None) -> None:
        process = subprocess.Popen(
            words,
            stdin=source or subprocess.DEVNULL,
            stdout=out or subprocess.PIPE,
            stderr=self._log,
            env=self._environment,
            start_new_session=True,
        )
        if source is not None:
            source.close()
        self._running.append(process)
