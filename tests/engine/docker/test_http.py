"""Requests to an engine: errors in plain words, and patience while it restarts."""

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from dltools.engine.docker.http import Transport, connection_errors, raise_refusal
from dltools.engine.interface import GoneError, RefusedError
from dltools.engine.patience import Patience
from dltools.errors import AccessError, UnavailableError

DIALLING = (
    'Cannot unpause container 1: connection error: desc = "transport: Error while dialing dial '
    'unix:///run/docker/containerd/containerd.sock: timeout": unavailable'
)


@pytest.mark.parametrize(
    ("status", "message", "kind"),
    [
        (404, "No such container: 1", GoneError),
        (409, "Container 1 is already paused", RefusedError),
        (500, "Cannot update container 1: transport is closing: unavailable", UnavailableError),
        (500, DIALLING, UnavailableError),
        (400, "invalid mount: /run/containerd.sock", RefusedError),
        (500, "", RefusedError),
    ],
)
def test_a_refusal_is_told_from_an_engine_that_stops(status, message, kind) -> None:
    with pytest.raises(kind) as caught:
        raise_refusal(status, json.dumps({"message": message}).encode())
    assert type(caught.value) is kind
    assert message in str(caught.value)


def test_an_answer_without_a_message_is_told_by_its_status() -> None:
    with pytest.raises(RefusedError, match="status 500"):
        raise_refusal(500, b"")


class Way(Transport):
    """A way to an engine that is away until a time."""

    def __init__(self, until: float) -> None:
        self.now = 0.0
        self.until = until
        self.asked: list[float] = []

    def _answer(self, *_: Any) -> Any:
        self.asked.append(self.now)
        if self.now < self.until:
            raise UnavailableError("away")
        return "answer"

    def sleep(self, seconds: float) -> None:
        self.now += seconds


def patient(way: Way, patience: float = 60, told: list[str] | None = None) -> Way:
    waiting = lambda error: (told if told is not None else []).append(str(error))  # noqa: E731
    way.patience = Patience(patience, waiting, clock=lambda: way.now, sleep=way.sleep)
    return way


def test_an_engine_that_answers_is_asked_once() -> None:
    way, told = Way(0), []  # type: ignore[var-annotated]
    assert patient(way, told=told).json("GET", "/info") == "answer"
    assert (way.asked, told) == ([0.0], [])


def test_an_engine_that_comes_back_is_asked_again_ever_more_slowly() -> None:
    way, told = Way(20), []  # type: ignore[var-annotated]
    assert patient(way, told=told).json("GET", "/info") == "answer"
    pauses = [b - a for a, b in zip(way.asked, way.asked[1:], strict=False)]
    assert pauses == pytest.approx(sorted(pauses))
    assert max(pauses) == pytest.approx(2)
    assert told == ["away"]
    assert len(way.asked) < 20


def test_an_engine_that_stays_away_is_given_up_once() -> None:
    way, told = Way(1000), []  # type: ignore[var-annotated]
    asking = patient(way, 60, told)
    with pytest.raises(UnavailableError):
        asking.json("GET", "/info")
    assert way.now == pytest.approx(60)
    with pytest.raises(UnavailableError):  # the next request is not waited for again
        asking.json("GET", "/info")
    assert way.now == pytest.approx(60)
    way.now = 1001
    assert asking.json("GET", "/info") == "answer"
    way.until = 1010
    assert asking.json("GET", "/info") == "answer"
    assert told == ["away", "away"]


def test_no_patience_fails_at_once_and_in_silence() -> None:
    way, told = Way(1), []  # type: ignore[var-annotated]
    with pytest.raises(UnavailableError):
        patient(way, 0, told).json("GET", "/info")
    assert (way.now, told) == (0, [])


def test_a_refusal_is_an_answer() -> None:
    class Refusing(Way):
        def _answer(self, *_: Any) -> Any:
            self.asked.append(self.now)
            raise RefusedError("no")

    way = Refusing(0)
    with pytest.raises(RefusedError):
        patient(way).json("POST", "/x/pause")
    assert way.asked == [0.0]


@pytest.mark.parametrize(
    ("mine", "advice"),
    [
        (0, "run as root: only root may use its socket, as with Snap's Docker"),
        (12345, "run as root or join the group docker"),
        (None, "run as root or join the group docker"),
    ],
)
def test_who_may_use_an_engine_depends_on_its_socket_s_group(mine, advice, monkeypatch) -> None:
    def stat(path: Path) -> SimpleNamespace:
        if mine is None or str(path) != "/run/docker.sock":
            raise FileNotFoundError(path)
        return SimpleNamespace(st_gid=mine)

    monkeypatch.setattr(Path, "stat", stat)
    with pytest.raises(AccessError, match=advice), connection_errors("unix:///run/docker.sock"):
        raise PermissionError(13, "Permission denied")
