"""When the points of a saved log were reported, from what the log says."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, time, timedelta

from dltools.probe.progress.base import Point
from dltools.probe.progress.log_lines import LogLine
from dltools.probe.progress.stamps import Stamps

_APART = timedelta(seconds=1)
_LATE = timedelta(minutes=10)
"""How late a line may come, as lines of several processes do."""

_MOST_WAITING = 2_048
"""Lines whose time may wait for the next stamp."""

_MOST_AT_FIRST = 32
"""Lines that wait for a stamp in a log that has had none."""

_UNKNOWN = "time unknown: rows are one second apart"
_BETWEEN = "time estimated: between the stamps of the lines before and after"
_BACK = "the log goes back in time here: later times are moved on"


@dataclass(slots=True)
class PointTime:
    """The time of a line's points, once it `is_known`, and what is wrong with it."""

    time: datetime
    gap: str | None = None
    is_known: bool = False


class PointTimes:
    """Tells when each line with points was printed; the times never go back.

    The stamp of the line counts. Without one it is the log's first stamp (or `start`) plus the time
    elapsed that the line says; else the newest stamp, if it came after the point before. Lines
    between two such lines are spread evenly; those after the last one are a second apart. If
    `start` `is_assumed`, stamps without a year wait for one with a year.

    A line that comes a little late gets the time of the one before it. Where a log goes back
    further, as appended runs do, all later times are moved on.
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
        self._ahead = timedelta()
        self._undated: list[PointTime] = []
        self._guessed: list[PointTime] = []  # the year is not known yet

    def note(self, line: LogLine, points: list[Point]) -> PointTime | None:
        """Take note of a line; return the time of its points, None without points."""
        stamp = self._stamps.moment(line.stamp or line.text)
        if stamp is not None:
            self._see(stamp)
        if not points:
            return None
        elapsed = next((p.elapsed_s for p in points if p.elapsed_s is not None), None)
        found = PointTime(self._start)
        try:
            at = stamp or self._implied(elapsed)
            if at is None and self._is_new:
                at = self._newest
            self._is_new = False
            if at is None:
                self._wait(found)
            else:
                self._settle_at(found, at)
        except (OverflowError, ValueError):  # a time elapsed of centuries, or none
            self._wait(found)
        return found

    def pause(self) -> None:
        """Settle what waits in a log without any stamp: its rows may come out while it is read."""
        if not self._has_stamps:
            self._give_up()

    def end(self) -> None:
        """Settle what waits: no stamp comes any more."""
        self._give_up()
        self._know_year(timedelta())

    def _see(self, stamp: datetime) -> None:
        """Take note of a stamp; the first one is when the log began."""
        if self._is_assumed and self._stamps.has_date:
            self._know_year(self._shift_to(stamp))
        if not self._has_stamps:
            self._start, self._has_stamps = stamp, True
        self._newest, self._is_new = stamp, True
        self._had_month = self._stamps.has_month

    def _shift_to(self, stamp: datetime) -> timedelta:
        """Return how far the stamps without a year are from the first one with a year."""
        before = self._newest
        if before is None:
            return timedelta()
        if self._had_month:
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

    def _know_year(self, shift: timedelta) -> None:
        """Settle the times that waited for a year."""
        self._is_assumed = False
        for guess in self._guessed:
            guess.time, guess.is_known = guess.time + shift, True
        self._guessed = []
        for moment in ("_last", "_newest"):
            if (at := getattr(self, moment)) is not None:
                setattr(self, moment, at + shift)
        if self._has_stamps:
            self._start += shift

    def _implied(self, elapsed: float | None) -> datetime | None:
        """Return the start plus the time elapsed, but not before the newest stamp."""
        if elapsed is None:
            return None
        moment = self._start + timedelta(seconds=elapsed)
        return moment if self._newest is None else max(moment, self._newest)

    def _settle_at(self, found: PointTime, stamp: datetime) -> None:
        at = stamp + self._ahead
        if self._last is not None and at < self._last:
            if self._last - at > _LATE:
                self._ahead += self._last - at
                found.gap = _BACK
            at = self._last
        self._spread(at)
        self._settle(found, at)

    def _spread(self, until: datetime) -> None:
        """Settle the lines without a time before one that has one."""
        waiting, self._undated = self._undated, []
        if not waiting:
            return
        since = self._last
        if since is None:
            since = max(until - _APART * (len(waiting) + 1), datetime.min.replace(tzinfo=UTC))
        each = (until - since) / (len(waiting) + 1)
        for number, found in enumerate(waiting, 1):
            found.gap = _BETWEEN
            self._settle(found, since + each * number)

    def _settle(self, found: PointTime, at: datetime) -> None:
        found.time = self._last = at
        if self._is_assumed and self._has_stamps:
            self._guessed.append(found)
            if len(self._guessed) > _MOST_WAITING:
                self._know_year(timedelta())
        else:
            found.is_known = True

    def _wait(self, found: PointTime) -> None:
        self._undated.append(found)
        if len(self._undated) >= (_MOST_WAITING if self._has_stamps else _MOST_AT_FIRST):
            self._give_up()

    def _give_up(self) -> None:
        """Settle the lines without a time a second apart, as no stamp comes."""
        waiting, self._undated = self._undated, []
        for found in waiting:
            found.gap = _UNKNOWN
            if self._last is None:
                at = self._start
            else:
                try:
                    at = self._last + _APART
                except OverflowError:
                    at = self._last
            self._settle(found, at)
