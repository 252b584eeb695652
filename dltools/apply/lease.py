"""How long the settings of plans hold when no new plan comes."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable

LEAST_S = 10.0
"""Shortest lease that is chosen without being asked for."""

FIRST_S = 180.0
"""Lease before the second plan, while the interval between plans is not known yet (ours)."""

_INTERVALS = 3
_REMEMBERED = 10


class Lease:
    """The lease that each new plan renews. By default that of a single plan is the one that the
    plan names, that of a stream three intervals between plans: the longest of the last ten, as
    samples are taken early when a container starts."""

    def __init__(
        self, asked_s: float | None = None, clock: Callable[[], float] = time.monotonic
    ) -> None:
        """Begin without a lease; `asked_s` is its length, None for the default, 0 for none."""
        self._asked_s = asked_s
        self._clock = clock
        self._intervals: deque[float] = deque(maxlen=_REMEMBERED)
        self._renewed: float | None = None
        self._planned_s: float | None = None

    @property
    def length_s(self) -> float:
        """Its length now (s)."""
        if self._asked_s is not None:
            return self._asked_s
        if self._planned_s is not None:
            return self._planned_s
        if not self._intervals:
            return FIRST_S
        return max(LEAST_S, _INTERVALS * max(self._intervals))

    @property
    def is_possible(self) -> bool:
        """Whether anything may be under lease."""
        return self._asked_s is None or self._asked_s > 0

    def is_for(self, planned_s: float | None, *, is_live: bool) -> bool:
        """Tell whether a plan is under lease: one of a live stream, one that names its own (s), and
        any if it was asked for."""
        self._planned_s = None if is_live else planned_s
        if self._asked_s is None:
            return is_live or planned_s is not None
        return self.is_possible

    def renew(self) -> None:
        """Count from now on: a plan has come."""
        now = self._clock()
        if self._renewed is not None:
            self._intervals.append(now - self._renewed)
        self._renewed = now

    def end(self) -> None:
        """Count no longer, until the next plan comes."""
        self._renewed = None

    def seconds_left(self) -> float | None:
        """Return how long it still holds, None if none is counted."""
        if self._renewed is None:
            return None
        return max(0.0, self._renewed + self.length_s - self._clock())
