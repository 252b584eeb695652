"""Moments: as datetimes, as whole microseconds since 1970, and as text in RFC 3339."""

from __future__ import annotations

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
