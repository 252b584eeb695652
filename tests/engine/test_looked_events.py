"""What has happened to containers, told by comparing what there was with what there is."""

import itertools
import queue
import threading
from dataclasses import replace
from datetime import UTC, datetime

import pytest

from dltools.engine.cri.cri_engine import CriEngine
from dltools.engine.interface import Container, Event
from dltools.engine.looked_events import changes
from dltools.errors import UnavailableError

S = 1_000_000_000


def life(
    id_: str, started: float = 0, finished: float = 0, code: int | None = None, why: str = ""
) -> Container:
    """A container that was started, and has ended, at so many seconds since 1970; 0: not yet."""
    return Container(
        id_,
        id_,
        state="exited" if finished else "running" if started else "created",
        started=datetime.fromtimestamp(started, UTC) if started else None,
        finished=datetime.fromtimestamp(finished, UTC) if finished else None,
        exit_code=code,
        error=why,
    )


def seen(events: list[Event]) -> list[tuple[str, str, int | None]]:
    return [(one.container_id, one.action, one.nanos) for one in events]


def test_a_container_that_starts_and_ends_between_two_looks_does_both() -> None:
    one = life("a", 5, 7, 3)
    assert seen(changes({}, {"a": one})) == [("a", "start", 5 * S), ("a", "exit", 7 * S)]
    assert changes({}, {"a": one})[1].exit_code == 3


def test_nothing_has_happened_to_what_is_as_before() -> None:
    assert changes({"a": life("a", 5)}, {"a": life("a", 5)}) == []


def test_a_container_out_of_memory_says_so_before_it_ends() -> None:
    before, now = life("a", 5), life("a", 5, 9, 137, "OOMKilled")
    assert [one.action for one in changes({"a": before}, {"a": now})] == ["oom", "exit"]


def test_a_container_that_is_gone_has_ended_at_an_unknown_time() -> None:
    found = changes({"a": life("a", 5)}, {})
    assert [(one.action, one.nanos, one.exit_code) for one in found] == [
        ("exit", None, None),
        ("remove", None, None),
    ]
    assert [one.action for one in changes({"a": life("a", 5, 6, 0)}, {})] == ["remove"]


def test_one_that_was_only_created_has_not_started() -> None:
    assert changes({}, {"a": life("a")}) == []


def test_events_come_in_order_of_time() -> None:
    now = {"a": life("a", 5, 9, 0), "b": life("b", 6)}
    assert [one.container_id for one in changes({}, now)] == ["a", "b", "a"]


def test_a_pause_is_told_where_it_is_looked_at() -> None:
    runs = life("a", 5)
    stands = replace(runs, state="paused")
    assert [one.action for one in changes({"a": runs}, {"a": stands})] == ["pause"]
    assert [one.action for one in changes({"a": stands}, {"a": runs})] == ["unpause"]
    assert changes({"a": stands}, {"a": stands}) == []


@pytest.mark.parametrize(("times", "action"), [((4, 6), "start"), ((6, 10), "exit")])
def test_past_events_are_those_between_two_times(runtime, times, action) -> None:
    runtime.add("a1", started_at=5 * S)
    runtime.end("a1")
    runtime.containers["a1"].finished_at = 9 * S
    assert [one.action for one in CriEngine(runtime.url).past_events(*times)] == [action]


def test_one_that_starts_again_does_so_with_the_same_id() -> None:
    before, now = life("a", 5, 6), life("a", 7)
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
