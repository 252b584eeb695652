"""Lists of CPUs, as the kernel writes them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dltools.notation.cpu_lists import format_cpus, parse_cpus, union_of_cpus


@pytest.mark.parametrize(
    ("text", "cpus"),
    [
        ("0", [0]),
        ("0-1", [0, 1]),
        ("0-3,6", [0, 1, 2, 3, 6]),
        ("4-5,0,2", [0, 2, 4, 5]),
        ("", []),
        ("a", []),
        ("3-1", []),
        ("0-70000", []),
    ],
)
def test_a_list_is_read(text: str, cpus: list[int]) -> None:
    assert parse_cpus(text) == cpus


@given(st.sets(st.integers(0, 300)))
def test_a_list_comes_back_as_it_was_written(cpus: set[int]) -> None:
    assert parse_cpus(format_cpus(sorted(cpus))) == sorted(cpus)


def test_the_union_of_lists() -> None:
    assert union_of_cpus("0-1", [None, "2", "1-3"]) == "0-3"
    assert union_of_cpus("0-1", ["0-1", None]) == "0-1"
    assert union_of_cpus(None, [None]) is None
