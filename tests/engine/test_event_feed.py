"""Events that are followed in a thread: none lost where a stream breaks, none twice."""

import threading
from typing import Any

from helpers.containers import eventually
from helpers.scripted_engine import ScriptedEngine, event

from dltools.engine.event_feed import EventFeed, SeenEvents
from dltools.engine.interface import Event


def at(nanos: int, action: str) -> dict[str, Any]:
    return event(action, "c1", "job") | {"timeNano": nanos}


def test_a_stream_that_breaks_is_asked_for_again() -> None:
    engine, woken, came = ScriptedEngine(), threading.Event(), list[Event]()
    for one in (at(1, "pause"), ConnectionError("reset"), at(1, "pause"), at(2, "unpause"), None):
        engine.raw_events.put(one)
    engine.raw_events.put(at(3, "die"))
    feed = EventFeed(engine, 0.0, lambda _: woken.set())  # type: ignore[arg-type]

    def taken() -> list[str]:
        came.extend(feed.take())
        return [one.action for one in came]

    eventually(taken, lambda found: len(found) >= 3)
    assert taken() == ["pause", "unpause", "exit"]
    assert woken.is_set()
    feed.close()
    engine.raw_events.put(at(4, "start"))
    eventually(engine.raw_events.empty)
    assert feed.take() == []


def test_an_event_without_a_time_is_new_each_time() -> None:
    seen = SeenEvents(5.0)
    found = Event("c1", "job", "exit", None)  # type: ignore[arg-type]
    assert [seen.is_new(found) for _ in range(2)] == [True, True]
    assert [seen.is_new(found._replace(nanos=10**10)) for _ in range(2)] == [True, False]
    assert (seen.asked_since, seen.times("c1", "exit")) == (9.0, [10**10])
