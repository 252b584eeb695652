"""`make trust` runs tests that there are."""

import re
from pathlib import Path

TESTS = Path(__file__).parents[1]


def test_every_test_file_that_shows_a_promise_exists() -> None:
    named = re.findall(r'"([a-z_/]+\.py)"', (TESTS / "trust" / "run.py").read_text())
    assert len(named) > 20
    assert [name for name in named if not (TESTS / name).is_file()] == []
