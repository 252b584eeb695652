"""What has happened to containers, told by comparing what there was with what there is."""

import itertools
import queue
import threading
from dataclasses import replace
from datetime import UTC, datetime

import pytest

from dltools.engine.cri.cri_engine import CriEngine
from dltools.engine.interface import Container, Ending, Event
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
        ended=Ending(datetime.fromtimestamp(finished, UTC) if finished else None, code, why),
    )


RUNS = life("a", 5)
STANDS = replace(RUNS, state="paused")


@pytest.mark.parametrize(
    ("before", "now", "told"),
    [
        ([RUNS], [RUNS], []),
        ([], [life("a")], []),  # it is only created
        ([], [life("a", 5, 7, 3)], [("a", "start", 5 * S, None), ("a", "exit", 7 * S, 3)]),
        ([life("a", 5, 6)], [life("a", 7)], [("a", "start", 7 * S, None)]),
        (
            [RUNS],
            [life("a", 5, 9, 137, "OOMKilled")],
            [("a", "oom", 9 * S, None), ("a", "exit", 9 * S, 137)],
        ),
        ([RUNS], [], [("a", "exit", None, None), ("a", "remove", None, None)]),
        ([life("a", 5, 6, 0)], [], [("a", "remove", None, None)]),
        ([RUNS], [STANDS], [("a", "pause", None, None)]),
        ([STANDS], [RUNS], [("a", "unpause", None, None)]),
        ([STANDS], [STANDS], []),
        (
            [],
            [life("a", 5, 9, 0), life("b", 6)],
            [("a", "start", 5 * S, None), ("b", "start", 6 * S, None), ("a", "exit", 9 * S, 0)],
        ),
    ],
)
def test_what_has_happened_between_two_looks(before, now, told) -> None:
    """What is gone has ended at an unknown time; a container out of memory says so first."""
    found = changes({one.id: one for one in before}, {one.id: one for one in now})
    assert [(one.container_id, one.action, one.nanos, one.exit_code) for one in found] == told


@pytest.mark.parametrize(("times", "action"), [((4, 6), "start"), ((6, 10), "exit")])
def test_past_events_are_those_between_two_times(runtime, times, action) -> None:
    runtime.add("a1", started_at=5 * S)
    runtime.end("a1")
    runtime.containers["a1"].finished_at = 9 * S
    assert [one.action for one in CriEngine(runtime.url).past_events(*times)] == [action]


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
