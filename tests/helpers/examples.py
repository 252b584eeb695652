"""How often something is tried: random examples of a property, repetitions of a test."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import TYPE_CHECKING, TypeVar

import hypothesis

if TYPE_CHECKING:
    import pytest

T = TypeVar("T")

_MOST_CASES = 3

_TESTS = os.environ.get("DLTOOLS_TESTS", "")
QUICK, TRUST = _TESTS == "quick", _TESTS == "trust"
"""Whether `make check` or `make trust` runs the tests."""

_PART = 20 if QUICK else 1 if TRUST else 2
"""`make check` tries a twentieth of the examples, `make test` half of them, `make trust` all."""

HYPOTHESIS_EXAMPLES = 100 // _PART
"""Of a property that does not say how many."""


def examples(count: int) -> hypothesis.settings:
    """Try a property on so many examples in `make trust`, and on a part of them else."""
    return hypothesis.settings(max_examples=max(3, count // _PART))


def some_of(values: Iterable[T], few: int) -> list[T]:
    """Return the values that a test is run with: the first few in `make check`, else all."""
    return list(values)[: few if QUICK else None]


def few_of_each(tests: Iterable[pytest.Item]) -> list[pytest.Item]:
    """Return the tests of `make check`: of one with many cases a few, evenly spread."""
    cases: dict[str, list[pytest.Item]] = {}
    for test in tests:
        cases.setdefault(test.nodeid.partition("[")[0], []).append(test)
    return [
        each[number * len(each) // count]
        for each in cases.values()
        for count in (min(_MOST_CASES, len(each)),)
        for number in range(count)
    ]


def repeated(few: T, many: T) -> T:
    """Return how often a test repeats what it tries: many times in `make trust`, a few else."""
    return many if TRUST else few
