"""How often something is tried: random examples of a property, repetitions of a test."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import TypeVar

import hypothesis

T = TypeVar("T")

_TESTS = os.environ.get("DLTOOLS_TESTS", "")
QUICK, TRUST = _TESTS == "quick", _TESTS == "trust"
"""Whether `make check` or `make trust` runs the tests."""

_PART = 10 if QUICK else 1 if TRUST else 2
"""`make check` tries a tenth of the examples, `make test` half of them, `make trust` all."""

HYPOTHESIS_EXAMPLES = 100 // _PART
"""Of a property that does not say how many."""


def examples(count: int) -> hypothesis.settings:
    """Try a property on so many examples in `make trust`, and on a part of them else."""
    return hypothesis.settings(max_examples=max(3, count // _PART))


def some_of(values: Iterable[T], few: int) -> list[T]:
    """Return the values that a test is run with: the first few in `make check`, else all."""
    return list(values)[: few if QUICK else None]


def repeated(few: T, many: T) -> T:
    """Return how often a test repeats what it tries: many times in `make trust`, a few else."""
    return many if TRUST else few
