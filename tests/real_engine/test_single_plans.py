"""The lease of single plans, as from cron: it outlives the run, and ends without a next one."""

import os
import re
import signal
import time
from contextlib import suppress
from pathlib import Path

import pytest
from helpers.containers import Containers, Job, eventually, plan_for
from helpers.pipes import feed, watchdogs
from helpers.tools import Tools, complaint, records
from real_engine.test_leases import live

from dltools.plan.realisation.settings import Settings


def good_for(job: Job, wanted: Settings, lease_s: float) -> bytes:
    head = f'"kind":"plan","lease_s":{lease_s}'.encode()
    return plan_for(job, wanted).replace(b'"kind":"plan"', head, 1)


def without_actions(lease_s: float) -> bytes:
    return (f'{{"kind":"plan","v":1,"lease_s":{lease_s}}}\n{{"kind":"end","actions":0}}\n').encode()


@pytest.fixture
def job(run: Containers) -> Job:
    return run(nano_cpus=1_500_000_000)


def until(tool: Tools) -> str | None:
    (held,) = records(tool("dl-apply", "--status", "--format", "jsonl").stdout)
    return held["until"]


def kill_watchdogs(state: Path) -> None:
    for pid in watchdogs(state):
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    eventually(lambda: watchdogs(state) == [])


def test_its_settings_end_with_its_lease(tool: Tools, job: Job, state: Path) -> None:
    before = job.kernel()
    begun = time.monotonic()
    done = tool("dl-apply", input=good_for(job, {"cpus": 0.4}, 6))
    assert (done.returncode, done.stderr) == (0, b"")
    assert job.kernel_cpus == pytest.approx(0.4)
    assert re.fullmatch(r"20\d\d-\d\d-\d\dT\d\d:\d\d:\d\dZ", until(tool) or "")
    assert b"UNTIL" in tool("dl-apply", "--status", "--format", "table").stdout
    eventually(lambda: job.kernel() == before)
    assert time.monotonic() - begun > 4.5
    eventually(lambda: watchdogs(state) == [])
    assert list((state / "journal").glob("*")) == []


def test_each_plan_renews_the_lease_of_all(tool: Tools, run: Containers, state: Path) -> None:
    first, second = (run(name=name, nano_cpus=1_500_000_000) for name in ("first", "second"))
    before = first.kernel()
    tool("dl-apply", input=good_for(first, {"cpus": 0.4}, 5))
    tool("dl-apply", input=good_for(second, {"cpus": 0.4}, 5))
    for _ in range(4):
        time.sleep(2)
        assert tool("dl-apply", "--quiet", input=without_actions(5)).stderr == b""
    assert first.kernel_cpus == second.kernel_cpus == pytest.approx(0.4)
    eventually(lambda: len(watchdogs(state)) == 1)  # one for all runs
    eventually(lambda: first.kernel() == second.kernel() == before)
    eventually(lambda: watchdogs(state) == [])


def test_lines_of_cron_with_other_labels_do_not_renew_each_other_s(
    tool: Tools, run: Containers, tmp_path: Path
) -> None:
    """One line runs no more: what it has set ends, though the other goes on."""
    first, second = (
        run(name=name, nano_cpus=1_500_000_000, labels={"line": name})
        for name in ("first", "second")
    )
    before = first.kernel()
    tool("dl-apply", "--label", "line=first", input=good_for(first, {"cpus": 0.4}, 6))
    tool("dl-apply", "--label", "line=second", input=good_for(second, {"cpus": 0.4}, 6))
    seen = tmp_path / "seen.parquet"

    def next_run() -> bool:
        """Run the second line, and tell whether what the first had set has ended."""
        time.sleep(1)
        assert tool("dl-probe", "--label", "line=second", "-o", seen).returncode == 0
        plan = tool("dl-plan", "--policy", "noop", seen).stdout
        done = tool("dl-apply", "--lease", "6", input=plan)
        assert done.returncode in (0, 75)  # 75: a watchdog holds the lock just then
        return done.returncode == 0 and first.kernel() == before

    eventually(next_run)
    assert second.kernel_cpus == pytest.approx(0.4)
    eventually(lambda: second.kernel() == before)


def test_the_next_run_ends_what_has_expired(tool: Tools, job: Job, state: Path) -> None:
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


def test_a_run_that_has_the_lock_holds_up_the_end_but_not_for_good(tool: Tools, job: Job) -> None:
    before = job.kernel()
    tool("dl-apply", input=good_for(job, {"cpus": 0.4}, 2))
    other = tool.begin("dl-apply")
    time.sleep(14)  # longer than the watchdog tries at once
    other.communicate(without_actions(0.5), timeout=120)
    eventually(lambda: job.kernel() == before)


def test_a_stream_takes_the_lease_over(tool: Tools, run: Containers) -> None:
    first, second = (run(name=name, nano_cpus=1_500_000_000) for name in ("first", "second"))
    before = first.kernel()
    tool("dl-apply", input=good_for(first, {"cpus": 0.4}, 5))
    process = tool.begin("dl-apply", "--lease", "60")
    feed(process, live(second, {"cpus": 0.4}))
    time.sleep(7)
    assert first.kernel_cpus == pytest.approx(0.4)
    process.kill()
    process.wait()
    eventually(lambda: first.kernel() == second.kernel() == before)


@pytest.mark.parametrize(("option", "stays"), [("--lease=2", False), ("--lease=0", True)])
def test_the_option_goes_before_the_plan(tool: Tools, job: Job, option: str, stays: bool) -> None:
    before = job.kernel()
    tool("dl-apply", option, input=good_for(job, {"cpus": 0.4}, 600 if not stays else 2))
    if stays:
        time.sleep(4)
        assert until(tool) is None
        assert job.kernel_cpus == pytest.approx(0.4)
        tool("dl-apply", "--undo")
    eventually(lambda: job.kernel() == before)


def test_what_stays_for_good_is_said_and_how_to_end_it(tool: Tools, job: Job) -> None:
    done = tool("dl-apply", "-v", input=plan_for(job, {"cpus": 0.4}))
    assert (
        b"what is set stays until dl-apply --undo; a stream (dl-probe -i 5s | dl-plan | dl-apply)"
        in done.stderr
    )
    unchanged = tool("dl-apply", "-v", input=plan_for(job, {"cpus": 0.4}))
    assert b"stays" not in unchanged.stderr
    asked = tool("dl-apply", "-v", "--lease", "0", input=plan_for(job, {"cpus": 0.5}))
    assert b"stays" not in asked.stderr
    leased = tool("dl-apply", "-v", input=good_for(job, {"cpus": 0.6}, 2))
    assert b"what is set stays for 2 s unless another plan comes" in leased.stderr
