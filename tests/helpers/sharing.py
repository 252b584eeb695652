"""Which tests run at the same time: how a run in parallel is ordered and divided.

The tests of a file run one after another in one process, which shares their fixtures. Files on a
real engine mostly wait: they run beside those that need none. A test that measures time or CPU is
marked `alone`: it runs while no other does, at the end.
"""

from __future__ import annotations

import fcntl
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

File = list[pytest.Item]

ALONE = "alone"
"""The marker of a test that measures time or CPU."""


def group(items: list[pytest.Item]) -> None:
    """Say of each test with which others it stays together, and put the tests in order: files on
    an engine among the others, and what runs alone last."""
    alone: File = []
    files: dict[Path, File] = {}
    for item in items:
        is_alone = item.get_closest_marker(ALONE) is not None
        file = item.path.relative_to(item.config.rootpath)
        item.add_marker(pytest.mark.xdist_group(ALONE if is_alone else str(file)))
        (alone if is_alone else files.setdefault(file, [])).append(item)
    on_engine, others = [], []
    for tests in files.values():
        (on_engine if tests[0].get_closest_marker("engine") else others).append(tests)
    items[:] = [item for tests in _spread(on_engine, others) for item in tests] + alone


def _spread(few: list[File], many: list[File]) -> Iterator[File]:
    """Yield the few among the first two thirds of the many: long files must not come last."""
    step = max(1, len(many) * 2 // (3 * max(1, len(few))))
    for number, tests in enumerate(few):
        yield tests
        yield from many[number * step : (number + 1) * step]
    yield from many[len(few) * step :]


@contextmanager
def turn(item: pytest.Item) -> Iterator[None]:
    """Wait until a test may run beside those that run in the other processes of this run."""
    is_alone = item.get_closest_marker(ALONE) is not None
    place = Path(item.config.option.basetemp).parent  # each process has a folder of its own in it
    with (place / "running").open("w") as running:
        # Whoever waits to run alone holds up those that come later, or its time would never come.
        with (place / "waiting").open("w") as waiting:
            fcntl.flock(waiting, fcntl.LOCK_EX)
            fcntl.flock(running, fcntl.LOCK_EX if is_alone else fcntl.LOCK_SH)
        yield
