"""The line: turns of equals and the bound on waiting, worked by hand."""

from __future__ import annotations

import json

import pytest

from dltools.plan.realisation.queue import TURN_S, Queue, patience_s
from dltools.plan.state import load_queue, save_queue

S = 1_000_000
TURN = round(TURN_S * S)


def begun(first: str = "a", waiting: str = "bc", now: int = 0) -> Queue:
    return Queue().moved(first, waiting, (), first, len(waiting) + 1, now)


def test_patience_is_a_minute_and_six_turns_for_each_other_group() -> None:
    assert [patience_s(groups) for groups in (1, 2, 3, 4, 11)] == [60, 60, 60, 90, 300]


def test_equals_in_order_of_their_turns() -> None:
    queue = begun()
    middle = sorted("abcn", key=lambda run_id: queue.turn(run_id, TURN // 2))
    assert middle[:2] == ["n", "a"]  # a newcomer, then who is in the middle of a turn
    queue = queue.moved("b", "ac", (), "b", 3, TURN)
    after = sorted("abc", key=lambda run_id: queue.turn(run_id, 2 * TURN))
    assert after == ["c", "a", "b"]  # c has waited since 0, a since one turn, b has had it


@pytest.mark.parametrize(("seconds", "urgent"), [(56.9, []), (57.0, ["b", "c"])])
def test_who_has_waited_too_long_is_urgent(seconds: float, urgent: list[str]) -> None:
    assert begun().urgent("abc", 3, round(seconds * S)) == urgent


def test_an_urgent_turn_lasts_a_turn() -> None:
    queue = begun().moved("b", "ac", "b", (), 3, 60 * S)
    assert queue.urgent("abc", 3, 60 * S + TURN // 2) == ["b", "c"]
    assert queue.urgent("abc", 3, 60 * S + TURN) == ["c"]


def test_due_when_a_turn_ends_or_somebody_has_waited_long_enough() -> None:
    early = 1 - 0.05  # samples may come early
    assert begun().due == round(TURN * early)
    nobody_equal = Queue().moved("a", "b", (), (), 2, 0)
    assert nobody_equal.due == round(60 * S * early)
    assert Queue().moved("ab", (), (), "ab", 1, 0).due is None
    # a's turn is long over and it goes on: the next look is a turn away.
    assert begun().moved("a", "bc", (), "a", 3, 10 * S).due == 10 * S + TURN


def test_who_is_gone_is_forgotten_and_who_stays_keeps_its_time() -> None:
    queue = begun().moved("a", "b", (), (), 2, 20 * S)
    assert set(queue.positions) == {"a", "b"}
    assert {place.since for place in queue.positions.values()} == {0}


def test_a_line_survives_a_round_trip() -> None:
    queue = begun().moved("b", "ac", "b", "b", 3, 7)
    assert load_queue(json.loads(json.dumps(save_queue(queue)))) == queue
