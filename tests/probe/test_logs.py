"""What one log may cost."""

from __future__ import annotations

from typing import Any

import pytest

from dltools.engine.containers import Container
from dltools.probe import logs
from dltools.probe.logs import LogSource
from dltools.probe.progress import Automatic, Extractor, Pattern

LINES = [b"2026-01-31T12:00:0%dZ loss: %d\n" % (number, number) for number in range(3)]


class Logged:
    """An engine whose container has logged three lines."""

    host = "h"
    is_local = True

    def logs(self, container: Container, since: float) -> list[bytes]:
        del container, since
        return LINES


def read(extractor: Extractor) -> tuple[list[float], str | None]:
    container = Container("c" * 64, "job", "", "running", 0, None, False, {}, {}, {})
    engine: Any = Logged()
    source = LogSource(engine, container, extractor)
    return [found.point.value for found in source.read(0.0, 0.0)], source.gap


@pytest.mark.parametrize("extractor", [Pattern(r"loss: (?P<loss>\d)"), Automatic()])
def test_lines_that_take_too_long_are_skipped_and_counted(
    extractor: Extractor, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert read(extractor) == ([0, 1, 2], None)
    monkeypatch.setattr(logs, "_PATIENCE_S", -1)  # used up before the first line
    values, gap = read(extractor)
    assert values == []
    assert gap == "logs: 3 of 3 lines skipped: reading them takes too long"
