"""The lease: how long settings hold without a new plan.

Which leases of earlier runs a run renews: those of the containers that its plans cover.

When the watchdog takes a run for dead.
"""

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest
from helpers.clocks import Clock
from helpers.fake_engine import ID, FakeEngine, action, plan_of

from dltools.apply.engine_actuator import EngineActuator
from dltools.apply.leases import (
    FAREWELL,
    FIRST_LEASE_S,
    LEASES,
    LEAST_LEASE_S,
    End,
    Lease,
    beat,
    release,
    watch,
)
from dltools.apply.refusals import Rules
from dltools.apply.turns import Rotation
from dltools.engine.address import Address
from dltools.engine.interface import Engine, RefusedError
from dltools.engine.journal import Journal
from dltools.engine.runs import UNKNOWN_RUN, ApplyRun, process_start


def renewed(asked_s: float | None, *intervals: float) -> tuple[Lease, Clock]:
    clock = Clock(1000.0)
    lease = Lease(asked_s, clock)
    lease.renew()
    for interval in intervals:
        clock.now += interval
        lease.renew()
    return lease, clock


@pytest.mark.parametrize(
    ("asked_s", "intervals", "length"),
    [(None, (), FIRST_LEASE_S), (None, (1.0,), LEAST_LEASE_S), (None, (20.0,), 60.0),
     (None, (20.0, 0.2), 60.0), (2.5, (), 2.5), (2.5, (20.0,), 2.5),
     (None, (50.0, *[20.0] * 10), 60.0)],
)  # fmt: skip
def test_it_is_three_intervals_unless_another_is_asked_for(asked_s, intervals, length) -> None:
    lease, clock = renewed(asked_s, *intervals)
    assert lease.length_s == lease.seconds_left() == length
    clock.now += length - 1
    assert lease.seconds_left() == 1
    clock.now += 2
    assert lease.seconds_left() == 0


def test_what_has_ended_counts_from_the_next_plan_on() -> None:
    lease, clock = renewed(None, 20.0)
    lease.end()
    assert lease.seconds_left() is None
    clock.now += 500
    lease.renew()
    assert lease.seconds_left() == 60  # the time without a plan was no interval


@pytest.mark.parametrize(
    ("asked_s", "live", "planned", "other"),
    [(None, True, True, False), (5.0, True, True, True), (0.0, False, False, False)],
)
def test_it_is_for_streams_and_plans_with_one_unless_asked(asked_s, live, planned, other) -> None:
    lease = Lease(asked_s)
    assert lease.is_for(None, is_live=True) == live
    assert lease.is_for(180.0, is_live=False) == planned
    assert lease.is_for(None, is_live=False) == other


@pytest.mark.parametrize(("asked_s", "length"), [(None, 180.0), (5.0, 5.0)])
def test_that_of_a_single_plan_is_the_one_that_it_names(asked_s, length) -> None:
    lease = Lease(asked_s)
    assert lease.is_for(180.0, is_live=False)
    assert lease.length_s == length


SOON, LATER = "2999-01-01T00:00:00Z", "2999-01-01T00:03:00Z"
OTHERS = frozenset({"e" * 64})


@pytest.fixture
def left(actuator: EngineActuator, fake_engine: FakeEngine) -> FakeEngine:
    """The fake engine, after a run that has limited its container and left a lease behind."""
    actuator.lease(True)
    actuator.apply(plan_of(action({"cpus": 1.5})))
    assert actuator.leases.leave(SOON, None)
    fake_engine.labels = {"line": "a"}
    return fake_engine


def next_run(engine: Engine, journal: Journal, rotation: Rotation, **rules: Any) -> EngineActuator:
    rotation.run = ApplyRun(7, 1)
    return EngineActuator(engine, journal, rotation, Rules(**rules))


@pytest.mark.usefixtures("left")
@pytest.mark.parametrize(
    ("covered", "rules", "is_renewed"),
    [
        (None, {}, True),
        (frozenset({ID}), {}, True),
        (OTHERS, {}, False),
        (frozenset(), {}, False),
        (None, {"labels": ["line=a"]}, True),
        (None, {"labels": ["line=b"]}, False),
        (frozenset({ID}), {"labels": ["line=b"]}, False),
    ],
)
def test_a_run_renews_what_it_covers(engine, journal, rotation, covered, rules, is_renewed) -> None:
    run = next_run(engine, journal, rotation, **rules)
    run.leases.adopt(covered)
    (entry,) = journal.all()
    adopted = (ApplyRun(7, 1), "") if is_renewed else (UNKNOWN_RUN, SOON)
    assert (entry.leased_by, entry.until) == adopted
    assert run.leases.leave(LATER, covered) is is_renewed
    (entry,) = journal.all()
    assert entry.until == (LATER if is_renewed else SOON)


