"""Lists of CPUs as the kernel writes them, and numbers of bytes as people read them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dltools.notation.resources import format_bytes, format_cpus, parse_cpus, union_of_cpus


@pytest.mark.parametrize(
    ("text", "cpus"),
    [
        ("0", [0]), ("0-1", [0, 1]), ("0-3,6", [0, 1, 2, 3, 6]), ("4-5,0,2", [0, 2, 4, 5]),
        ("", []), ("a", []), ("3-1", []), ("0-70000", []),
    ],
)  # fmt: skip
def test_a_list_is_read(text, cpus) -> None:
    assert parse_cpus(text) == cpus


@given(st.sets(st.integers(0, 300)))
def test_a_list_comes_back_as_it_was_written(cpus) -> None:
    assert parse_cpus(format_cpus(sorted(cpus))) == sorted(cpus)


def test_the_union_of_lists() -> None:
    assert union_of_cpus("0-1", [None, "2", "1-3"]) == "0-3"
    assert union_of_cpus("0-1", ["0-1", None]) == "0-1"
    assert union_of_cpus(None, [None]) is None


@pytest.mark.parametrize(
    ("count", "text"),
    [
        (0, "0 B"), (999, "999 B"), (1000, "0.977 KiB"),
        (64 << 20, "64 MiB"), (3 << 29, "1.5 GiB"), (5 << 40, "5.12e+03 GiB"),
    ],
)  # fmt: skip
def test_three_digits_and_a_unit(count, text) -> None:
    assert format_bytes(count) == text
