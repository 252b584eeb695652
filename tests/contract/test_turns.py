"""Turns: one container runs while the others are frozen, and none stays frozen, whatever dies."""

import itertools
import random
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress

import pytest
from contract.plans import lease, plan, turns, update
from contract.subject import Job, Subject
from helpers.containers import PATIENCE, eventually
from helpers.examples import repeated
from helpers.pipes import STAGES, Pipe, give, watchdogs
from helpers.tools import Tools, complaint, records

from dltools.actions.plans import Op
from dltools.engine.interface import GoneError


@pytest.fixture(autouse=True)
def needs_pauses(subject: Subject) -> None:
    if not subject.traits.can.pauses:
        pytest.skip(f"{subject.name} does not pause")


def frozen(jobs: list[Job]) -> list[bool]:
    return [job.is_frozen for job in jobs]


@contextmanager
def rotating(
    subject: Subject, tool: Tools, jobs: list[Job], *options: str, live: bool = False
) -> Iterator[subprocess.Popen[bytes]]:
    """Start a dl-apply that gives these containers turns; its input stays open."""
    process = tool.begin("dl-apply", "--host", subject.url, *options)
    give(process, turns(subject, *jobs, live=live))
    eventually(lambda: sum(frozen(jobs)), lambda count: count == len(jobs) - 1, seconds=30)
    yield process


def test_a_pause_is_undone(subject, tool, job) -> None:
    apply = ("dl-apply", "--host", subject.url, *lease(subject))
    done = tool(*apply, input=plan(subject, (Op.PAUSE, job, {})))
    assert [result["status"] for result in records(done.stdout)] == ["applied"]
    assert job.is_frozen
    again = tool(*apply, input=plan(subject, (Op.PAUSE, job, {})))
    assert [result["status"] for result in records(again.stdout)] == ["unchanged"]
    (held,) = tool.status("--host", subject.url)
    assert (held["found"]["state"], held["now"]["state"]) == ("running", "paused")
    (result,) = records(tool("dl-apply", "--host", subject.url, "--undo").stdout)
    assert result["status"] == "applied"
    assert not job.is_frozen
    assert records(tool("dl-apply", "--host", subject.url, "--undo").stdout) == []


def test_one_runs_at_a_time_and_all_run_afterwards(subject, tool, busy) -> None:
    kernel = [job.kernel() for job in busy]
    ran = set()
    with rotating(subject, tool, busy) as process:
        end = time.monotonic() + 4
        while time.monotonic() < end:
            now = frozen(busy)
            assert sum(now) <= 1 or process.poll() is None
            ran |= {number for number, is_frozen in enumerate(now) if not is_frozen}
            time.sleep(0.05)
        (one, two) = tool.status("--host", subject.url)
        assert {one["container"]["id"], two["container"]["id"]} == {job.id for job in busy}
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=60 * PATIENCE)
    assert ran == {0, 1}
    assert frozen(busy) == [False, False]
    assert [job.kernel() for job in busy] == kernel
    assert "nothing to undo" in complaint(tool("dl-apply", "--host", subject.url, "--undo").stderr)


def test_who_is_paused_by_somebody_else_takes_no_turn(subject, tool, busy) -> None:
    busy[0].pause()
    plans = turns(subject, *busy)
    done = tool("dl-apply", "--host", subject.url, "--hold", "1s", input=plans)
    assert [result["status"] for result in records(done.stdout)] == ["skipped", "applied"]
    assert frozen(busy) == [True, False]
    busy[0].unpause()


def test_somebody_unpauses_in_between(subject, tool, busy) -> None:
    with rotating(subject, tool, busy) as process:
        for _ in range(6):
            for job in busy:
                with suppress(Exception):  # it runs already
                    job.unpause()
            time.sleep(0.3)
        assert process.poll() is None
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=60 * PATIENCE)
    assert frozen(busy) == [False, False]


def _has_processes(subject: Subject, job: Job) -> bool:
    try:
        return subject.engine.inspect(job.id).state in ("running", "paused")
    except GoneError:
        return False


