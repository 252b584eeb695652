"""What several tests of engines need."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from helpers.fake_runtime import FakeRuntime


@pytest.fixture
def runtime(tmp_path: Path) -> Iterator[FakeRuntime]:
    """A runtime that tests script."""
    made = FakeRuntime(tmp_path / "sock")
    yield made
    made.stop()
