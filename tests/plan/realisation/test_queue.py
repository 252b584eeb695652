"""The queue: turns of equals and the bound on waiting, worked by hand."""

from __future__ import annotations

import json

import pytest
from helpers.examples import some_of
from helpers.shared_hosts import job
from hypothesis import example, given
from hypothesis import strategies as st

from dltools.notation.saved_values import from_json, to_json
from dltools.plan.policy.interface import Allocation, HostState
from dltools.plan.realisation.mode import Mode, ModeChoice
from dltools.plan.realisation.queue import TURN_S, Bound, Queue, QueuePosition
from dltools.plan.realisation.realise import realise

S = 1_000_000
TURN = round(TURN_S * S)


def begun(first: str = "a", waiting: str = "bc", now: int = 0) -> Queue:
    return Queue().moved(first, waiting, (), first, Bound(len(waiting) + 1), now)


@pytest.mark.parametrize(
    ("groups", "max_slowdown", "turn_s", "patience_s"),
    [(1, 2.0, 60, 40), (2, 2.0, 30, 70), (3, 2.0, 20, 80), (10, 2.0, 6, 94), (30, 2.0, 5, 145),
     (2, 1.2, 50, 50), (2, 1.0, 50, 50), (2, 6.0, 10, 90)],
)  # fmt: skip
def test_a_turn_is_a_part_of_a_cycle_of_100_s(
    groups: int, max_slowdown: float, turn_s: float, patience_s: float
) -> None:
    bound = Bound(groups, max_slowdown)
    assert (bound.turn_s, bound.patience_s) == pytest.approx((turn_s, patience_s))


@pytest.mark.parametrize(
    ("groups", "bears", "turn_s", "patience_s"),
    [(2, 35.0, 15, 35), (2, 60.0, 30 * 60 / 70, 60), (2, 500.0, 30, 70), (2, 2.0, 5, 5),
     (10, 30.0, 5, 45), (10, 50.0, 5, 50), (30, 30.0, 5, 145)],
)  # fmt: skip
def test_who_bears_no_long_pause_waits_less_for_a_shorter_turn(
    groups: int, bears: float, turn_s: float, patience_s: float
) -> None:
    """As far as equal turns of all allow, so that nobody gains by saying so."""
    bound = Bound(groups, longest={"a": bears})
    assert bound.turn_of("a") == pytest.approx(turn_s)
    assert bound.patience_of("a") == pytest.approx(patience_s)
    assert (bound.turn_of("b"), bound.patience_of("b")) == (bound.turn_s, bound.patience_s)


