"""Finds the times of the points in a saved log; called by `saved_logs`.

`Stamps` reads the time stamps in lines: ISO, Python's logging, glog, MLPerf, syslog, access logs,
US dates.
"""

from __future__ import annotations

import calendar
import re
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta, timezone, tzinfo

from dltools.probe.progress.base import Point, Regex
from dltools.probe.progress.clean_lines import LogLine

_APART = timedelta(seconds=1)
_LATE = timedelta(minutes=10)
"""How late a line may come, also over midnight, because several processes write the log."""

_MOST_WAITING = 2_048
"""Most lines whose times wait for the next stamp."""

_MOST_AT_FIRST = 32
"""Most lines that wait for a stamp in a log that has had none."""

_UNKNOWN = "time unknown: rows are one second apart"
_BETWEEN = "time estimated: between the stamps of the lines before and after"
_BACK = "the log goes back in time here: later times are moved on"


@dataclass(slots=True)
class PointTime:
    """The time of a line's points, valid once it `is_known`; `gap` says how it was estimated."""

    time: datetime
    gap: str | None = None
    is_known: bool = False


class PointTimes:
    """Finds when each line with points was printed. The times never go back.

    The time is the line's own stamp; else the log's first stamp (or `start`) plus the time elapsed
    that the line names; else the newest stamp, if it came after the last point. Lines between two
    lines with times are spread evenly; lines after the last one are a second apart. If `start`
    `is_assumed`, stamps without a year wait for one with a year.

    A line that comes a little late gets the time of the line before. If the log goes back further,
    because runs were appended, all later times are moved forward.
    """

    def __init__(self, start: datetime, *, is_assumed: bool) -> None:
        self._stamps = Stamps(start)
        self._start = start
        self._is_assumed = is_assumed  # and no stamp with a year has come
        self._has_stamps = False
        self._last: datetime | None = None  # of a line with points
        self._newest: datetime | None = None  # stamp
        self._is_new = False  # it came after the last line with points
        self._had_month = False  # and not only a time of day
        self._is_elapsed = False  # the time of the newest line is one elapsed
        self._ahead = timedelta()
        self._undated: list[PointTime] = []
        self._guessed: list[PointTime] = []  # the year is not known yet

    def note(self, line: LogLine, points: list[Point]) -> PointTime | None:
        """Read a line; return the time of its points, None without points."""
        stamp = self._stamps.moment(line.stamp or line.text)
        if stamp is not None:
            self._see(stamp)
        if not points:
            return None
        elapsed = next((p.elapsed_s for p in points if p.elapsed_s is not None), None)
        time_ = PointTime(self._start)
        try:
            at = stamp or self._implied(elapsed)
            self._is_elapsed = elapsed is not None
            if at is None and self._is_new:
                at = self._newest
            self._is_new = False
            if at is None:
                self._wait(time_)
            else:
                self._settle_at(time_, at)
        except (OverflowError, ValueError):  # a time elapsed of centuries, or none
            self._wait(time_)
        return time_

    def pause(self) -> None:
        """Set the waiting times of a log without any stamp, so that its rows can be printed while
        it is read."""
        if not self._has_stamps:
            self._give_up()
            self._tell()

    def end(self) -> None:
        """Set all waiting times, because no stamp follows."""
        self._give_up()
        self._know_year(timedelta())

    def _see(self, stamp: datetime) -> None:
        """Read a stamp. The first one is the begin of the log."""
        is_first = not self._has_stamps
        if self._is_assumed and self._stamps.has_date:
            if is_first and self._guessed and self._last:  # times elapsed, before any stamp
                shift, is_first = stamp - self._last, False
                self._start += shift
                self._know_year(shift)
            else:
                self._know_year(_shift(self._newest, stamp, self._had_month))
        if is_first:
            self._start = stamp
        self._has_stamps = True
        self._newest, self._is_new = stamp, True
        self._had_month = self._stamps.has_month

    def _know_year(self, shift: timedelta) -> None:
        """Set the times that waited for a year."""
        self._is_assumed = False
        self._tell(shift)
        for moment in ("_last", "_newest"):
            if (at := getattr(self, moment)) is not None:
                setattr(self, moment, at + shift)
        if self._has_stamps:
            self._start += shift

    def _tell(self, shift: timedelta = timedelta()) -> None:
        """Set the times that waited for a stamp with a year."""
        for guess in self._guessed:
            guess.time, guess.is_known = guess.time + shift, True
        self._guessed = []

    def _implied(self, elapsed: float | None) -> datetime | None:
        """Return the start plus the time elapsed, but not before the newest stamp."""
        if elapsed is None:
            return None
        moment = self._start + timedelta(seconds=elapsed)
        return moment if self._newest is None else max(moment, self._newest)

    def _settle_at(self, time_: PointTime, stamp: datetime) -> None:
        at = stamp + self._ahead
        if self._last is not None and at < self._last:
            if self._last - at > _LATE:
                self._ahead += self._last - at
                time_.gap = _BACK
            at = self._last
        self._spread(at)
        self._settle(time_, at)

    def _spread(self, until: datetime) -> None:
        """Set the times of the lines before one that has a time."""
        waiting, self._undated = self._undated, []
        if not waiting:
            return
        since = self._last
        if since is None:
            since = max(until - _APART * (len(waiting) + 1), datetime.min.replace(tzinfo=UTC))
        each = (until - since) / (len(waiting) + 1)
        for number, time_ in enumerate(waiting, 1):
            time_.gap = _BETWEEN
            self._settle(time_, since + each * number)

    def _settle(self, time_: PointTime, at: datetime) -> None:
        time_.time = self._last = at
        if self._is_assumed and (self._has_stamps or self._is_elapsed):
            self._guessed.append(time_)
            if len(self._guessed) > _MOST_WAITING:
                self._know_year(timedelta())
        else:
            time_.is_known = True

    def _wait(self, time_: PointTime) -> None:
        self._undated.append(time_)
        if len(self._undated) >= (_MOST_WAITING if self._has_stamps else _MOST_AT_FIRST):
            self._give_up()

    def _give_up(self) -> None:
        """Set the times of the lines without a stamp a second apart."""
        waiting, self._undated = self._undated, []
        for time_ in waiting:
            time_.gap = _UNKNOWN
            at = self._last or self._start
            if self._last is not None:
                with suppress(OverflowError):
                    at += _APART
            self._settle(time_, at)


