"""What jobs' paces say of contention, and the mode that follows."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import pytest
from helpers.examples import examples
from helpers.shared_hosts import job
from hypothesis import given
from hypothesis import strategies as st

from dltools.notation.times import MICRO
from dltools.plan.realisation.contention import PATIENCE_S, TRIAL_S, Contention
from dltools.plan.realisation.mode import Mode, ModeChoice
from dltools.plan.signals.container_history import ContainerHistory
from dltools.plan.signals.cpu_demand import CpuDemand
from dltools.plan.signals.paces import Mark, Pace

BEGIN = Mark(0, 0.0)
NOW = 10**15
"""Long after any change."""
PRIOR = ModeChoice(Mode.PRIORITY, "by threads")


def trains(
    name: str,
    shared: float | None = None,
    ahead: float | None = None,
    threads: int = 2,
    best: float = 1.0,
) -> ContainerHistory:
    """A job that keeps these parts of its best rate."""
    made = job(name, threads)
    made.pace = Pace("loss", BEGIN, BEGIN, best=best, peak=2.0, shared=shared, ahead=ahead)
    return made


def measured(
    found: Contention,
    *jobs: ContainerHistory,
    at_s: float = 0.0,
    may_try: bool = True,
    others: float | None = None,
) -> Contention:
    return found.measured(jobs, 2.0, round(at_s * MICRO), may_try=may_try, others=others)


def test_nothing_measured_leaves_the_rule_of_thumb() -> None:
    found = measured(Contention(), job("a", 2), job("b", 2))
    assert found.mode is None
    assert found.choice(PRIOR, NOW) is PRIOR


def test_jobs_that_lose_by_competing_take_turns() -> None:
    found = measured(Contention(), trains("a", 0.5), trains("b", 0.32), trains("c"))
    assert found.choice(PRIOR, NOW).mode is Mode.PRIORITY
    assert found.why == (
        "2 jobs of 2 threads do at most 41 % of their best rate while competing: take turns"
    )


def test_jobs_that_lose_nothing_share_after_a_while() -> None:
    jobs = trains("a", 0.97), trains("b", 1.2, threads=4)
    found = measured(Contention(), *jobs)
    assert found.mode is None  # not at once
    found = measured(found, *jobs, at_s=PATIENCE_S)
    assert found.choice(PRIOR, NOW).mode is Mode.WEIGHT
    assert found.why == (
        "2 jobs of 2 to 4 threads do 98 % of their best rate while competing: turns win nothing"
    )


def test_where_those_that_wait_disturb_they_are_paused() -> None:
    jobs = trains("a", 0.2, ahead=0.6), trains("b", 0.2)
    found = measured(Contention(), *jobs)
    assert found.mode is Mode.PRIORITY
    assert measured(found, *jobs, at_s=PATIENCE_S - 1).mode is Mode.PRIORITY  # not at once
    found = measured(found, *jobs, at_s=PATIENCE_S)
    assert found.choice(PRIOR, NOW).mode is Mode.ROTATE
    assert "at most 60 % of its best rate although others wait" in found.why
    first = found.choice(PRIOR, round(PATIENCE_S * MICRO))  # those that waited get 1024 back
    assert (first.mode, first.is_even) == (Mode.WEIGHT, True)
    assert measured(found, trains("b", 0.2), at_s=PATIENCE_S + 5).mode is Mode.ROTATE  # it stays


def test_a_pace_that_falls_pauses_nobody_where_the_job_gets_the_cpus_that_it_wants() -> None:
    """It validates, or writes a checkpoint."""
    validates, other = trains("a", 0.2, ahead=0.3), trains("b", 0.2)
    validates.cpu = CpuDemand(demands=(2.0, 1.9, 2.0), uses=(1.98, 1.9, 1.95))
    found = measured(Contention(), validates, other)
    assert measured(found, validates, other, at_s=PATIENCE_S).mode is Mode.PRIORITY
    validates.cpu = replace(validates.cpu, uses=(1.7, 1.6, 1.8))
    assert measured(found, validates, other, at_s=PATIENCE_S).mode is Mode.ROTATE


def test_weight_is_tried_for_a_while_where_nothing_is_known() -> None:
    jobs = trains("a"), trains("b")
    found = measured(Contention(), *jobs)
    assert measured(found, *jobs, at_s=PATIENCE_S - 1).mode is None
    tried = measured(found, *jobs, at_s=PATIENCE_S)
    choice = tried.choice(PRIOR, NOW)
    assert (choice.mode, choice.is_even) == (Mode.WEIGHT, True)
    assert measured(tried, *jobs, at_s=PATIENCE_S + TRIAL_S - 1) == tried
    ended = measured(tried, *jobs, at_s=PATIENCE_S + TRIAL_S)
    assert (ended.mode, ended.moves) == (None, 1)
    again = PATIENCE_S + TRIAL_S + 2 * PATIENCE_S  # the next trial waits twice as long
    assert measured(ended, *jobs, at_s=again - 1).mode is None
    assert measured(ended, *jobs, at_s=again).is_trial


def test_a_trial_ends_with_the_first_evidence() -> None:
    tried = measured(Contention(since=0), trains("a"), trains("b"), at_s=PATIENCE_S)
    lost = measured(tried, trains("a", 0.3), trains("b"), at_s=PATIENCE_S + 2)
    assert (lost.mode, lost.is_trial) == (Mode.PRIORITY, False)
    kept = measured(tried, trains("a", 1.0), trains("b"), at_s=PATIENCE_S + 2)
    assert (kept.mode, kept.is_trial) == (Mode.WEIGHT, False)


@pytest.mark.parametrize(
    ("jobs", "may_try"),
    [
        ((trains("a"), trains("b")), False),  # their threads are known to spin
        ((trains("a", best=0.1), trains("b", best=0.1)), True),  # ten CPU s from report to report
        ((trains("a", best=0.0), job("b", 2)), True),  # no best rate
    ],
)
def test_no_trial_that_would_show_nothing(jobs: tuple[ContainerHistory], may_try: bool) -> None:
    assert measured(Contention(since=0), *jobs, at_s=1e4, may_try=may_try).mode is None


def test_peace_ends_what_was_found_but_not_the_patience() -> None:
    found = Contention(Mode.ROTATE, "so", 5, 3)
    assert found.calm() == Contention(moves=3)


def test_where_the_rule_of_thumb_does_not_ask_for_turns_nothing_counts() -> None:
    prior = ModeChoice(Mode.WEIGHT, "some containers serve")
    assert Contention(Mode.ROTATE, "so", 5).choice(prior, NOW) is prior


@examples(100)
@given(st.lists(st.tuples(st.floats(0, 1.2), st.floats(0, 1.2)), min_size=1, max_size=300))
def test_it_does_not_flap_whatever_is_measured(kept: list[tuple[float, float]]) -> None:
    """Ten seconds lie between two looks; each return to less isolation waits twice as long."""
    found, modes = Contention(), [Mode.PRIORITY]
    for number, (shared, ahead) in enumerate(kept):
        found = measured(found, trains("a", shared, ahead), trains("b"), at_s=10.0 * number)
        modes.append(found.choice(PRIOR, NOW).mode)
    changes = sum(before is not after for before, after in pairwise(modes))
    patience, returns = 10.0 * len(kept), 0
    while (patience := patience - PATIENCE_S * 2**returns) >= 0:
        returns += 1
    assert changes <= 3 * (returns + 1)  # of each return at most two steps back


@pytest.mark.parametrize(("shared", "mode"), [(0.75, None), (0.89, None)])
def test_between_the_bounds_nothing_changes(shared: float, mode: Mode | None) -> None:
    for before in Mode.WEIGHT, Mode.PRIORITY, Mode.ROTATE:
        found = Contention(before, "so", 0)
        assert measured(found, trains("a", shared), at_s=1e4).mode is (mode or before)
    assert replace(Contention(), since=0).mode is None


def test_nobody_is_paused_for_cpus_that_others_use() -> None:
    slow = trains("a", ahead=0.4), trains("b")
    found = measured(Contention(), *slow, others=0.5, may_try=False)
    found = measured(found, *slow, at_s=2 * PATIENCE_S, others=0.5, may_try=False)
    assert found.mode is None
    found = measured(found, *slow, at_s=2 * PATIENCE_S + 1, others=0.05)
    assert found.mode is Mode.ROTATE
