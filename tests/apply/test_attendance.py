"""Who is at which container, and until when: by events, at times that the test says."""

import pytest
from helpers.scripted_engine import event

from dltools.apply.attendance import LASTS_S, Attendance
from dltools.engine.docker.answers import event_of
from dltools.engine.interface import Event


def told(action: str, exec_id: str = "", id_: str = "c1") -> Event:
    return event_of(event(action, id_, "job", **({"execID": exec_id} if exec_id else {})))


def test_somebody_is_there_until_the_command_ends() -> None:
    found = Attendance()
    found.note(told("exec_create: ls", "e1"), 0.0)
    found.note(told("exec_start: ls", "e1"), 1.0)
    found.note(told("exec_start: top", "e2"), 2.0)
    assert found.attended(3.0) == {"c1"}
    found.note(told("exec_die", "e1"), 4.0)
    assert found.attended(5.0) == {"c1"}
    found.note(told("exec_die", "e2"), 6.0)
    assert found.attended(7.0) == set()
    assert found.next_end() is None


def test_a_command_that_goes_on_is_part_of_the_job() -> None:
    found = Attendance()
    found.note(told("exec_start: train", "e1"), 5.0)
    assert found.next_end() == 5.0 + LASTS_S["enter"]
    assert found.attended(4.9 + LASTS_S["enter"]) == {"c1"}
    assert found.attended(5.0 + LASTS_S["enter"]) == set()


@pytest.mark.parametrize(
    ("action", "hand"), [("kill", "signal"), ("attach", "attach"), ("exec", "enter")]
)
def test_each_hand_lasts_for_its_time(action, hand) -> None:
    found = Attendance()
    found.note(told(action), 0.0)
    assert found.attended(LASTS_S[hand] - 0.1) == {"c1"}
    assert found.attended(LASTS_S[hand]) == set()


@pytest.mark.parametrize("action", ["start", "die", "destroy"])
def test_nobody_is_at_a_run_that_is_over(action) -> None:
    found = Attendance()
    found.note(told("kill"), 0.0)
    found.note(told("kill", id_="c2"), 0.0)
    found.note(told(action), 1.0)
    assert found.attended(2.0) == {"c2"}


@pytest.mark.parametrize("action", ["pause", "rename", "top", "update", "commit"])
def test_other_events_are_no_work_in_a_container(action) -> None:
    found = Attendance()
    found.note(told(action), 0.0)
    assert found.attended(0.0) == set()
