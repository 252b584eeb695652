"""Which containers have OpenMP threads that spin, and what of their environment is told."""

from collections.abc import Callable
from typing import Any

import pytest
from helpers.containers import Containers, eventually
from helpers.tools import Tools, records

pytestmark = pytest.mark.engine

SECRET = "hunter2"
RUNTIME = (
    "busybox cp /bin/busybox /libgomp.so.1; "
    f"export SECRET={SECRET} OMP_NUM_THREADS={SECRET} OMP_WAIT_POLICY=passive; "
    "(exec -a busybox /libgomp.so.1 sleep 600) & wait"
)
"""A program whose file has the name of the runtime."""


Look = Callable[[], dict[str, Any]]


@pytest.fixture
def look(tool: Tools, run: Containers) -> Look:
    """Return what dl-probe says now of the test's one container, which never is its secret."""

    def take() -> dict[str, Any]:
        done = tool("dl-probe", *run.only, "--format", "jsonl", "--verbose")
        assert done.returncode == 0
        for output in (done.stdout, done.stderr):
            assert SECRET.encode() not in output
            assert b"SECRET" not in output
        (row,) = (row for row in records(done.stdout) if row["kind"] == "container")
        return row

    return take


def test_a_container_without_a_runtime_has_none(run, look) -> None:
    run(f"export SECRET={SECRET} OMP_NUM_THREADS=2; sleep 600 & wait")
    row = eventually(look, lambda row: row["thread_count"] == 2)
    assert [row.get(name) for name in ("openmp_runtime", "openmp_settings", "gap")] == [None] * 3


def test_a_runtime_is_found_with_its_settings_and_nothing_else(run, look) -> None:
    run(RUNTIME)
    row = eventually(look, lambda row: row.get("openmp_runtime"))
    assert row["openmp_runtime"] == "libgomp"
    assert row["openmp_settings"] == "OMP_NUM_THREADS=? OMP_WAIT_POLICY=passive"
