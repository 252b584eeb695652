"""A container of most tests on a real engine, and the ways in which it can start."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import pytest
from conftest import missing
from helpers.containers import STARTS, Containers, ImageError, Job
from helpers.daemon import Daemon, DaemonError
from helpers.examples import repeated
from helpers.tools import Tools, records

every_start = pytest.mark.parametrize("job", STARTS.values(), ids=STARTS.keys(), indirect=True)
"""For a test that tries all ways."""

FEW = repeated(("none", "quota and period", "shares"), tuple(STARTS))
some_starts = pytest.mark.parametrize("job", [STARTS[name] for name in FEW], ids=FEW, indirect=True)
"""For a test beside one that tries all: a few in `make test`."""


@pytest.fixture
def job(request: pytest.FixtureRequest, run: Containers) -> Job:
    """A container that was started with a quota, or as the test says."""
    return run(**getattr(request, "param", STARTS["cpus"]))


@pytest.fixture
def sample(tool: Tools, run: Containers) -> Callable[..., list[dict[str, Any]]]:
    """Sample the test's own containers once: all rows as dl-probe writes them in JSON."""

    def take(*arguments: object) -> list[dict[str, Any]]:
        done = tool("dl-probe", *run.only, "--format", "jsonl", *arguments)
        assert (done.returncode, done.stderr) == (0, b"")
        return records(done.stdout)

    return take


def row_of(rows: list[dict[str, Any]], job: Job) -> dict[str, Any]:
    """Return the row of a container itself."""
    of_job = (row for row in rows if row.get("container_id") == job.id)
    (found,) = (row for row in of_job if row["kind"] == "container")
    return found


def own_engine(hostname: str = "") -> Iterator[Daemon]:
    """Give an engine that the tests may stop, where one can be started."""
    with ExitStack() as stack:
        try:
            daemon = stack.enter_context(Daemon(hostname))
        except (DaemonError, ImageError) as error:
            missing(str(error))
        yield daemon
