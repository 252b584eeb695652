"""Moments, as datetimes, as whole microseconds since 1970 and as text in RFC 3339; and durations as
people write them: 30, 1.5s, 200ms, 10m, 2h, 1d.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from datetime import UTC, datetime, timedelta, tzinfo

MICRO = 1_000_000
"""Microseconds of a second."""

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)


def to_micros(moment: datetime) -> int:
    """Return the microseconds from 1970 to a moment, which has a zone."""
    return (moment - _EPOCH) // _MICROSECOND


def from_micros(micros: int) -> datetime:
    """Return the moment, in UTC, that is so many microseconds after 1970."""
    return _EPOCH + timedelta(microseconds=micros)


def format_time(moment: datetime) -> str:
    """Return a moment as RFC 3339 in UTC with microseconds: 2026-01-31T12:00:00.000000Z."""
    return moment.astimezone(UTC).replace(tzinfo=None).isoformat(timespec="microseconds") + "Z"


def parse_time(text: str, zone: tzinfo | None = None) -> datetime:
    """Return the moment, in UTC, that a text in ISO 8601 names; digits after the microseconds are
    dropped.

    `zone` is that of a text without one. Raises ValueError where both have none and where the text
    is no time, OverflowError at the ends of the calendar.
    """
    moment = datetime.fromisoformat(text)
    if moment.tzinfo is None:
        if zone is None:
            raise ValueError(f"time without a zone: {text}")
        moment = moment.replace(tzinfo=zone)
    return moment.astimezone(UTC)


def time_or_none(text: str | None) -> datetime | None:
    """Return the moment that a text with a zone names, None where it names none."""
    try:
        return parse_time(text or "")
    except ValueError:
        return None


_SECONDS = {"s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
_DURATION = re.compile(r"(\d+(?:\.\d*)?(?:e[+-]?\d+)?|\.\d+)\s*([a-z]+)?", re.IGNORECASE)


def format_seconds(seconds: float) -> str:
    """Return a length of time in seconds, to three digits or to a second, with no power of ten."""
    return f"{seconds:.3g} s" if abs(seconds) < 999.5 else f"{seconds:.0f} s"


def parse_duration(text: str, units: Collection[str] = ("s", "m", "h", "d")) -> float:
    """Return the seconds of a duration: a number with one of the units, or of seconds without.

    The units are among ms, s, m, h and d; their case does not matter. Raises ValueError.
    """
    match = _DURATION.fullmatch(text.strip())
    unit = (match[2] or "s").lower() if match else ""
    if match is None or unit not in units:
        raise ValueError(f"{text!r} is not a duration")
    number = float(match[1])
    return number / 1000 if unit == "ms" else number * _SECONDS[unit]
