"""Waiting for an engine that restarts."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from dltools.engine.interface import RefusedError
from dltools.engine.patience import Patience
from dltools.errors import UnavailableError

Asking = Callable[[], str]


class Way:
    """A way to an engine that is away until a time."""

    def __init__(self, until: float) -> None:
        self.now = 0.0
        self.until = until
        self.asked: list[float] = []

    def ask(self) -> str:
        self.asked.append(self.now)
        if self.now < self.until:
            raise UnavailableError("away")
        return "answer"

    def sleep(self, seconds: float) -> None:
        self.now += seconds


def asking_of(way: Way, patience_s: float = 60, told: list[str] | None = None) -> Asking:
    waiting = lambda error: (told if told is not None else []).append(str(error))  # noqa: E731
    patience = Patience(patience_s, waiting, clock=lambda: way.now, sleep=way.sleep)
    return lambda: patience.repeat(way.ask)


def test_an_engine_that_answers_is_asked_once() -> None:
    way, told = Way(0), list[str]()
    assert asking_of(way, told=told)() == "answer"
    assert (way.asked, told) == ([0.0], [])


def test_an_engine_that_comes_back_is_asked_again_ever_more_slowly() -> None:
    way, told = Way(20), list[str]()
    assert asking_of(way, told=told)() == "answer"
    pauses = [b - a for a, b in zip(way.asked, way.asked[1:], strict=False)]
    assert pauses == pytest.approx(sorted(pauses))
    assert max(pauses) == pytest.approx(2)
    assert told == ["away"]
    assert len(way.asked) < 20


def test_an_engine_that_stays_away_is_given_up_once() -> None:
    way, told = Way(1000), list[str]()
    asking = asking_of(way, 60, told)
    with pytest.raises(UnavailableError):
        asking()
    assert way.now == pytest.approx(60)
    with pytest.raises(UnavailableError):  # the next request is not waited for again
        asking()
    assert way.now == pytest.approx(60)
    way.now = 1001
    assert asking() == "answer"
    way.until = 1010
    assert asking() == "answer"
    assert told == ["away", "away"]


def test_no_patience_fails_at_once_and_in_silence() -> None:
    way, told = Way(1), list[str]()
    with pytest.raises(UnavailableError):
        asking_of(way, 0, told)()
    assert (way.now, told) == (0, [])


def test_a_refusal_is_an_answer() -> None:
    class Refusing(Way):
        def ask(self) -> str:
            self.asked.append(self.now)
            raise RefusedError("no")

    way = Refusing(0)
    with pytest.raises(RefusedError):
        asking_of(way)()
    assert way.asked == [0.0]
