"""Whose threads spin, by libgomp's and libiomp5's rules."""

import pytest
from helpers.histories import having, history

from dltools.plan.signals.busy_threads import settings_against_spinning, spinning_threads
from dltools.plan.signals.container_history import ContainerHistory


def job(
    runtime: str | None, settings: str | None = None, threads: int | None = 4
) -> ContainerHistory:
    return having(history(), openmp_runtime=runtime, openmp_settings=settings, threads=threads)


@pytest.mark.parametrize(
    ("runtime", "settings", "expected"),
    [
        (None, None, []),
        ("another", None, []),
        ("libgomp", None, ["OMP_WAIT_POLICY=passive"]),
        ("libgomp", "OMP_WAIT_POLICY=active", ["OMP_WAIT_POLICY=passive"]),
        ("libgomp", "OMP_WAIT_POLICY=Passive", []),
        ("libgomp", "KMP_BLOCKTIME=0", ["OMP_WAIT_POLICY=passive"]),  # is for the others
        ("libgomp", "GOMP_SPINCOUNT=0", []),
        ("libgomp", "GOMP_SPINCOUNT=100", []),
        ("libgomp", "GOMP_SPINCOUNT=100k", ["GOMP_SPINCOUNT=0"]),
        ("libiomp5", None, ["OMP_WAIT_POLICY=passive"]),
        ("libomp", "OMP_WAIT_POLICY=passive", []),
        ("libiomp5", "KMP_BLOCKTIME=0ms", []),
        ("libiomp5", "KMP_BLOCKTIME=200 OMP_WAIT_POLICY=passive", ["KMP_BLOCKTIME=0"]),
        ("libgomp+libiomp5", None, ["OMP_WAIT_POLICY=passive"]),
        ("libgomp+libomp", "KMP_BLOCKTIME=1", ["KMP_BLOCKTIME=0", "OMP_WAIT_POLICY=passive"]),
    ],
)
def test_what_stops_the_spinning(runtime, settings, expected) -> None:
    assert settings_against_spinning(job(runtime, settings)) == expected


@pytest.mark.parametrize(
    ("settings", "threads", "expected"),
    [
        (None, 4, 4),
        (None, 1, 0),
        (None, None, 0),
        ("OMP_NUM_THREADS=2", 4, 2),
        ("OMP_NUM_THREADS=8", 4, 4),
        ("OMP_NUM_THREADS=3,2", 4, 3),
        ("OMP_NUM_THREADS=0", 4, 0),
        ("OMP_NUM_THREADS=?", 4, 4),
        ("OMP_WAIT_POLICY=passive", 4, 0),
    ],
)
def test_how_many_threads_may_spin(settings, threads, expected) -> None:
    assert spinning_threads(job("libgomp", settings, threads)) == expected