def _shift(before: datetime | None, stamp: datetime, has_month: bool) -> timedelta:
    """Return the offset of stamps without a year, of which `before` is the newest, to the first
    stamp with a year. `has_month`: whether `before` had a month."""
    if before is None:
        return timedelta()
    if has_month:
        try:
            moved = before.replace(year=stamp.year)
        except ValueError:  # 29 February
            moved = before + timedelta(days=365 * (stamp.year - before.year))
        if moved - stamp > timedelta(days=1):
            moved -= timedelta(days=365)
    else:
        clock: time = before.timetz()
        moved = datetime.combine(stamp.date(), clock)
        if moved - stamp > _LATE:
            moved -= timedelta(days=1)
    return moved - before


_LOOKED_AT = 80
"""Characters at the start of a line that may hold a stamp."""

_MONTHS = {name.lower(): number for number, name in enumerate(calendar.month_abbr) if name}

_FRACTION = r"(?:[.,](?P<f>\d{1,9}))?"
_HALF = r"(?P<p> ?[AaPp]\.?[Mm]\b)?"
_CLOCK = rf"(?P<H>\d\d):(?P<M>\d\d):(?P<S>\d\d){_FRACTION}{_HALF}"
_LOOSE_CLOCK = rf"(?P<H>\d\d?):(?P<M>\d\d)(?::(?P<S>\d\d){_FRACTION})?{_HALF}"

_HOURS = {
    "Z": 0, "UTC": 0, "GMT": 0, "WET": 0, "EST": -5, "EDT": -4, "CST": -6, "CDT": -5, "MST": -7,
    "MDT": -6, "PST": -8, "PDT": -7, "AKST": -9, "AKDT": -8, "HST": -10, "BST": 1, "CET": 1,
    "CEST": 2, "EET": 2, "EEST": 3, "MSK": 3, "IST": 5.5, "SGT": 8, "HKT": 8, "JST": 9, "KST": 9,
    "AEST": 10, "AEDT": 11,
}  # fmt: skip
"""Hours from UTC. Of names with two meanings the one that logs of trainings mostly mean."""

_NAMES = "|".join(sorted(_HOURS, key=len, reverse=True))
_ZONE = rf"(?P<z> ?(?:{_NAMES})(?!\w)| ?[+-]\d\d:?\d\d|[+-]\d\d(?!\d))?"


