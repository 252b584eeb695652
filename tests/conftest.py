"""Fixtures for all tests: the real engine."""

from __future__ import annotations

import os

import pytest

from dltools.errors import DltoolsError
from dltools.probe.engine import Engine


@pytest.fixture(scope="session")
def engine() -> Engine:
    """The Docker engine; tests that need one are skipped where none answers."""
    try:
        return Engine()
    except DltoolsError as error:
        if os.environ.get("DLTOOLS_ENGINE") == "require":
            pytest.fail(f"DLTOOLS_ENGINE=require, but {error}")
        pytest.skip(str(error))
