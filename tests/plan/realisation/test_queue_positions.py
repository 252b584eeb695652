"""The queue: turns of equals and the bound on waiting, worked by hand."""

import json
from collections import Counter

import pytest
from helpers.shared_hosts import job, played
from hypothesis import given
from hypothesis import strategies as st

from dltools.actions.turn_lengths import TURN_S
from dltools.notation.saved_values import from_json, to_json
from dltools.plan.forecast.completion import equal_parts
from dltools.plan.forecast.docker_alone import LATEST
from dltools.plan.realisation.queue_positions import Queue, QueuePosition
from dltools.plan.signals.busy_threads import needed_cpus

S = 1_000_000
TURN = round(TURN_S * S)


def begun(first: str = "a", waiting: str = "bc", now: int = 0) -> Queue:
    return Queue().moved(first, waiting, (), first, now)


def test_equal_jobs_are_sorted_by_their_turns() -> None:
    queue = begun()
    middle = sorted("abcn", key=lambda run_id: queue.turn(run_id, TURN // 2))
    assert middle[:2] == ["n", "a"]  # a new job, then the one in the middle of its turn
    queue = queue.moved("b", "ac", (), "b", TURN)
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


def test_a_queue_is_due_at_its_time_and_not_before() -> None:
    assert [Queue(due=10).is_due(now) for now in (9, 10, 11)] == [False, True, True]
    assert not Queue().is_due(10**15)


def test_an_urgent_turn_lasts_a_turn() -> None:
    queue = begun().moved("b", "ac", "b", (), 80 * S)
    assert queue.in_urgent_turn("b", 84 * S)
    assert not queue.in_urgent_turn("b", 85 * S)
    assert not queue.in_urgent_turn("a", 84 * S)
    assert queue.due == round(84.75 * S)  # 5 s, less a twentieth
    assert [queue.waited_s(run_id, 90 * S) for run_id in "abx"] == [10.0, 0.0, 0.0]


def test_the_queue_is_due_when_a_turn_ends_or_a_job_has_waited_long_enough() -> None:
    early = 1 - 0.05  # samples may come early
    assert begun().due == round(TURN * early)
    assert Queue().moved("a", "b", (), (), 0).due is None
    assert Queue().moved("ab", (), (), "ab", 0).due is None
    # a's turn is long over and it goes on: the next look is a turn away.
    assert begun().moved("a", "bc", (), "a", 10 * S).due == 10 * S + TURN


def test_a_job_that_left_is_forgotten_and_one_that_stays_keeps_its_time() -> None:
    queue = begun().moved("a", "b", (), (), 20 * S)
    assert set(queue.positions) == {"a", "b"}
    assert {position.since for position in queue.positions.values()} == {0}


def test_a_queue_survives_a_round_trip() -> None:
    queue = begun().moved("b", "ac", "b", "b", 7)
    assert from_json(Queue, json.loads(json.dumps(to_json(queue)))) == queue


@given(
    st.lists(st.tuples(st.booleans(), st.floats(0.001, 1)), min_size=1, max_size=6),
    st.integers(1, 6),
    st.integers(1, 10),
)
@pytest.mark.slow
def test_no_job_is_much_behind_docker_alone(given_, cpus, every) -> None:
    jobs = [job(str(number), cpus if wide else 1) for number, (wide, _) in enumerate(given_)]
    shares: dict[str, float | None] = {str(k): share for k, (_, share) in enumerate(given_)}
    had = played(jobs, shares, float(cpus), seconds=900, every=every)
    needs = sorted(Counter(map(needed_cpus, jobs)).items())
    parts = dict(zip(dict(needs), equal_parts(needs, float(cpus)), strict=True))
    for one in jobs:
        late = cpus * len(jobs) * (TURN_S + every)
        assert had[one.id] >= 900 * parts[needed_cpus(one)] / LATEST - late
