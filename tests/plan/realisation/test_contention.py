"""What jobs' paces say of contention, and the mode that follows."""

from dataclasses import replace

import pytest
from helpers.shared_hosts import job

from dltools.notation.times import MICRO
from dltools.plan.realisation.contention import PATIENCE_S, Contention, spins
from dltools.plan.realisation.mode import Comparison, ModeChoice
from dltools.plan.realisation.options import Mode
from dltools.plan.signals.container_history import ContainerHistory
from dltools.plan.signals.paces import Mark, Pace
from dltools.plan.signals.resource_use import CpuDemand

BEGIN = Mark(0, 0.0)
NOW = 10**15
"""Long after any change."""
ORDERED = ModeChoice(Mode.PRIORITY, "in order", compared=Comparison(80.0, 100.0, 120.0, wins=True))
"""An order that is forecast to take four fifths of the time of equal turns."""


def trains(
    name: str,
    shared: float | None = None,
    ahead: float | None = None,
    threads: int = 2,
    best: float = 1.0,
) -> ContainerHistory:
    """A job that keeps these parts of its best rate."""
    made = job(name, threads)
    made.progress.pace = Pace("loss", BEGIN, BEGIN, best=best, peak=2.0, shared=shared, ahead=ahead)
    return made


def by_turns(ordered: float) -> ModeChoice:
    """An order of this mean time (s), where equal turns have 100 s."""
    return replace(ORDERED, compared=Comparison(ordered, 100.0, 120.0, wins=True))


def measured(
    found: Contention, *jobs: ContainerHistory, at_s: float = 0.0, others: float | None = None
) -> Contention:
    return found.measured(jobs, round(at_s * MICRO), others)


@pytest.mark.parametrize(
    ("one", "part"),
    [
        (job("a", 2), 1.0),  # until something is measured
        (job("a", 1), 0.0),
        (job("a", 8), 0.0),  # more threads than CPUs sleep
        (trains("a", shared=0.3), 1.0),  # it loses
        (trains("a", shared=0.95), 1.0),  # best among competing rates
        (trains("a", shared=0.95, ahead=1.0), 0.0),  # it has gone first, and keeps its rate
        (trains("a", shared=0.75, ahead=1.0), pytest.approx(0.5)),  # between the bounds
    ],
)
def test_threads_spin_where_a_job_loses_by_competing(one, part) -> None:
    assert spins([one], 4.0) == {"a": part}


def test_a_job_that_has_shown_nothing_is_as_those_of_its_number_of_threads() -> None:
    jobs = [
        trains("sleeps", 1.0, 1.0, threads=2),
        trains("spins", 0.2, threads=4),
        job("two", 2),
        job("four", 4),
        job("three", 3),
    ]
    assert spins(jobs, 4.0) == {
        "sleeps": 0.0,
        "spins": 1.0,
        "two": 0.0,
        "four": 1.0,
        "three": 0.5,  # as all that have shown something
    }


def test_where_those_that_wait_disturb_they_are_paused() -> None:
    jobs = trains("a", 0.2, ahead=0.6), trains("b", 0.2)
    found = measured(Contention(), *jobs)
    assert measured(found, *jobs, at_s=PATIENCE_S - 1).paused_at is None  # not at once
    found = measured(found, *jobs, at_s=PATIENCE_S)
    assert found.choice(ORDERED, NOW).mode is Mode.ROTATE
    assert "at most 60 % of their best rate" in found.choice(ORDERED, NOW).why
    first = found.choice(ORDERED, round(PATIENCE_S * MICRO))  # those that waited get 1024 back
    assert (first.mode, first.is_even) == (Mode.WEIGHT, True)
    assert measured(found, trains("b", 0.2), at_s=PATIENCE_S + 5) == found  # it stays


def test_nobody_is_paused_where_the_order_wins_all_the_same() -> None:
    """Turns take as long as an order at which three fifths of the rate are kept would take."""
    found = Contention(0, 5, ahead=0.6)
    assert found.choice(by_turns(50.0), NOW).mode is Mode.PRIORITY
    assert found.choice(by_turns(70.0), NOW).mode is Mode.ROTATE


def test_a_pace_that_falls_pauses_nobody_where_the_job_gets_the_cpus_that_it_wants() -> None:
    """It validates, or writes a checkpoint."""
    validates, other = trains("a", 0.2, ahead=0.3), trains("b", 0.2)
    validates.use.cpu = CpuDemand(demands=(2.0, 1.9, 2.0), uses=(1.98, 1.9, 1.95))
    found = measured(Contention(), validates, other)
    assert measured(found, validates, other, at_s=PATIENCE_S).paused_at is None
    validates.use.cpu = validates.use.cpu._replace(uses=(1.7, 1.6, 1.8))
    assert measured(found, validates, other, at_s=PATIENCE_S).paused_at is not None


def test_nobody_is_paused_for_cpus_that_others_use() -> None:
    slow = trains("a", ahead=0.4), trains("b")
    found = measured(Contention(), *slow, others=0.5)
    found = measured(found, *slow, at_s=2 * PATIENCE_S, others=0.5)
    assert found.paused_at is None
    assert measured(found, *slow, at_s=2 * PATIENCE_S + 1, others=0.05).paused_at is not None
