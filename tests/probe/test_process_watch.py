"""Processes are searched when a container starts and when its threads change, not each sample."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from dltools.engine.cgroup import Cgroup
from dltools.engine.openmp import OpenMP
from dltools.engine.process_search import Processes
from dltools.probe import process_watch
from dltools.probe.process_watch import ProcessWatch


@pytest.fixture
def searches(monkeypatch: pytest.MonkeyPatch) -> Callable[..., list[str | None]]:
    """Look at a container at times, with numbers of threads; return what was found at each. The
    n-th search finds the runtime n."""

    def look(
        *looks: tuple[float, int | None], is_known: bool = True, finds: tuple[str, ...] = ()
    ) -> list[str | None]:
        numbers = iter(range(1, 99))
        monkeypatch.setattr(
            process_watch, "search", lambda _pids, **_: Processes(OpenMP(str(next(numbers))), finds)
        )
        watch, group = ProcessWatch(), Cgroup({}, None)
        found = []
        for now, threads in looks:
            monkeypatch.setattr("time.monotonic", lambda now=now: now)
            found.append(watch.look(group, threads, is_known=is_known).openmp.runtime)
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


SECONDS = [(float(second), 2) for second in range(100)]


def test_what_nothing_tells_of_is_searched_again_after_as_long(searches: Searches) -> None:
    found = searches(*SECONDS, is_known=False)
    changes = [n for n in range(1, len(found)) if found[n] != found[n - 1]]
    assert changes == [2, 4, 8, 16, 32, 64]


def test_what_a_runtime_tells_of_is_searched_once(searches: Searches) -> None:
    assert set(searches(*SECONDS, is_known=False, finds=("libtorch",))) == {"1"}
