"""What several tests of engines need."""

from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest
from helpers.cgroup_trees import TREES, Machine
from helpers.fake_runtime import FakeRuntime

unpacked = cache(Machine)


@pytest.fixture(params=TREES)
def machine(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Machine:
    """A recorded machine for tests that write nothing."""
    return unpacked(request.param, tmp_path_factory.getbasetemp() / "machines")


@pytest.fixture
def runtime(tmp_path: Path) -> Iterator[FakeRuntime]:
    """A runtime that tests script."""
    made = FakeRuntime(tmp_path / "sock")
    yield made
    made.stop()
