"""Which tests run at the same time: how a run in parallel is ordered and divided.

With `--dist loadfile` the tests of a file run one after another in one process, which shares their
fixtures. Files on a real engine mostly wait: they run beside those that need none. A test that
measures time or CPU is marked `alone`: it runs while no other does, at the end.
"""

import fcntl
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

File = list[pytest.Item]

ALONE = "alone"
"""The marker of a test that measures time or CPU."""


def in_order(items: list[pytest.Item]) -> list[pytest.Item]:
    """Return the tests with the files on an engine spread among the others, and those with tests
    that run alone last."""
    files: dict[Path, File] = {}
    for item in items:
        files.setdefault(item.path, []).append(item)
    last, on_engine, others = [], [], []
    for tests in files.values():
        if any(item.get_closest_marker(ALONE) for item in tests):
            last.append(tests)
        elif tests[0].get_closest_marker("engine"):
            on_engine.append(tests)
        else:
            others.append(tests)
    others.reverse()  # the longest of them are those of the simulator and of whole tools
    others.sort(key=_slow, reverse=True)  # a long file that comes last is waited for
    return [item for tests in (*_spread(on_engine, others), *last) for item in tests]


def _slow(tests: File) -> int:
    """Return how many tests of a file are slow."""
    return sum(item.get_closest_marker("slow") is not None for item in tests)


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
