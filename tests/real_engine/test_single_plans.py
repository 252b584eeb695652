"""The lease of single plans, as from cron: it outlives the run, and ends without a next one."""

import os
import re
import signal
import time
from contextlib import suppress
from pathlib import Path

import pytest
from helpers.containers import Job, eventually, plan_for
from helpers.pipes import watchdogs
from helpers.tools import complaint

from dltools.actions.settings import Settings


def good_for(job: Job, wanted: Settings, lease_s: float) -> bytes:
    head = f'"kind":"plan","lease_s":{lease_s}'.encode()
    return plan_for(job, wanted).replace(b'"kind":"plan"', head, 1)


def without_actions(lease_s: float) -> bytes:
    return (f'{{"kind":"plan","v":1,"lease_s":{lease_s}}}\n{{"kind":"end","actions":0}}\n').encode()


def kill_watchdogs(state: Path) -> None:
    for pid in watchdogs(state):
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    eventually(lambda: watchdogs(state) == [])


def test_its_settings_end_with_its_lease(tool, job, state) -> None:
    before = job.kernel()
    begun = time.monotonic()
    done = tool("dl-apply", input=good_for(job, {"cpus": 0.4}, 4))
    assert (done.returncode, done.stderr) == (0, b"")
    assert job.kernel_cpus == pytest.approx(0.4)
    (held,) = tool.status()
    assert re.fullmatch(r"20\d\d-\d\d-\d\dT\d\d:\d\d:\d\dZ", held["until"])
    assert b"UNTIL" in tool("dl-apply", "--status", "--format", "table").stdout
    eventually(lambda: job.kernel() == before)
    assert time.monotonic() - begun > 3
    eventually(lambda: watchdogs(state) == [])
    assert list((state / "journal").glob("*")) == []


def test_the_next_run_ends_what_has_expired(tool, job, state) -> None:
    before = job.kernel()
    tool("dl-apply", input=good_for(job, {"cpus": 0.4}, 2))
    kill_watchdogs(state)
    time.sleep(3)
    assert job.kernel_cpus == pytest.approx(0.4)
    done = tool("dl-apply", "--quiet", input=without_actions(2))
    assert "the lease of an earlier dl-apply is over; its settings are undone now" in complaint(
        done.stderr
    )
    assert job.kernel() == before


def test_a_run_that_has_the_lock_holds_up_the_end_but_not_for_good(tool, job) -> None:
    before = job.kernel()
    tool("dl-apply", input=good_for(job, {"cpus": 0.4}, 2))
    other = tool.begin("dl-apply")
    time.sleep(14)  # longer than the watchdog tries at once
    other.communicate(without_actions(0.5), timeout=120)
    eventually(lambda: job.kernel() == before)


def test_what_stays_for_good_is_said_and_how_to_end_it(tool, job) -> None:
    done = tool("dl-apply", "-v", input=plan_for(job, {"cpus": 0.4}))
    assert (
        b"the settings stay until dl-apply --undo; a stream (dl-probe -i 5s | dl-plan | dl-apply)"
        in done.stderr
    )
    unchanged = tool("dl-apply", "-v", input=plan_for(job, {"cpus": 0.4}))
    assert b"stays" not in unchanged.stderr
    asked = tool("dl-apply", "-v", "--lease", "0", input=plan_for(job, {"cpus": 0.5}))
    assert b"stays" not in asked.stderr
    leased = tool("dl-apply", "-v", input=good_for(job, {"cpus": 0.6}, 2))
    assert b"the settings stay for 2 s unless another plan comes" in leased.stderr
