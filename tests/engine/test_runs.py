"""Runs of dl-apply: known by their process and when it began."""

import signal
import subprocess
import sys

from helpers.containers import eventually

from dltools.engine.runs import ApplyRun, process_start


def test_a_run_lives_as_long_as_its_process() -> None:
    child = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    began = process_start(child.pid)
    run = ApplyRun(child.pid, began)
    assert run.is_alive
    assert not ApplyRun(child.pid, began + 1).is_alive  # another process with its number
    child.communicate()
    assert not run.is_alive
    assert ApplyRun.of_this_process("dl-apply").is_alive
    assert not ApplyRun().is_alive


def test_a_stopped_run_is_alive_and_known_as_stopped() -> None:
    child = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    run = ApplyRun(child.pid, process_start(child.pid))
    assert not run.is_stopped
    child.send_signal(signal.SIGSTOP)
    eventually(lambda: run.is_stopped)
    assert run.is_alive
    assert not ApplyRun(child.pid, run.began + 1).is_stopped
    child.send_signal(signal.SIGCONT)
    eventually(lambda: not run.is_stopped)
    child.communicate()
    assert not run.is_stopped
    assert not ApplyRun().is_stopped