def _ascii(expression: str) -> Regex:
    """Return an expression whose digits are those of ASCII alone."""
    return Regex(expression, re.ASCII)


_FORMS = (
    # 2022-04-08 18:48:05,372   2026-01-31T12:00:00.123456789Z   2021/03/08 12:31:36 +0100
    _ascii(
        r"(?<!\d)(?P<Y>(?:19|20)\d\d)(?P<sep>[-/.])(?P<m>\d\d?)(?P=sep)(?P<d>\d\d?)(?:[T_,]|,? )"
        rf"{_LOOSE_CLOCK}(?![\d:]){_ZONE}"
    ),
    # 01/02/2026 03:04 PM   01/02/2026 15:04:05 - INFO
    _ascii(
        rf"(?<![\d/])(?P<m>\d\d?)/(?P<d>\d\d?)/(?P<Y>20\d\d)(?:T|,? )"
        rf"{_LOOSE_CLOCK}(?![\d:]){_ZONE}"
    ),
    # Fri Jan  2 15:04:05 PST 2026   Jan 2, 2026 3:04:05 PM
    _ascii(
        rf"(?<!\w)(?P<b>[A-Z][a-z]{{2}}) {{1,2}}(?P<d>\d\d?) {_CLOCK}"
        rf"(?: (?P<z>{_NAMES}))? (?P<Y>20\d\d)"
    ),
    _ascii(
        rf"(?<!\w)(?P<b>[A-Z][a-z]{{2}}) {{1,2}}(?P<d>\d\d?), (?P<Y>20\d\d),? "
        rf"{_LOOSE_CLOCK}(?![\d:]){_ZONE}"
    ),
    # 20260102 15:04:05
    _ascii(rf"(?<!\d)(?P<Y>20\d\d)(?P<m>[01]\d)(?P<d>[0-3]\d)[ T_-]{_CLOCK}{_ZONE}"),
    # I0411 08:54:34.428942
    _ascii(rf"^\W{{0,3}}[IWEF](?P<m>\d\d)(?P<d>\d\d) {_CLOCK}"),
    # [06/13/19 00:41:25]
    _ascii(rf"(?<!\d)(?P<m>\d\d)/(?P<d>\d\d)/(?P<y>\d\d) {_CLOCK}"),
    # [11/09 14:34:10 d2.utils.events]   11/08 15:58:16 - mmengine
    _ascii(rf"(?<![\d/])(?P<m>\d\d)/(?P<d>\d\d) {_CLOCK}"),
    # 04-07 09:02:50,
    _ascii(rf"^\W{{0,2}}(?P<m>[01]\d)-(?P<d>[0-3]\d) {_CLOCK}(?![\d:])"),
    # [21/Nov/2026:01:30:37 +0000]
    _ascii(rf"(?P<d>\d\d)/(?P<b>[A-Z][a-z]{{2}})/(?P<Y>\d{{4}}):{_CLOCK}{_ZONE}"),
    # Nov 21 01:30:37
    _ascii(rf"^\W{{0,2}}(?:<\d+>)?(?P<b>[A-Z][a-z]{{2}}) +(?P<d>\d{{1,2}}) {_CLOCK}"),
    # :::MLL 1558421081.652   :::MLPv0.5.0 resnet 1541640000.123   1560881849.843 at the start
    _ascii(r"(?:^|:::ML\w*(?:\.\d+)* (?:\w+ )?)(?P<s>1\d{9})(?:\.(?P<f>\d{1,9}))?(?![\d.])"),
    # :::MLLOG {"namespace": "", "time_ms": 1560881849843,
    _ascii(r'(?:^|"time_ms": ?)(?P<ms>1\d{12})(?!\d)'),
    # [12:00:01]   12:00:01.5 step ...
    _ascii(rf"^\W?{_CLOCK}(?![\d:])"),
)

_DAY = timedelta(days=1)
_HALF_A_DAY = _DAY / 2

_Fields = dict[str, str | None]


