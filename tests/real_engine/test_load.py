"""The pipe under load for a moment; `make trust` and `make load` hold more for longer."""

import random

import pytest
from conftest import missing
from helpers.containers import ImageError
from helpers.daemon import DaemonError
from helpers.held_load import hold

pytestmark = pytest.mark.slow


def test_containers_come_and_go(engine) -> None:
    """On an engine of its own, which restarts in the middle, beside other tests."""
    del engine
    seed = random.randrange(1 << 32)
    try:
        load = hold(8, 6, seed, judges_ticks=False)
    except (DaemonError, ImageError) as error:
        missing(str(error))
    assert load.broken == [], f"seed {seed}: {load.figures}"
