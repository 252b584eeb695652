"""Trainings to look at, and a terminal to type at."""

from __future__ import annotations

import os
import pty
import re
import select
import shlex
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from types import TracebackType

COLUMNS, ROWS = 90, 60
IMAGE = "dltools-torch"
MODELS = {"vae": 60, "gru": 60, "cnn": 60}
"""Epochs by name: more than the recording lasts."""


class Trainings:
    """Three PyTorch trainings of two threads, which end with the context."""

    def __init__(self, label: str) -> None:
        """`label`: KEY=VALUE by which the tools know them."""
        self._label = label
        self._ids: list[str] = []

    def __enter__(self) -> Trainings:
        """Start them."""
        for model, epochs in MODELS.items():
            words = ["docker", "run", "-d", "--rm", "--network", "none", "--label", self._label]
            words += ["--name", model, IMAGE, "--model", model, "--threads", "2", "--batch", "64"]
            words += ["--epochs", str(epochs)]
            done = subprocess.run(words, check=True, capture_output=True, text=True)
            self._ids.append(done.stdout.strip())
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        at: TracebackType | None,
    ) -> None:
        """End and remove them."""
        subprocess.run(["docker", "rm", "-f", *self._ids], check=False, capture_output=True)

    def wait(self, epochs: int, seconds: float) -> None:
        """Wait until each has printed so many epochs. Raises `TimeoutError` after `seconds`."""
        until = time.monotonic() + seconds
        while not all(self._epochs(one) >= epochs for one in self._ids):
            if time.monotonic() > until:
                raise TimeoutError(f"no {epochs} epochs of each training in {seconds:g} s")
            time.sleep(1.0)

    def _epochs(self, container: str) -> int:
        done = subprocess.run(["docker", "logs", container], capture_output=True, text=True)
        return len(re.findall(r"^epoch \d", done.stdout + done.stderr, re.M | re.I))

    def shell(self, state: Path) -> str:
        """Return lines that make a shell's tools see these trainings alone, and keep `state`."""
        by_tool = {
            "dl-probe": f"--label {self._label} --state-dir {state}",
            "dl-apply": f"--state-dir {state}",
        }
        return "\n".join(
            f'{tool}() {{ command {tool} {shlex.join(shlex.split(words))} "$@"; }}'
            for tool, words in by_tool.items()
        )


def typed(
    shell: str, line: str, *, seconds: float = 0.0, meanwhile: Callable[[], None] | None = None
) -> str:
    """Return what a terminal shows of a line; after `seconds` Ctrl-C is typed, unless they are 0.
    `meanwhile` is called half a second before."""
    pid, terminal = pty.fork()
    if pid == 0:
        os.environ |= {"NO_COLOR": "1", "TERM": "xterm"}
        size = f"stty rows {ROWS} cols {COLUMNS}"
        os.execvp("bash", ["bash", "--norc", "-c", f"{size}\n{shell}\n{line}"])
    shown, until = bytearray(), time.monotonic() + seconds
    while True:
        if seconds and time.monotonic() > until:
            if meanwhile is not None:
                meanwhile()
            os.write(terminal, b"\x03")
            seconds = 0.0
        if not select.select([terminal], [], [], 0.2)[0]:
            continue
        try:
            some = os.read(terminal, 65536)
        except OSError:  # how Linux says that the other end is closed
            some = b""
        if not some:
            break
        shown += some
    os.close(terminal)
    os.waitpid(pid, 0)
    return shown.decode(errors="replace")