def test_a_frozen_container_is_killed(subject, tool, busy) -> None:
    with rotating(subject, tool, busy) as process:
        # Looked at one after the other, none may be frozen: the turn has changed in between.
        victim = eventually(lambda: next((job for job in busy if job.is_frozen), None))
        (other,) = [job for job in busy if job.id != victim.id]
        victim.kill()
        eventually(lambda: not _has_processes(subject, victim))
        eventually(lambda: not other.is_frozen)
        process.send_signal(signal.SIGTERM)
        _, stderr = process.communicate(timeout=60 * PATIENCE)
        assert b"Traceback" not in stderr
    assert not other.is_frozen
    tool("dl-apply", "--host", subject.url, "--undo")
    said = tool("dl-apply", "--host", subject.url, "--undo").stderr.decode()
    assert f"{victim.name} (paused" not in said  # other tests may have paused others


@pytest.mark.parametrize("arguments", [("--undo",), ()], ids=["undo", "plan"])
def test_after_kill_9_the_next_run_unpauses(subject, tool, awake, arguments) -> None:
    with rotating(subject, tool, awake, "--lease", "0") as process:
        process.kill()
        process.wait(60 * PATIENCE)
    assert sum(frozen(awake)) >= 1
    next_run = ("dl-apply", "--host", subject.url, *arguments)
    done = tool(*next_run, input=plan(subject))
    assert done.returncode == 0
    assert b"an earlier dl-apply had left" in done.stderr  # one of them, or both
    assert frozen(awake) == [False, False]
    assert b"had left" not in tool(*next_run, input=plan(subject)).stderr


def test_killed_at_any_moment_nothing_stays_frozen(subject, tool, busy) -> None:
    kernel = [job.kernel() for job in busy]
    weights = "weight" in subject.traits.can.limits
    for number in range(repeated(6, 60)):
        process = tool.begin("dl-apply", "--host", subject.url, "--lease", "0")
        assert process.stdin is not None
        process.stdin.write(update(subject, busy[0], weight=100 + number) if weights else b"")
        give(process, turns(subject, *busy, seconds=0.3))
        eventually(lambda: any(frozen(busy)), seconds=30)
        time.sleep(random.uniform(0.0, 0.7))
        process.kill()
        process.wait(60 * PATIENCE)
        done = tool("dl-apply", "--host", subject.url, "--undo")
        assert done.returncode == 0, done.stderr
        assert frozen(busy) == [False, False]
        assert [job.kernel() for job in busy] == kernel


def test_the_lease_ends_what_a_dead_run_has_paused(subject, tool, busy, state) -> None:
    with rotating(subject, tool, busy, live=True) as process:
        eventually(lambda: watchdogs(state))
        process.kill()
        process.wait(60 * PATIENCE)
    eventually(lambda: frozen(busy), lambda found: found == [False, False], seconds=60)
    eventually(lambda: watchdogs(state) == [], seconds=60)


TURNS = ("-p", "fair", "--realize", "rotate", "--quantum", "0.5")

KILLED = repeated(
    [STAGES[:1], STAGES[1:2], STAGES[2:], STAGES],
    [names for count in (1, 2, 3) for names in itertools.combinations(STAGES, count)],
)


@pytest.mark.parametrize("names", KILLED, ids="+".join)
def test_whichever_process_is_killed_nothing_stays_frozen(
    subject, tool, busy, state, names
) -> None:
    kernel, record = [job.kernel() for job in busy], [job.record() for job in busy]
    pipe = Pipe(tool, subject.only, *TURNS, host=("--host", subject.url))
    eventually(lambda: any(frozen(busy)), seconds=60)
    eventually(lambda: watchdogs(state))
    pipe.kill(names)
    eventually(lambda: watchdogs(state) == [], seconds=60)
    assert frozen(busy) == [False, False]
    assert [job.kernel() for job in busy] == kernel
    assert [job.record() for job in busy] == record
    assert list((state / "rotation").glob("*")) == []
    assert list((state / "journal").glob("*")) == []


def test_an_answer_that_gets_lost_does_no_harm(subject, tool, busy) -> None:
    """The engine has paused, but its answer is lost: the request is made again, and is done."""
    if not subject.traits.is_relayed:
        pytest.skip(f"no relay to {subject.name}")
    lost: list[str] = []

    def swallows(change: str) -> bool:
        if change in lost or len(lost) >= 4:
            return False
        lost.append(change)
        return True

    with subject.relay() as relay:
        relay.swallows = swallows
        done = tool("dl-apply", "--host", relay.url, "--hold", "3s", input=turns(subject, *busy))
        assert [result["status"] for result in records(done.stdout)] == ["applied"] * 2
        assert done.returncode == 0, done.stderr
        assert any("pause" in change for change in lost)
    assert frozen(busy) == [False, False]
