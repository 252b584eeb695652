"""The walk of a loss value is the one that ARCHITECTURE.md tells."""

from __future__ import annotations

import pytest
from helpers.walk import BELOW, BESIDE, Step, anew, told, walk

pytestmark = pytest.mark.slow


@pytest.mark.parametrize(("row", "what"), told().rows, ids=lambda part: str(part)[:60])
def test_the_value_passes_each_function_of_the_table(row: Step, what: str) -> None:
    place = walk().place(row.function)
    assert place is not None, f"{row.function} is not called"
    assert place[1] == row
    assert what


def test_the_functions_stand_in_the_order_in_which_the_value_reaches_them() -> None:
    assert [row for row, _ in told().rows] == [row for row, _ in anew().rows]


def test_each_module_that_the_value_passes_is_named() -> None:
    named = {row.file for row, _ in told().rows} | set(told().beside)
    missing = [file for file in walk().modules if file not in named]
    assert missing == [], "write the walk anew: see tests/helpers/walk.py"


def test_no_module_is_named_that_the_value_does_not_pass() -> None:
    assert told().beside, BESIDE
    assert [file for file in told().beside if file not in walk().modules] == []


def test_the_value_reaches_most_functions_itself() -> None:
    """The others, such as the policy, are called with an object that holds it."""
    reached = {step for step in walk().reached if not step.file.startswith(BELOW)}
    rows = [row for row, _ in told().rows]
    assert sum(row in reached for row in rows) > 0.6 * len(rows)
