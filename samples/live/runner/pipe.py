"""The pipe of an arm: dl-probe | tee | dl-plan | tee | dl-apply, or dl-probe alone."""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import IO

from runner.arms import Arm

BIN = Path(sys.executable).parent
INTERVAL_S = 2
_PR_SET_PDEATHSIG = 1
_PATIENCE_S = 30.0
_SETTLE_S = 1.0
"""The pipe handles its first sample before the first job arrives."""


class PipeError(Exception):
    """A process of the pipe ended before its time; the message says where its words are."""


class Pipe:
    """The processes of an arm, from dl-probe on; `files` is the beginning of the names of what they
    write: .arrow, .plans.jsonl, .results.jsonl and .log."""

    def __init__(self, arm: Arm, label: str, files: Path) -> None:
        """Start the processes, and wait for the first sample."""
        self.recording = files.with_suffix(".arrow")
        self._log = files.with_suffix(".log").open("wb")
        self._running: list[subprocess.Popen[bytes]] = []
        self.cpu_seconds = self.start_cpu_seconds = 0.0
        state = ("--state-dir", str(files.with_suffix(".state")))
        probe = ("dl-probe", "-i", f"{INTERVAL_S}", "--label", label, "--format", "arrow", *state)
        try:
            if arm.plan is None:
                with self.recording.open("wb") as out:
                    self._start(probe, None, out)
            else:
                self._start(probe, None, None)
                self._start(("tee", str(self.recording)), self._last, None)
                self._start(("dl-plan", *arm.plan, "--format", "jsonl"), self._last, None)
                self._start(("tee", str(files.with_suffix(".plans.jsonl"))), self._last, None)
                apply = ("dl-apply", "--restore", "--hold", "0s", "--format", "jsonl", *state)
                with files.with_suffix(".results.jsonl").open("wb") as out:
                    self._start(apply, self._last, out)
            self._await_sample()
            time.sleep(_SETTLE_S)
            self.start_cpu_seconds = sum(_cpu_seconds(one.pid) for one in self._running)
        except BaseException:
            self.stop()
            raise

    def stop(self) -> None:
        """End dl-probe, wait for the others, which end with their input, and count their CPU."""
        if self._running:
            os.kill(self._running[0].pid, signal.SIGTERM)  # terminate() would reap one that is dead
        deadline = time.monotonic() + _PATIENCE_S
        for process in self._running:
            self._reap(process, deadline)
        self._running.clear()
        self._log.close()

    def check(self) -> None:
        """Raise `PipeError` where a process has ended."""
        for process in self._running:
            name = Path(os.fsdecode(process.args[0])).name  # type: ignore[index, arg-type]
            if os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT):
                raise PipeError(f"{name} ended early; see {self._log.name}")

    @property
    def _last(self) -> IO[bytes] | None:
        return self._running[-1].stdout

    def _start(self, words: Sequence[str], source: IO[bytes] | None, out: IO[bytes] | None) -> None:
        environment = os.environ | {"PATH": f"{BIN}{os.pathsep}{os.environ['PATH']}"}
        is_first = not self._running
        process = subprocess.Popen(
            words,
            stdin=source or subprocess.DEVNULL,
            stdout=out or subprocess.PIPE,
            stderr=self._log,
            env=environment,
            start_new_session=True,  # Ctrl-C is for the runner, which ends the pipe in order
            preexec_fn=partial(_end_with_parent, os.getpid()) if is_first else None,
        )
        if source is not None:
            source.close()  # it is the new process's: else the one before never sees it close
        self._running.append(process)

    def _await_sample(self) -> None:
        deadline = time.monotonic() + _PATIENCE_S
        while not self.recording.exists() or not self.recording.stat().st_size:
            self.check()
            if time.monotonic() > deadline:
                raise PipeError(f"no sample within {_PATIENCE_S:.0f} s; see {self._log.name}")
            time.sleep(0.1)

    def _reap(self, process: subprocess.Popen[bytes], deadline: float) -> None:
        while True:
            pid, status, used = os.wait4(process.pid, os.WNOHANG)
            if pid:
                process.returncode = os.waitstatus_to_exitcode(status)
                self.cpu_seconds += used.ru_utime + used.ru_stime
                return
            if time.monotonic() > deadline:
                process.kill()
                deadline = float("inf")
            time.sleep(0.02)


def _end_with_parent(parent: int) -> None:
    """End dl-probe, and so the pipe, when the runner dies without a word, or has just died."""
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)
    if os.getppid() != parent:
        os._exit(1)


def _cpu_seconds(pid: int) -> float:
    """Return the CPU seconds of a process so far."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return sum(map(int, fields[11:13])) / os.sysconf("SC_CLK_TCK")
