"""The engine of the tests that need none."""

from collections.abc import Iterator

import pytest
from helpers.scripted_engine import ScriptedEngine


@pytest.fixture
def engine() -> Iterator[ScriptedEngine]:
    """An engine inside the test's process, whose event stream ends with the test."""
    made = ScriptedEngine()
    yield made
    made.raw_events.put(None)
