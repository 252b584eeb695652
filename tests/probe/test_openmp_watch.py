"""Processes are searched when a container starts and when its threads change, not each sample."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from dltools.engine.cgroup import Cgroup
from dltools.engine.openmp import OpenMP
from dltools.probe import openmp_watch
from dltools.probe.openmp_watch import OpenMPWatch


@pytest.fixture
def searches(monkeypatch: pytest.MonkeyPatch) -> Callable[..., list[str | None]]:
    """Look at a container at times, with numbers of threads; return what was found at each. The
    n-th search finds the runtime n."""

    def look(*looks: tuple[float, int | None]) -> list[str | None]:
        numbers = iter(range(1, 99))
        monkeypatch.setattr(openmp_watch, "openmp_of", lambda _pids: OpenMP(str(next(numbers))))
        watch, group = OpenMPWatch(), Cgroup({}, None)
        found = []
        for now, threads in looks:
            monkeypatch.setattr("time.monotonic", lambda now=now: now)
            found.append(watch.look(group, threads).runtime)
        return found

    return look


Searches = Callable[..., list[str | None]]


def test_a_container_whose_threads_stay_is_searched_once(searches: Searches) -> None:
    assert searches((0, 2), (1, 2), (100, 2), (1000, 2)) == ["1"] * 4


def test_more_threads_than_ever_before_are_searched_at_once(searches: Searches) -> None:
    assert searches((0, 1), (0.5, 2), (1, 4), (1.5, 4)) == ["1", "2", "3", "3"]


def test_threads_that_come_and_go_are_searched_twice_a_minute(searches: Searches) -> None:
    looks = [(second, 4 + second % 2) for second in range(64)]
    assert searches(*looks)[-1] == "4"  # at 0, 1, 32 and 63 s


def test_an_unknown_number_of_threads_is_searched_twice_a_minute(searches: Searches) -> None:
    assert searches((0, None), (1, None), (30, None), (31, None)) == ["1", "1", "2", "2"]
