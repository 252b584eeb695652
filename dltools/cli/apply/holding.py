"""What a run holds under lease: each plan of a stream renews it, and a watchdog outlives the
run."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dltools.apply.leases import BEAT_S, STILL_S
from dltools.apply.original_settings import timestamp
from dltools.plan.records import Op

if TYPE_CHECKING:
    from dltools.apply.actuator import Actuator
    from dltools.apply.leases import Guard, Lease
    from dltools.plan.records import Plan


class Holding:
    """The lease of what one run changes, and its watchdog."""

    def __init__(self, actuator: Actuator, lease: Lease, guard: Guard) -> None:
        self._actuator = actuator
        self._lease = lease
        self._guard = guard
        self._is_leased = False
        self._is_live = False
        self._awaits_close = False
        self._covered: set[str] | None = set()  # by the plans so far; None: one does not say
        self.is_orphaned = False
        """Whether the stream of plans has broken off."""
        self.has_closed = False
        """Whether a stream of plans has ended in order."""

    def begin(self, plan: Plan) -> None:
        """Put under lease what this plan will change, if it is one of a stream, or good for so
        long; a stream takes over what single plans have left."""
        self._is_leased = self._lease.is_for(plan.lease_s, is_live=plan.is_live)
        if plan.covers is None:
            self._covered = None
        elif self._covered is not None:
            self._covered |= set(plan.covers)
        self._awaits_close = self._is_leased and plan.is_live
        self._actuator.lease(self._is_leased)
        if self._awaits_close and not self._is_live:
            self._actuator.adopt_leases(self._covered)
        self._is_live = plan.is_live
        takes_turns = any(action.op is Op.ROTATE for action in plan.actions)
        if self._lease.is_possible and (takes_turns or (self._is_leased and plan.actions)):
            self._guard.watch(STILL_S if takes_turns else self._lease.length_s)

    @property
    def is_for_good(self) -> bool:
        """Whether what the last plan has set stays until it is undone, unasked."""
        return self._lease.is_possible and not self._is_leased

    def renew(self) -> None:
        """Let the lease count from now on: a plan has been applied."""
        if self._is_leased:
            self._lease.renew()

    def close(self) -> None:
        """Take note that the stream has ended in order."""
        self.has_closed = True
        self._awaits_close = False

    def input_ended(self) -> bool:
        """Take note that the input has ended, and tell whether the stream has broken off."""
        self.is_orphaned = self._awaits_close
        return self.is_orphaned

    def beat(self) -> float | None:
        """Say that the run is alive. Return how long it may wait until it must do so again, or
        until the lease is over (s); None for any time."""
        self._guard.beat(STILL_S if self._actuator.has_turns else self._lease.length_s)
        waits = [BEAT_S] if self._guard.is_watching else []
        if (left := self._lease.seconds_left()) is not None:
            waits.append(left)
        return min(waits, default=None)

    def expire(self) -> float | None:
        """Return the length of the lease if it is over (s), else None. It is over once."""
        if self._lease.seconds_left() != 0:
            return None
        self._lease.end()
        return self._lease.length_s

    def end(self) -> float | None:
        """Let what is under lease stay for its length: the run ends in order. Return that (s),
        None if there is nothing. After a stream has broken off, what could not be undone is left to
        the next run."""
        if self._is_leased and not self.is_orphaned:
            length_s = self._lease.length_s
            if self._actuator.leave_leases(timestamp(length_s), self._covered):
                self._guard.leave()
                return length_s
        self._guard.dismiss()
        return None
