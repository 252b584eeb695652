"""What one log may cost."""

from __future__ import annotations

import time
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import pytest
from helpers.located_containers import container
from helpers.scripted_engine import ScriptedFlow

from dltools.engine.interface import Container, RefusedError
from dltools.errors import UnavailableError
from dltools.probe import log_source
from dltools.probe.log_source import LogSource
from dltools.probe.progress import Automatic, Extractor, Pattern

LINES = [b"2026-01-31T12:00:0%dZ loss: %d\n" % (number, number) for number in range(3)]


PIECE = [LINES[0], b"2026-01-31T12:00:01Z " + b"x" * (1 << 20) + b"\n"]


class Stumbling:
    """An engine whose container has logged, and that can fail in each way."""

    host = "h"
    is_local = True

    def __init__(self) -> None:
        self.flows: list[ScriptedFlow] = []
        self.asked: list[tuple[float, bool]] = []
        self.fault: Exception | None = None
        self.first = LINES[:1]

    def logs(self, container: Container, since: float) -> Iterator[list[bytes]]:
        del container, since
        yield from ([line] for line in self.first)
        yield []
        if self.fault:
            raise self.fault

    def follow(
        self, container: Container, since: float, *, is_new_only: bool = False
    ) -> ScriptedFlow:
        del container
        if self.fault:
            raise self.fault
        self.asked.append((since, is_new_only))
        self.flows.append(ScriptedFlow())
        return self.flows[-1]


def read(extractor: Extractor) -> tuple[list[float], str | None]:
    engine: Any = Stumbling()
    engine.first = LINES
    source = LogSource(engine, container(), extractor)
    return [found.point.value for found in source.read(0.0, 0.0)], source.gap


@pytest.mark.parametrize("extractor", [Pattern(r"loss: (?P<loss>\d)"), Automatic()])
def test_lines_that_take_too_long_are_skipped_and_counted(extractor, monkeypatch) -> None:
    assert read(extractor) == ([0, 1, 2], None)
    monkeypatch.setattr(log_source, "_PATIENCE_S", -1)  # used up before the first line
    values, gap = read(extractor)
    assert values == []
    assert gap == "logs: 3 of 3 lines skipped: reading them takes too long"


class Endless(Stumbling):
    """An engine whose container has logged without end."""

    pieces = 0

    def logs(self, container: Container, since: float) -> Iterator[list[bytes]]:
        del container, since
        while True:
            self.pieces += 1
            yield PIECE


CONTAINER = container()


def test_of_a_log_without_end_the_first_part_is_read(monkeypatch) -> None:
    monkeypatch.setattr(log_source, "MOST_BYTES", 8 << 20)
    engine: Any = Endless()
    source = LogSource(engine, CONTAINER, Pattern(r"loss: (?P<loss>\d)"))
    assert {found.point.value for found in source.read(0.0, 0.0)} == {0}
    assert engine.pieces == 8
    assert source.gap == "logs: more than 8 MiB: see --since"


def stumbling(fault: Exception | None = None, *, is_followed: bool = True) -> tuple[Any, LogSource]:
    engine: Any = Stumbling()
    engine.fault = fault
    extractor = Pattern(r"loss: (?P<loss>\S+)")
    return engine, LogSource(engine, CONTAINER, extractor, is_followed=is_followed)


def values(source: LogSource, now: float) -> list[float]:
    return [found.point.value for found in source.read(now, 0.0)]


def test_a_stream_that_outruns_its_reader_goes_on_from_now() -> None:
    engine, source = stumbling()
    engine.first = LINES
    assert values(source, 0.0) == [0, 1, 2]
    engine.flows[0].came = [b"2026-01-31T12:00:05Z loss: 0.5\n", b"2026-01-31T12:00:05Z cut o"]
    engine.flows[0].is_behind = True
    assert values(source, 0.0) == [0.5]
    assert source.gap == "logs: more than 8 MiB between two samples: lines skipped"
    assert [is_new_only for _, is_new_only in engine.asked] == [False, True]


@pytest.mark.parametrize("fault", [RefusedError("Error grabbing logs"), UnavailableError("reset")])
@pytest.mark.parametrize("is_followed", [True, False])
def test_what_came_before_a_fault_is_kept(fault, is_followed) -> None:
    _, source = stumbling(fault, is_followed=is_followed)
    assert values(source, 0.0) == [0]
    assert source.gap == f"logs: {fault}"


def test_a_stream_that_was_cut_is_asked_for_again_from_its_last_line() -> None:
    engine, source = stumbling()
    assert values(source, 0.0) == [0]
    engine.flows[0].came = LINES[1:2]
    assert values(source, 2.0) == [1]
    engine.flows[0].ended = True
    assert values(source, 4.0) == []
    assert len(engine.flows) == 2
    engine.flows[1].came = LINES[1:]
    assert values(source, 6.0) == [2]
    assert source.gap is None
    first, again = (since for since, _ in engine.asked)
    assert again == pytest.approx(first + 1)


def test_a_stream_that_ends_each_time_is_asked_for_ever_more_seldom() -> None:
    engine, source = stumbling()
    values(source, 0.0)
    for now in range(1, 600):
        engine.flows[-1].ended = True
        values(source, float(now))
    assert 8 <= len(engine.flows) <= 20


def test_a_silent_stream_is_asked_for_again() -> None:
    engine, source = stumbling()
    for now in range(0, 1000, 10):
        values(source, float(now))
    assert len(engine.flows) == 4


def test_what_the_engine_says_in_a_stream_is_a_gap_until_it_goes_on() -> None:
    engine, source = stumbling()
    values(source, 0.0)
    engine.flows[0].ended, engine.flows[0].fault = True, "Error grabbing logs: EOF"
    values(source, 0.5)
    assert source.gap == "logs: Error grabbing logs: EOF"
    values(source, 2.0)
    engine.flows[1].came = LINES[:2]
    assert values(source, 3.0) == [1]
    assert source.gap is None


def test_a_gap_stays_while_no_connection_can_be_made() -> None:
    engine, source = stumbling()
    values(source, 0.0)
    engine.flows[0].ended = True
    engine.fault = UnavailableError("no Docker engine answers")
    for now in (1.0, 2.0, 3.0, 4.0):
        values(source, now)
        assert now == 1.0 or source.gap == "logs: no Docker engine answers"
    engine.fault = None
    values(source, 100.0)
    engine.flows[1].came = LINES[:2]
    assert values(source, 101.0) == [1]
    assert source.gap is None


def test_a_stamp_that_is_no_time_is_a_gap_and_no_place_to_go_on_from() -> None:
    engine, source = stumbling()
    engine.first = [LINES[0], LINES[1], b"Error grabbing loss: 7\n"]
    assert values(source, 0.0) == [0, 1]
    assert source.gap == "logs: lines without a time stamp are left out"
    assert engine.asked == [(pytest.approx(1769860801, abs=0.1), False)]


def test_after_the_clock_was_set_back_a_log_goes_on_from_now() -> None:
    """The newest stamp is from the future, so that nothing is newer for long."""
    engine, source = stumbling()
    ahead = datetime.fromtimestamp(time.time() + 3600, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    engine.first = [f"{ahead} loss: 3\n".encode()]
    assert values(source, 0.0) == [3]
    assert source.gap == "logs: the clock was set back: lines skipped"
    assert [is_new_only for _, is_new_only in engine.asked] == [True]
    engine.flows[0].came = LINES[:1]
    assert values(source, 1.0) == [0]
    assert source.gap is None