def test_equal_jobs_are_sorted_by_their_turns() -> None:
    queue = begun()
    middle = sorted("abcn", key=lambda run_id: queue.turn(run_id, TURN // 2))
    assert middle[:2] == ["n", "a"]  # a new job, then the one in the middle of its turn
    queue = queue.moved("b", "ac", (), "b", Bound(3), TURN)
    after = sorted("abc", key=lambda run_id: queue.turn(run_id, 2 * TURN))
    assert after == ["c", "a", "b"]  # c has waited since 0, a since one turn, b has had it


def test_new_jobs_go_first_then_jobs_in_a_turn_waiting_jobs_and_jobs_that_had_a_turn() -> None:
    positions = {
        "in its turn": QueuePosition(True, 98 * S),
        "waits": QueuePosition(False, 50 * S),
        "waits longest": QueuePosition(False, 20 * S),
        "had a turn": QueuePosition(True, 90 * S),
        "had one long ago": QueuePosition(True, 80 * S),
    }
    queue = Queue(positions)
    mixed = ["had a turn", "waits", "new", "had one long ago", "waits longest", "in its turn"]
    order = ["new", "in its turn", "waits longest", "waits", "had a turn", "had one long ago"]
    assert sorted(mixed, key=lambda run_id: queue.turn(run_id, 100 * S)) == order


def test_a_turn_ends_after_5_s_less_a_twentieth() -> None:
    queue = Queue({"a": QueuePosition(True, 0), "b": QueuePosition(False, 0)})
    end = round(4.75 * S)
    for now, order in ((end - 1, ["a", "b"]), (end, ["b", "a"])):
        assert sorted("ab", key=lambda run_id, now=now: queue.turn(run_id, now)) == order


def test_a_queue_is_due_at_its_time_and_not_before() -> None:
    assert [Queue(due=10).is_due(now) for now in (9, 10, 11)] == [False, True, True]
    assert not Queue().is_due(10**15)


@pytest.mark.parametrize(("seconds", "urgent"), [(75.9, []), (76.0, ["b", "c"])])
def test_a_job_that_has_waited_too_long_is_urgent(seconds: float, urgent: list[str]) -> None:
    assert begun().urgent("abc", Bound(3), round(seconds * S)) == urgent


def test_an_urgent_turn_lasts_a_turn() -> None:
    queue = begun().moved("b", "ac", "b", (), Bound(3), 80 * S)
    assert queue.urgent("abc", Bound(3), 98 * S) == ["b", "c"]
    assert queue.urgent("abc", Bound(3), 99 * S) == ["c"]  # 20 s, less a twentieth
    assert queue.due == 85 * S  # c waits: look again after a turn


def test_the_queue_is_due_when_a_turn_ends_or_a_job_has_waited_long_enough() -> None:
    early = 1 - 0.05  # samples may come early
    assert begun().due == round(TURN * early)
    without_equals = Queue().moved("a", "b", (), (), Bound(2), 0)
    assert without_equals.due == round(70 * S * early)
    assert Queue().moved("ab", (), (), "ab", Bound(1), 0).due is None
    # a's turn is long over and it goes on: the next look is a turn away.
    assert begun().moved("a", "bc", (), "a", Bound(3), 10 * S).due == 10 * S + TURN


def test_a_job_that_left_is_forgotten_and_one_that_stays_keeps_its_time() -> None:
    queue = begun().moved("a", "b", (), (), Bound(2), 20 * S)
    assert set(queue.positions) == {"a", "b"}
    assert {position.since for position in queue.positions.values()} == {0}


def test_a_queue_survives_a_round_trip() -> None:
    queue = begun().moved("b", "ac", "b", "b", Bound(3), 7)
    assert from_json(Queue, json.loads(json.dumps(to_json(queue)))) == queue


@given(
    st.lists(
        st.tuples(st.integers(1, 4), st.floats(0.001, 1), st.integers(0, 2)), min_size=1, max_size=6
    ),
    st.integers(1, 6),
    st.integers(1, 10),
)
@example([(1, 0.125, 0)] * 3, 1, 1)  # all wait: they are three groups, not four
@pytest.mark.parametrize("mode", some_of([Mode.PRIORITY, Mode.WEIGHT, Mode.QUOTA], 1))
@pytest.mark.slow
def test_no_job_waits_longer_than_the_bound(
    mode: Mode, given_: list[tuple[int, float, int]], cpus: int, every: int
) -> None:
    jobs = tuple(job(str(number), threads) for number, (threads, *_) in enumerate(given_))
    allocations = {
        str(k): Allocation(share, "-", "", rank=rank) for k, (_, share, rank) in enumerate(given_)
    }
    found, queue, waits = (
        HostState("h", float(cpus), jobs, allocations),
        Queue(),
        dict.fromkeys(allocations, 0),
    )
    bound = Bound(len(jobs))
    for now in range(0, 900, every):
        made = realise(ModeChoice(mode, ""), found, queue=queue, now=now * 1_000_000)
        queue = made.queue
        for key in waits:
            position = queue.positions[f"{key}@0"]
            waits[key] = 0 if position.first else waits[key] + every
            assert waits[key] <= bound.patience_s + (bound.turn_s + every) * len(jobs)
