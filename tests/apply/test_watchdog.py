"""When the watchdog takes a run for dead."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator

import pytest

from dltools.apply.watchdog import FAREWELL, LEASES, End, beat, watch
from dltools.engine.runs import ApplyRun, process_start


class Watched:
    """A process that does nothing, and the pipe to its watchdog."""

    def __init__(self) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-c", "input()"], stdin=subprocess.PIPE, stderr=subprocess.PIPE
        )
        self.run = ApplyRun(self.process.pid, process_start(self.process.pid))
        self.theirs, self.ours = os.pipe()

    def end(self) -> bytes:
        self.process.kill()
        _, told = self.process.communicate()
        return told


@pytest.fixture
def watched() -> Iterator[Watched]:
    found = Watched()
    yield found
    found.end()
    os.close(found.theirs)
    os.close(found.ours)


def test_a_farewell_is_an_end_in_order(watched: Watched) -> None:
    os.write(watched.ours, beat(5) + beat(0.01) + FAREWELL)
    assert watch(watched.theirs, watched.run, 60) is End.IN_ORDER
    assert watched.run.is_alive


def test_a_run_may_leave_leases_behind(watched: Watched) -> None:
    os.write(watched.ours, beat(5) + LEASES)
    assert watch(watched.theirs, watched.run, 60) is End.WITH_LEASES
    assert watched.run.is_alive


def test_a_run_that_is_stopped_for_longer_than_it_may_is_ended(watched: Watched) -> None:
    os.write(watched.ours, beat(600) + beat(0.6))
    watched.process.send_signal(signal.SIGSTOP)
    begun = time.monotonic()
    assert watch(watched.theirs, watched.run, 600) is End.DEAD
    assert 0.6 <= time.monotonic() - begun < 300
    assert watched.process.wait() == -signal.SIGKILL
    told = watched.end().decode()
    assert told.startswith("dl-apply: it was stopped for 1 s, and is ended now:")
    assert len(told.splitlines()) == 1


def test_a_run_that_is_continued_in_time_goes_on(watched: Watched) -> None:
    os.write(watched.ours, beat(3))
    watched.process.send_signal(signal.SIGSTOP)
    threading.Timer(1, watched.process.send_signal, [signal.SIGCONT]).start()
    threading.Timer(5, os.write, [watched.ours, FAREWELL]).start()
    assert watch(watched.theirs, watched.run, 600) is End.IN_ORDER
    assert watched.run.is_alive


def test_a_run_that_may_be_stopped_for_long_is_left_alone(watched: Watched) -> None:
    os.write(watched.ours, beat(600))
    watched.process.send_signal(signal.SIGSTOP)
    threading.Timer(2, os.write, [watched.ours, FAREWELL]).start()
    assert watch(watched.theirs, watched.run, 600) is End.IN_ORDER
    assert watched.run.is_alive
