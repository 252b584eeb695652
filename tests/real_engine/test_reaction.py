"""How soon the pipe answers a start and an exit, long before the next sample is due."""

import os
import signal
import time
from collections.abc import Callable

import pytest
from helpers.containers import Job, api

pytestmark = [pytest.mark.engine, pytest.mark.slow, pytest.mark.alone]

INTERVAL_S = 30
WITHIN_S = 5
"""Far below the interval, and ample for a machine under load: alone it takes a tenth of that."""

BUSY = f"for k in $(seq {max(2, os.cpu_count() or 1)}); do (while :; do :; done) & done; wait"
"""Keeps every CPU busy, and never reports progress."""

TRAINS = {"dltools.role": "training"}


class Weight:
    """The weight of a container, from the kernel's file and without the engine."""

    def __init__(self, job: Job) -> None:
        directory = job.directory("cpu")
        v1 = directory / "cpu.shares"
        self._file = v1 if v1.exists() else directory / "cpu.weight"
        self._default = 1024 if v1.exists() else 100

    @property
    def is_default(self) -> bool:
        return int(self._file.read_text()) == self._default


def seconds_until(is_so: Callable[[], bool]) -> float:
    """Return how long it takes until something is so; the next sample would be too late."""
    begun = time.monotonic()
    while not is_so():
        assert time.monotonic() < begun + INTERVAL_S - 5
        time.sleep(0.002)
    return time.monotonic() - begun


def replaced(old: Job, new: Job) -> tuple[Job, float, float]:
    """Return which of two jobs waits, once the other has been killed; how long after the start of
    the new one it was made to wait, and how long after the kill it had its full weight back."""
    weights = {job.name: Weight(job) for job in (old, new)}
    start_s = seconds_until(lambda: not all(weight.is_default for weight in weights.values()))
    waiting, leaving = (new, old) if weights[old.name].is_default else (old, new)
    api().kill(leaving.id)
    return waiting, start_s, seconds_until(lambda: weights[waiting.name].is_default)


def test_a_start_and_an_exit_are_answered_at_once(run, tool, tmp_path) -> None:
    def begin(name: str) -> Job:
        return run(BUSY, name=name, labels=TRAINS)

    line = f"dl-probe -i {INTERVAL_S} {' '.join(run.only)} | dl-plan -p srtf | dl-apply --restore"
    pipe = tool.begin_shell(f"{line} >/dev/null", tmp_path / "bin")
    job, _, _ = replaced(begin("0"), begin("1"))  # the tools start up meanwhile
    starts, exits = [], []
    for number in range(int(os.environ.get("DLTOOLS_REACTIONS", "1"))):
        job, start_s, exit_s = replaced(job, begin(str(number + 2)))
        starts.append(start_s)
        exits.append(exit_s)
    print("from a start to the setting:", *(f"{taken:.3f}" for taken in sorted(starts)))
    print("from an exit to full speed:", *(f"{taken:.3f}" for taken in sorted(exits)))
    assert max(starts) < WITHIN_S
    assert max(exits) < WITHIN_S
    os.killpg(pipe.pid, signal.SIGINT)
    pipe.wait(timeout=120)
    assert Weight(job).is_default
