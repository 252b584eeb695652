"""What has happened to containers, told by comparing what there was with what there is."""

import itertools
import queue
import threading

import pytest

from dltools.engine.cri.cri_engine import CriEngine
from dltools.engine.interface import Event
from dltools.engine.looked_events import Life, changes, past
from dltools.errors import UnavailableError

S = 1_000_000_000


def seen(events: list[Event]) -> list[tuple[str, str, int | None]]:
    return [(one.container_id, one.action, one.nanos) for one in events]


def test_a_container_that_starts_and_ends_between_two_looks_does_both() -> None:
    life = Life("a", "lab/p/a", 5 * S, 7 * S, 3)
    assert seen(changes({}, {"a": life})) == [("a", "start", 5 * S), ("a", "exit", 7 * S)]
    assert changes({}, {"a": life})[1].exit_code == 3


def test_nothing_has_happened_to_what_is_as_before() -> None:
    life = Life("a", "a", 5 * S)
    assert changes({"a": life}, {"a": life}) == []


def test_a_container_out_of_memory_says_so_before_it_ends() -> None:
    before, now = Life("a", "a", 5 * S), Life("a", "a", 5 * S, 9 * S, 137, "OOMKilled")
    assert [one.action for one in changes({"a": before}, {"a": now})] == ["oom", "exit"]


def test_a_container_that_is_gone_has_ended_at_an_unknown_time() -> None:
    found = changes({"a": Life("a", "a", 5 * S)}, {})
    assert [(one.action, one.nanos, one.exit_code) for one in found] == [
        ("exit", None, None),
        ("remove", None, None),
    ]
    assert [one.action for one in changes({"a": Life("a", "a", 5 * S, 6 * S, 0)}, {})] == ["remove"]


def test_one_that_was_only_created_has_not_started() -> None:
    assert changes({}, {"a": Life("a", "a")}) == []


def test_events_come_in_order_of_time() -> None:
    now = {"a": Life("a", "a", 5 * S, 9 * S, 0), "b": Life("b", "b", 6 * S)}
    assert [one.container_id for one in changes({}, now)] == ["a", "b", "a"]


def test_a_pause_is_told_where_it_is_looked_at() -> None:
    runs, stands = Life("a", "a", 5 * S, is_paused=False), Life("a", "a", 5 * S, is_paused=True)
    assert [one.action for one in changes({"a": runs}, {"a": stands})] == ["pause"]
    assert [one.action for one in changes({"a": stands}, {"a": runs})] == ["unpause"]
    assert changes({"a": stands}, {"a": stands}) == []


def test_past_events_are_those_between_two_times() -> None:
    now = {"a": Life("a", "a", 5 * S, 9 * S, 0)}
    assert [one.action for one in past(now, 4, 6)] == ["start"]
    assert [one.action for one in past(now, 6, 10)] == ["exit"]


def test_one_that_starts_again_does_so_with_the_same_id() -> None:
    before, now = Life("a", "a", 5 * S, 6 * S), Life("a", "a", 7 * S)
    assert seen(changes({"a": before}, {"a": now})) == [("a", "start", 7 * S)]


class Follower:
    """Takes events in a thread, as dl-probe does."""

    def __init__(self, engine: CriEngine, since: float = 0.0) -> None:
        self.came: queue.Queue[Event | Exception] = queue.Queue()
        threading.Thread(target=self._follow, args=(engine, since), daemon=True).start()

    def _follow(self, engine: CriEngine, since: float) -> None:
        try:
            for event in engine.events(since):
                self.came.put(event)
        except Exception as error:
            self.came.put(error)

    def next(self) -> Event:
        found = self.came.get(timeout=15)
        if isinstance(found, Exception):
            raise found
        return found


@pytest.mark.slow
def test_what_happens_on_a_runtime_is_told(runtime) -> None:
    runtime.add("a1", labels={"app": "x"})
    follower = Follower(CriEngine(runtime.url))
    first = follower.next()
    assert (first.action, first.name) == ("start", "lab/train/main")
    assert first.labels["app"] == "x"
    runtime.add("b2", name="second")
    assert follower.next().action == "start"
    runtime.end("b2", 3)
    ended = follower.next()
    assert (ended.container_id, ended.action, ended.exit_code) == ("b2", "exit", 3)
    runtime.remove("b2")
    assert follower.next().action == "remove"


@pytest.mark.slow
def test_events_end_with_the_runtime(runtime) -> None:
    runtime.add("a1")
    follower = Follower(CriEngine(runtime.url))
    follower.next()
    runtime.stop()
    with pytest.raises(UnavailableError):
        for _ in itertools.repeat(None, 10):
            follower.next()


def test_events_of_before_are_left_out(runtime) -> None:
    runtime.add("a1", started_at=5 * S)
    follower = Follower(CriEngine(runtime.url), since=10.0)
    runtime.add("b2")
    assert follower.next().container_id == "b2"
