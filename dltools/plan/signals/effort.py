"""A job's effort: what an epoch or a step takes of it.

Each `ContainerHistory` has an `EpochCost` if labels say how long it trains. All rules are ours.

The effort before the first report includes start-up, so the cost of an epoch is measured between
two reports. The next epochs are taken to cost the median of the newest. The lowest is often wrong:
where a weight changes between two samples, one epoch seems too cheap, and forecasts by it ended
13 % too early (measured live, ten trainings of one thread). On a host where competing costs nothing
an epoch would cost the lowest, since a job that competes wastes CPU time.
"""

from __future__ import annotations

import bisect
from collections.abc import Sequence
from statistics import median_low
from typing import NamedTuple


def value_at(samples: Sequence[tuple[float, float]], time: float) -> float:
    """Return a value at a time, interpolated between samples in order of time. Before the first
    sample it is the first value, after the last the last; without samples it is 0."""
    at = bisect.bisect_left(samples, (time,))
    if at == 0:
        return samples[0][1] if samples else 0.0
    if at == len(samples):
        return samples[-1][1]
    (t0, c0), (t1, c1) = samples[at - 1], samples[at]
    return c0 + (c1 - c0) * (time - t0) / (t1 - t0)


_SHORTEST = 0.5
"""Least effort (CPU seconds) between two reports that are compared: sampling is too coarse for
less."""

_START_UP = 10.0
"""CPU seconds of which the start-up of a job is a small part."""

_NEWEST = 8
"""Number of newest intervals that count: later epochs may take longer."""


class EpochCost(NamedTuple):
    """The cost of an epoch or a step, by intervals between reports.

    Of the newest interval: `position` is its last epoch or step, `work` the CPU seconds up to then,
    `advance` its length in epochs or steps. `needs`: CPU seconds per epoch or step in each of the
    newest intervals.
    """

    position: float
    work: float
    advance: float = 0.0
    needs: tuple[float, ...] = ()

    def after(self, position: float, work: float) -> EpochCost:
        """Return the cost after a report. It is unknown again if training has begun anew."""
        if position < self.position / 2:
            return EpochCost(position, work)
        if position <= self.position or work - self.work < _SHORTEST:
            return self
        advance = position - self.position
        needs = (*self.needs, (work - self.work) / advance)
        return EpochCost(position, work, advance, needs[-_NEWEST:])

    def runs_on(self, attained: float) -> bool:
        """Tell whether a job has had more since its newest report than another would take."""
        longest = max(self.needs, default=0.0) * self.advance
        return attained - self.work > max(_START_UP, 2 * longest)

    def left(
        self, total: float, newest: float, attained: float, *, at_least: bool = False
    ) -> float | None:
        """Return the CPU seconds that are left until the position `total`, None if unknown.

        `newest` is the newest position; `attained` the CPU seconds so far. Those since the newest
        report count as one more interval at most. Before two reports the cost is the mean of all
        that is done, with the start-up, once this is a small part of it. `at_least`: what it would
        take if competing cost nothing.
        """
        if not self.needs and (self.position <= 0 or self.work < _START_UP):
            return None
        needs = self.needs or (self.work / self.position,)
        need = min(needs) if at_least else median_low(needs)
        since = min(max(0.0, attained - self.work), need * (self.advance or self.position))
        return max(0.0, min(need * (total - newest), need * (total - self.position) - since))
