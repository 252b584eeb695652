"""Events of the engine as rows, and the stream that brings them."""

import re
import threading
import time
from typing import Any

import pytest
from helpers.scripted_engine import BEGUN, event

from dltools.engine.docker.answers import event_of
from dltools.errors import UnavailableError
from dltools.probe.events import EventStream, await_change, event_row, is_selected


@pytest.mark.parametrize(
    ("action", "name"),
    [("start", "start"), ("die", "exit"), ("oom", "oom"), ("pause", "pause"),
     ("unpause", "unpause"), ("update", "update")],
)  # fmt: skip
def test_an_event_becomes_a_row(action, name) -> None:
    assert event_row(event_of(event(action, "c1", "job")), "host") == {
        "time": BEGUN,
        "host": "host",
        "kind": "event",
        "container_id": "c1",
        "container_name": "job",
        "event": name,
        "exit_code": None,
    }


@pytest.mark.parametrize(("code", "shown"), [("137", 137), ("-1", -1), ("", None), ("x", None)])
def test_an_exit_has_its_code(code, shown) -> None:
    row = event_row(event_of(event("die", "c1", "job", exitCode=code)), "host")
    assert row is not None
    assert row["exit_code"] == shown


def test_an_event_without_nanoseconds_has_the_time_of_its_text() -> None:
    raw = event("start", "c1", "job") | {"timeNano": None, "time": "2026-01-31T12:00:05Z"}
    row = event_row(event_of(raw), "host")
    assert row is not None
    assert (row["time"] - BEGUN).total_seconds() == 5


@pytest.mark.parametrize(
    "raw",
    [
        event("exec_start: ls", "c1", "job"),
        event("attach", "c1", "job"),
        {},
        {"Action": "start"},
        {"Action": "start", "Actor": "c1"},
    ],
)
def test_other_events_give_no_row(raw) -> None:
    assert event_row(event_of(raw), "host") is None


@pytest.mark.parametrize(
    ("labels", "names", "selected"),
    [
        ([], [], True), (["team"], [], True), (["team=blue"], [], False),
        (["team", "other"], [], False), ([], ["^jo"], True), ([], ["^x", "b$"], True),
        ([], ["^x"], False),
    ],
)  # fmt: skip
def test_labels_and_names_select(labels, names, selected) -> None:
    told = event_of(event("start", "c1", "job", team="red"))
    assert is_selected(told, labels, [re.compile(name) for name in names]) is selected


def stream(engine: Any, **options: Any) -> tuple[EventStream, list[tuple[str, str]]]:
    told: list[tuple[str, str]] = []
    labels, names = options.get("labels", ()), options.get("names", ())
    changed = options.get("changed", threading.Event())
    return EventStream(engine, labels, names, lambda *one: told.append(one), changed), told


def wait_for(told: list[tuple[str, str]], count: int) -> None:
    until = time.monotonic() + 20
    while len(told) < count and time.monotonic() < until:
        time.sleep(0.005)
    assert len(told) == count
    time.sleep(0.02)  # the row is put after the listener was told


def test_past_events_of_selected_containers_are_given(engine) -> None:
    engine.past = [event("start", "c1", "job"), event("start", "c2", "other")]
    engine.past.append(event("exec_start", "c1", "job"))
    found, told = stream(engine, names=[re.compile("job")])
    assert [row["container_id"] for row in found.past(0.0, 1.0)] == ["c1"]
    assert told == []


def test_events_are_given_once_and_all_are_told(engine) -> None:
    found, told = stream(engine, labels=["team"])
    found.follow(0.0)
    engine.raw_events.put(event("start", "c1", "job", team="red"))
    engine.raw_events.put(event("start", "c2", "job"))
    wait_for(told, 2)
    assert [row["container_id"] for row in found.take()] == ["c1"]
    assert found.take() == []
    assert told == [("start", "c1"), ("start", "c2")]


def test_a_start_or_an_exit_of_a_selected_container_ends_the_wait(engine) -> None:
    changed = threading.Event()
    found, told = stream(engine, labels=["team"], changed=changed)
    found.follow(0.0)
    engine.raw_events.put(event("start", "c1", "job"))
    engine.raw_events.put(event("pause", "c2", "job", team="red"))
    wait_for(told, 2)
    assert not await_change(changed, 0.0)
    engine.raw_events.put(event("start", "c2", "job", team="red"))
    engine.raw_events.put(event("die", "c2", "job", team="red"))
    wait_for(told, 4)
    assert await_change(changed, 60.0)
    assert not await_change(changed, 0.0)


def _ended(engine: Any, end: Exception | None, message: str) -> tuple[Any, ...]:
    """A stream after an end that followed a start, whom it told, and the rows up to there."""
    found, told = stream(engine)
    found.follow(0.0)
    engine.raw_events.put(event("start", "c1", "job"))
    engine.raw_events.put(end)
    wait_for(told, 1)
    return found, told, _take_until_it_ends(found, message)


@pytest.mark.parametrize(
    ("end", "message"),
    [
        (None, "closed the event stream"),
        (UnavailableError("gone"), "gone"),
        (ValueError("no JSON"), "lost the Docker engine: no JSON"),
    ],
)
def test_events_before_the_end_of_a_stream_come_after_it(engine, end, message) -> None:
    found, told, rows = _ended(engine, end, message)
    found.resume()
    engine.raw_events.put(event("die", "c1", "job"))
    wait_for(told, 2)
    assert [row["event"] for row in rows + found.take()] == ["start", "exit"]


def test_events_that_came_while_the_engine_was_not_heard_are_given_once(engine) -> None:
    found, told, rows = _ended(engine, None, "closed")
    found.resume()
    engine.raw_events.put(event("start", "c1", "job"))  # the engine gives it again
    engine.raw_events.put(event("die", "c1", "job"))
    engine.raw_events.put(event("start", "c2", "other"))
    wait_for(told, 3)
    rows += found.take()
    given = [(row["container_id"], row["event"]) for row in rows]
    assert given == [("c1", "start"), ("c1", "exit"), ("c2", "start")]


def test_events_are_asked_for_from_the_last_one_on(engine, monkeypatch) -> None:
    found, *_ = _ended(engine, None, "closed")
    asked: list[float] = []
    monkeypatch.setattr(engine, "events", lambda since: asked.append(since) or iter(()))
    found.resume()
    _take_until_it_ends(found, "closed")
    assert asked == [BEGUN.timestamp() - 1.0]


def _take_until_it_ends(found: EventStream, message: str) -> list[dict[str, Any]]:
    until = time.monotonic() + 20
    taken = []
    while time.monotonic() < until:
        try:
            taken += found.take()
        except UnavailableError as error:
            assert message in str(error)
            return taken
        time.sleep(0.005)
    raise AssertionError(f"no error, but {taken}")