class Stamps:
    """Reads the stamps of one log, in any of the forms, each line anew.

    `start` completes stamps without a year or a date. The first is the nearest such time that is
    not more than a day before `start`; the later ones go on from there over midnight and New Year.
    A line that comes late over either, as lines of several processes do, stays in the old day or
    year. Stamps without a zone are in UTC. `has_date` says that a stamp with day and year has
    come, `has_month` that the last one had at least a month.
    """

    def __init__(self, start: datetime) -> None:
        self._newest = start.astimezone(UTC)
        self._form = _FORMS[0]
        self.has_date = self.has_month = False

    def moment(self, line: str) -> datetime | None:
        """Return the line's stamp in UTC, None if it has none, or one that no calendar has."""
        head = line[:_LOOKED_AT]
        if not _CLOCK_OR_COUNT.search(head):
            return None
        if (match := self._form.search(head)) and (stamp := self._read(match)):
            return stamp
        for form in _FORMS:
            if (match := form.search(head)) and (stamp := self._read(match)):
                self._form = form
                return stamp
        return None

    def _read(self, match: re.Match[str]) -> datetime | None:
        fields: _Fields = match.groupdict()
        try:
            if seconds := fields.get("s"):
                stamp = datetime.fromtimestamp(int(seconds), UTC)
                return self._whole(stamp + timedelta(microseconds=_micros(fields.get("f"))))
            if millis := fields.get("ms"):
                return self._whole(
                    datetime.fromtimestamp(0, UTC) + timedelta(milliseconds=int(millis))
                )
            return self._dated(fields)
        except (ValueError, OverflowError):
            return None

    def _whole(self, stamp: datetime) -> datetime:
        """Take note of a stamp with day and year: those without go on from there."""
        self._newest = max(self._newest, stamp) if self.has_date else stamp
        self.has_date = self.has_month = True
        return stamp

    def _dated(self, fields: _Fields) -> datetime:
        hour, minute, second = (int(fields.get(part) or 0) for part in "HMS")
        if half := (fields.get("p") or "").strip().lower():
            hour = hour % 12 + (12 if half[0] == "p" else 0)
        clock = time(hour, minute, second, _micros(fields.get("f")))
        month = _month(fields)
        if month is None:
            self.has_month = False
            return self._next(self._in_day(clock))
        day = int(fields["d"] or 0)
        year = fields.get("Y") or (f"20{fields['y']}" if fields.get("y") else None)
        if year is None:
            self.has_month = True
            return self._next(self._in_year(month, day, clock))
        if month > 12:
            month, day = day, month
        zone = _zone(fields.get("z"))
        return self._whole(
            datetime.combine(date(int(year), month, day), clock, zone).astimezone(UTC)
        )

    def _in_day(self, clock: time) -> datetime:
        """Return a time of day on the newest stamp's day, or a neighbour of it over midnight."""
        stamp = datetime.combine(self._newest, clock, UTC)
        ahead = stamp - self._newest
        if ahead < -_HALF_A_DAY:
            return stamp + _DAY
        return stamp - _DAY if ahead > _DAY - _LATE else stamp

    def _in_year(self, month: int, day: int, clock: time) -> datetime:
        """Return the first such moment that is not more than a day before the newest stamp."""
        earliest = self._newest - _DAY
        if (month, day) < (earliest.month, earliest.day):
            return datetime.combine(date(earliest.year + 1, month, day), clock, UTC)
        stamp = datetime.combine(date(earliest.year, month, day), clock, UTC)
        return stamp if stamp >= earliest else stamp.replace(year=earliest.year + 1)

    def _next(self, stamp: datetime) -> datetime:
        self._newest = max(self._newest, stamp)
        return stamp


_CLOCK_OR_COUNT = re.compile(
    r"[ T_,-]\d\d?:\d\d|^\W?\d\d:\d\d:\d\d|\d{4}:\d\d:\d\d:\d\d|1\d{9}", re.ASCII
)
"""What all forms have: a clock behind a date or at the start, or seconds since 1970. Most lines of
bars have none; to try all forms on them takes longer than to read them."""


def _zone(text: str | None) -> tzinfo:
    """Return the zone that a stamp names, UTC without one."""
    name = (text or "UTC").strip()
    if name in _HOURS:
        return timezone(timedelta(hours=_HOURS[name]))
    return datetime.fromisoformat(f"2000-01-01T00:00:00{name}").tzinfo or UTC


def _month(fields: _Fields) -> int | None:
    if name := fields.get("b"):
        number = _MONTHS.get(name.lower())
        if number is None:
            raise ValueError(name)
        return number
    return int(fields["m"] or 0) if fields.get("m") else None


def _micros(fraction: str | None) -> int:
    return int((fraction or "0").ljust(6, "0")[:6])
