"""Durations as people write them."""

from __future__ import annotations

import pytest

from dltools.notation.durations import parse_duration


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("30", 30), ("1.5s", 1.5), (" 10 m ", 600), ("2h", 7200), ("1d", 86400), (".5", 0.5)],
)
def test_a_duration_is_a_number_with_a_unit_or_of_seconds(text: str, seconds: float) -> None:
    assert parse_duration(text) == seconds


def test_units_are_those_that_the_reader_allows() -> None:
    assert parse_duration("200 MS", ("s", "ms")) == 0.2
    with pytest.raises(ValueError, match="'200ms' is not a duration"):
        parse_duration("200ms")
    with pytest.raises(ValueError, match="'1h' is not a duration"):
        parse_duration("1h", ("s", "ms"))


@pytest.mark.parametrize("text", ["", "s", "-1", "1,5", "nan", "inf", "1 2", "1s2", "1e", "one"])
def test_anything_else_is_none(text: str) -> None:
    with pytest.raises(ValueError, match="is not a duration"):
        parse_duration(text)
