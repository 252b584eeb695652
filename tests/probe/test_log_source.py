"""What one log may cost."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from helpers.located_containers import container

from dltools.engine.interface import Container
from dltools.probe import log_source
from dltools.probe.log_source import LogSource
from dltools.probe.progress import Automatic, Extractor, Pattern

LINES = [b"2026-01-31T12:00:0%dZ loss: %d\n" % (number, number) for number in range(3)]


PIECE = [LINES[0], b"2026-01-31T12:00:01Z " + b"x" * (1 << 20) + b"\n"]


class Logged:
    """An engine whose container has logged three lines."""

    host = "h"
    is_local = True

    def logs(self, container: Container, since: float) -> Iterator[list[bytes]]:
        del container, since
        return iter([LINES[:1], LINES[1:], []])


def read(extractor: Extractor) -> tuple[list[float], str | None]:
    followed = container()
    engine: Any = Logged()
    source = LogSource(engine, followed, extractor)
    return [found.point.value for found in source.read(0.0, 0.0)], source.gap


@pytest.mark.parametrize("extractor", [Pattern(r"loss: (?P<loss>\d)"), Automatic()])
def test_lines_that_take_too_long_are_skipped_and_counted(
    extractor: Extractor, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert read(extractor) == ([0, 1, 2], None)
    monkeypatch.setattr(log_source, "_PATIENCE_S", -1)  # used up before the first line
    values, gap = read(extractor)
    assert values == []
    assert gap == "logs: 3 of 3 lines skipped: reading them takes too long"


class Endless(Logged):
    """An engine whose container logs without end."""

    def __init__(self) -> None:
        self.pieces, self.followed, self.flow = 0, [], Full()

    def logs(self, container: Container, since: float) -> Iterator[list[bytes]]:
        del container, since
        while True:
            self.pieces += 1
            yield PIECE

    def follow(self, container: Container, since: float, *, is_new_only: bool = False) -> Full:
        del container, since
        self.followed.append(is_new_only)
        return self.flow


class Full:
    """A stream with as much as is kept in memory."""

    ended = False
    is_behind = True

    def take(self) -> list[bytes]:
        return [b"2026-01-31T12:00:05Z loss: 0.5\n", b"2026-01-31T12:00:05Z cut o"]

    def close(self) -> None:
        pass


CONTAINER = container()


def test_of_a_log_without_end_the_first_part_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(log_source, "MOST_BYTES", 8 << 20)
    engine: Any = Endless()
    source = LogSource(engine, CONTAINER, Pattern(r"loss: (?P<loss>\d)"))
    assert {found.point.value for found in source.read(0.0, 0.0)} == {0}
    assert engine.pieces == 8
    assert source.gap == "logs: more than 8 MiB: see --since"


def test_a_stream_that_outruns_its_reader_goes_on_from_now() -> None:
    engine: Any = Endless()
    source = LogSource(engine, CONTAINER, Pattern(r"loss: (?P<loss>\S+)"), is_followed=True)
    engine.logs = lambda *_: iter([LINES])
    assert len(source.read(0.0, 0.0)) == 3
    assert [found.point.value for found in source.read(0.0, 0.0)] == [0.5]
    assert source.gap == "logs: more than 8 MiB between two samples: lines skipped"
    assert engine.followed == [False, True]
