"""Moments as microseconds and as text, and durations as people write them."""

from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dltools.notation.times import (
    format_seconds,
    format_time,
    from_micros,
    parse_duration,
    parse_time,
    to_micros,
)

moments = st.datetimes(timezones=st.just(UTC))


@given(moments)
def test_microseconds_and_texts_come_back_as_the_moment(moment) -> None:
    assert from_micros(to_micros(moment)) == moment
    assert parse_time(format_time(moment)) == moment


def test_microseconds_are_counted_from_1970() -> None:
    assert to_micros(datetime(1970, 1, 2, tzinfo=UTC)) == 86_400_000_000
    assert to_micros(datetime(1969, 12, 31, 23, 59, 59, 999_999, tzinfo=UTC)) == -1


def test_a_time_is_written_in_utc_with_all_its_digits() -> None:
    noon = datetime(2026, 1, 31, 12, tzinfo=timezone(timedelta(hours=2)))
    assert format_time(noon) == "2026-01-31T10:00:00.000000Z"
    assert format_time(datetime(1, 1, 1, tzinfo=UTC)) == "0001-01-01T00:00:00.000000Z"


def test_a_time_without_a_zone_needs_one() -> None:
    assert parse_time("2026-01-31T12:00", UTC) == datetime(2026, 1, 31, 12, tzinfo=UTC)
    assert parse_time("2026-01-31T12:00+02:00", UTC) == datetime(2026, 1, 31, 10, tzinfo=UTC)
    with pytest.raises(ValueError, match="time without a zone: 2026-01-31T12:00"):
        parse_time("2026-01-31T12:00")


def test_nanoseconds_are_dropped() -> None:
    assert parse_time("2026-01-31T12:00:00.123456789Z").microsecond == 123_456


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("30", 30), ("1.5s", 1.5), (" 10 m ", 600), ("2h", 7200), ("1d", 86400), (".5", 0.5)],
)
def test_a_duration_is_a_number_with_a_unit_or_of_seconds(text, seconds) -> None:
    assert parse_duration(text) == seconds


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0.1234, "0.123 s"), (12.345, "12.3 s"),
        (999.4, "999 s"), (999.7, "1000 s"), (7963.2, "7963 s"),
    ],
)  # fmt: skip
def test_a_length_of_time_is_written_without_a_power_of_ten(seconds, text) -> None:
    assert format_seconds(seconds) == text


def test_units_are_those_that_the_reader_allows() -> None:
    assert parse_duration("200 MS", ("s", "ms")) == 0.2
    with pytest.raises(ValueError, match="'200ms' is not a duration"):
        parse_duration("200ms")
    with pytest.raises(ValueError, match="'1h' is not a duration"):
        parse_duration("1h", ("s", "ms"))


@pytest.mark.parametrize("text", ["", "s", "-1", "1,5", "nan", "inf", "1 2", "1s2", "1e", "one"])
def test_anything_else_is_none(text) -> None:
    with pytest.raises(ValueError, match="is not a duration"):
        parse_duration(text)