@pytest.mark.usefixtures("left")
def test_what_a_run_has_changed_itself_is_its_own(engine, journal, rotation) -> None:
    run = next_run(engine, journal, rotation)
    run.lease(True)
    run.apply(plan_of(action({"cpus": 1.0})))
    assert run.leases.leave(LATER, OTHERS)
    (entry,) = journal.all()
    assert entry.until == LATER


def test_what_is_gone_is_not_renewed(left, engine, journal, rotation) -> None:
    left.is_there = False
    assert not next_run(engine, journal, rotation, labels=["line=a"]).leases.leave(LATER, None)


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


def test_a_farewell_is_an_end_in_order(watched) -> None:
    os.write(watched.ours, beat(5) + beat(0.01) + FAREWELL)
    assert watch(watched.theirs, watched.run, 60) is End.IN_ORDER
    assert watched.run.is_alive


def test_a_run_may_leave_leases_behind(watched) -> None:
    os.write(watched.ours, beat(5) + LEASES)
    assert watch(watched.theirs, watched.run, 60) is End.WITH_LEASES
    assert watched.run.is_alive


@pytest.mark.slow
def test_a_run_that_is_stopped_for_longer_than_it_may_is_ended(watched) -> None:
    os.write(watched.ours, beat(600) + beat(0.6))
    watched.process.send_signal(signal.SIGSTOP)
    begun = time.monotonic()
    assert watch(watched.theirs, watched.run, 600) is End.DEAD
    assert 0.6 <= time.monotonic() - begun < 300
    assert watched.process.wait() == -signal.SIGKILL
    told = watched.end().decode()
    assert told.startswith("dl-apply: the run was stopped for 1 s: ending it,")
    assert len(told.splitlines()) == 1


@pytest.mark.slow
def test_a_run_that_is_continued_in_time_goes_on(watched) -> None:
    os.write(watched.ours, beat(3))
    watched.process.send_signal(signal.SIGSTOP)
    threading.Timer(0.3, watched.process.send_signal, [signal.SIGCONT]).start()
    threading.Timer(3.7, os.write, [watched.ours, FAREWELL]).start()
    assert watch(watched.theirs, watched.run, 600) is End.IN_ORDER
    assert watched.run.is_alive


@pytest.mark.slow
def test_a_run_that_may_be_stopped_for_long_is_left_alone(watched) -> None:
    os.write(watched.ours, beat(600))
    watched.process.send_signal(signal.SIGSTOP)
    threading.Timer(1, os.write, [watched.ours, FAREWELL]).start()
    assert watch(watched.theirs, watched.run, 600) is End.IN_ORDER
    assert watched.run.is_alive


def test_a_watchdog_whose_state_was_removed_has_nothing_to_undo(tmp_path) -> None:
    away = Address(f"unix://{tmp_path}/none.sock", "--host", name="away")
    begun = time.monotonic()
    assert release(tmp_path / "state", [away])
    assert time.monotonic() - begun < 60
    assert not (tmp_path / "state").exists()


def test_an_engine_that_answers_anything_keeps_none_from_its_undo(tmp_path, monkeypatch) -> None:
    asked: list[str] = []

    def opened(address: Address, **_: object) -> None:
        asked.append(address.name)
        raise ValueError("no such thing") if address.name == "odd" else RefusedError("not now")

    monkeypatch.setattr("dltools.engine.registry.open_engine", opened)
    monkeypatch.setattr("dltools.apply.leases._PATIENCE_S", 0.5)
    monkeypatch.setattr("dltools.apply.leases._BETWEEN_S", 0.05)
    (tmp_path / "state").mkdir()
    assert release(tmp_path / "state", [Address("", "--host", name=name) for name in ("odd", "b")])
    assert asked.count("b") == 1
    assert asked.count("odd") > 1
