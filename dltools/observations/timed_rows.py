"""Rows of one kind and host as plain lists, in order of time."""

from __future__ import annotations

import bisect
from dataclasses import dataclass

from dltools.observations.samples import Rows


@dataclass(slots=True)
class TimedRows:
    """Rows: their times (microseconds), positions in the table (-1: from an earlier table), and
    columns."""

    times: list[int]
    positions: list[int]
    columns: Rows

    def later_than(self, time: int) -> TimedRows:
        """Return the rows after a time."""
        at = bisect.bisect_right(self.times, time)
        if at == 0:
            return self
        columns = {name: column[at:] for name, column in self.columns.items()}
        return TimedRows(self.times[at:], self.positions[at:], columns)

    def with_earlier(self, time: int, columns: Rows) -> TimedRows:
        """Return the rows after those of an earlier table, which are all of one time."""
        many = len(next(iter(columns.values())))
        joined = {name: columns[name] + self.columns[name] for name in self.columns}
        return TimedRows([time] * many + self.times, [-1] * many + self.positions, joined)

    def in_order(self) -> TimedRows:
        """Return the rows in order of time."""
        order = sorted(range(len(self.times)), key=self.times.__getitem__)
        return TimedRows(
            [self.times[i] for i in order],
            [self.positions[i] for i in order],
            {name: [column[i] for i in order] for name, column in self.columns.items()},
        )
