"""Plans applied as they arrive, with turns between them, until they stop or a signal comes.

What they set is under lease: each plan of a stream renews it, and a watchdog outlives the run.
"""

from __future__ import annotations

import math
import os
import select
import signal
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, BinaryIO

from dltools.actions.plan_lines import load_plans
from dltools.actions.plans import AS_PLANNED, Op, Plan, Result
from dltools.apply.history import BY_BREAK, BY_LEASE, BY_RESTORE
from dltools.apply.leases import BEAT_S, STILL_S
from dltools.apply.original_settings import timestamp
from dltools.apply.refusals import NOT_NAMED
from dltools.bounded_reading import InputLines
from dltools.cli.exits import Exit, print_message
from dltools.cli.remarks import Remarks, print_remark
from dltools.errors import DataError, DltoolsError, UnavailableError
from dltools.notation.times import format_seconds

if TYPE_CHECKING:
    from dltools.apply.actuator import Actuator
    from dltools.apply.history import History
    from dltools.apply.leases import Guard, Lease
    from dltools.cli.apply.printing import ResultsPrinter
    from dltools.cli.apply.request import Request
    from dltools.cli.apply.session import Session


class PlanStream:
    """Applies a stream of plans. `failed` are all results that failed, `last` those of the last
    plan."""

    def __init__(
        self, session: Session, printer: ResultsPrinter, leases: LeaseKeeper, request: Request
    ) -> None:
        self._actuator, self._history = session.actuator, session.history
        self._waiting = session.waiting
        self._printer, self._leases = printer, leases
        self._is_dry_run, self._restores = request.is_dry_run, request.restores
        self._hold_s, self._is_verbose = request.hold_s, request.is_verbose
        self.failed: list[Result] = []
        self.last: list[Result] = []
        self._sets_for_good = False
        self._told = _Told()
        self._signals: FirstSignal

    def apply_all(self, stream: BinaryIO, name: str) -> None:
        """Apply all plans, then unpause all containers, and restore them if that is asked for,
        whatever ends the stream."""
        signals = self._signals = FirstSignal()
        try:
            try:
                try:
                    self._apply(stream, name)
                    self._continue_turns()
                finally:
                    signals.ignore()
            finally:  # also after a signal that came just before the line above
                signals.ignore()
                self._end()
        except (SystemExit, KeyboardInterrupt, DataError):
            self._end_leases()
            raise
        finally:
            signals.close()
        self._end_leases()

    def _end_leases(self) -> None:
        """Tell a person how long what is set stays."""
        length_s = self._leases.end()
        if not self._is_verbose and not sys.stderr.isatty():
            return
        if length_s is not None:
            print_remark(
                f"the settings stay for {format_seconds(length_s)} unless another plan comes; "
                "dl-apply --undo ends them now"
            )
        elif self._sets_for_good:
            print_remark(
                "the settings stay until dl-apply --undo; a stream (dl-probe -i 5s | "
                "dl-plan | dl-apply) would follow the jobs, and end them"
            )

    def _end(self) -> None:
        try:
            self._actuator.end_turns()
            self._history.end_turns(how=BY_RESTORE)
        finally:
            if self._restores or self._leases.is_orphaned:
                self._sets_for_good = False
                self._restore()

    def _apply(self, stream: BinaryIO, name: str) -> None:
        lines = self._lines(stream, name)
        self._retry_deliveries()
        self._go_on_with_migrations()
        try:
            for plan in load_plans(lines, name, print_message, self._leases.close):
                self._go_on_with_migrations()
                if plan.is_live:
                    self._printer.go_on()
                self._leases.begin(plan)
                reasons = {action.id: action.reason for action in plan.actions}
                apply = self._history.of_plan(plan, partial(self._actuator.apply, plan))
                self.last = self._printer.show(apply, reasons)
                self._let_go(plan)
                self._leases.renew()
                if self._leases.is_for_good:
                    self._sets_for_good |= any(map(_is_lasting, self.last))
                self._told.left_alone(self._actuator, self._history)
                self.failed += [result for result in self.last if result.status == "failed"]
                self._told.empty(plan)
                if self._is_verbose:
                    print_message(f"plan of {plan.policy} at {plan.at}: {len(self.last)} actions")
        except DataError:
            self._leases.input_ended()
            raise
        if self._leases.input_ended():
            raise DataError(
                f"{name}: the plans broke off: dl-plan or dl-probe has died; "
                "undoing what this run has set"
            )

    def _let_go(self, plan: Plan) -> None:
        """Write down which of the changed containers have ended. Restore those that --name, or the
        plans of a stream, leave out from now on: somebody has renamed them."""
        held = self._history.held.keys()
        for engine in self._actuator.engines if held else ():
            with suppress(UnavailableError):
                self._history.note_running(engine.host, {one.id for one in engine.containers()})
        refused = {result.container_id for result in self.last if result.error == NOT_NAMED}
        covers = held if plan.covers is None or not plan.is_live else set(plan.covers)
        if left := held - (covers - refused):
            self._printer.show(self._history.of_undo(partial(self._actuator.undo, left), BY_LEASE))

    def _lines(self, stream: BinaryIO, name: str) -> Iterator[bytes]:
        """Yield lines as they come; while none comes, go on with the turns."""
        lines = InputLines(name)
        while True:
            self._signals.check()
            self._advance()
            self._end_lease()
            if not self._signals.wait_for(stream, self._seconds_until_due()):
                self._retry_deliveries()
                continue
            data = os.read(stream.fileno(), 1 << 16)
            yield from lines.feed(data)
            if not data:
                yield from lines.end()
                return

    def _seconds_until_due(self) -> float | None:
        """Return how long until a turn or the lease ends, the watchdog is to hear from this run, or
        a delivery is tried again, None for never."""
        due = (self._actuator.seconds_until_due(), self._leases.beat())
        return min((seconds for seconds in due if seconds is not None), default=None)

    def _go_on_with_migrations(self) -> None:
        """Finish or roll back what an earlier run, or an earlier plan, has left half-way."""
        if not self._is_dry_run and (migrator := self._actuator.migrator):
            results = self._printer.show(migrator.go_on)
            self.failed += [result for result in results if result.status == "failed"]

    def _retry_deliveries(self) -> None:
        tried = self._printer.show(self._actuator.retry_deliveries)
        self.failed += [result for result in tried if result.status == "failed"]

    def _advance(self) -> None:
        """Do what is due, tell who waits, and say once which containers are left alone, and why."""
        self._actuator.advance(self._signals.wake)
        self._waiting.update(self._actuator.waits(), self._history.held)
        self._told.left_alone(self._actuator, self._history)

    def _end_lease(self) -> None:
        """Undo what this run has set if no plan has come for too long."""
        if (length_s := self._leases.expire()) is not None:
            print_message(f"no plan for {format_seconds(length_s)}: undoing what this run has set")
            self._printer.show(self._history.of_undo(self._actuator.release, BY_LEASE))

    def _continue_turns(self) -> None:
        """Go on with the turns of a single plan until no container waits for its turn, or the time
        is up. Those of a stream end with it."""
        if self._leases.has_closed:
            return
        ends = math.inf if self._hold_s is None else time.monotonic() + self._hold_s
        while self._actuator.has_turns:
            self._signals.check()
            left = ends - time.monotonic()
            if left <= 0:
                return
            self._signals.wait_for(None, min(self._actuator.seconds_until_due() or 0.0, left))
            self._advance()
            self._retry_deliveries()
            self._leases.beat()

    def _restore(self) -> None:
        """Restore what this run changed. If an error has ended the run, that error is raised."""
        has_error = isinstance(sys.exc_info()[1], DltoolsError)
        how = BY_BREAK if self._leases.is_orphaned else BY_RESTORE
        undo = partial(self._actuator.undo, self._actuator.changed)
        try:
            self._printer.show(self._history.of_undo(undo, how))
        except DltoolsError as error:
            if not has_error:
                raise type(error)(
                    f"{error} Run dl-apply --undo to restore what was changed"
                ) from error


def _is_lasting(result: Result) -> bool:
    """Tell whether a result changed what stays when the run ends, as a turn does not."""
    return result.status == "applied" and not {"group", "turn_s"} & result.after.keys()


class _Told:
    """What people have been told, beside the results."""

    def __init__(self) -> None:
        self._remarks = Remarks()
        self._is_changed = False
        self._left_alone: set[tuple[str, str]] = set()

    def empty(self, plan: Plan) -> None:
        """Say why a plan has no actions, each reason when it changes; in a live stream not that all
        is as planned, which is the rule once something has been set."""
        self._is_changed |= bool(plan.actions)
        if plan.actions:
            self._remarks.tell("")
            return
        reason = plan.nothing or "the plan has no actions"
        if not (self._is_changed and plan.is_live and reason.startswith(AS_PLANNED)):
            self._remarks.tell(f"nothing to do: {reason}")

    def left_alone(self, actuator: Actuator, history: History) -> None:
        """Say once which containers are left alone, and why."""
        for (id_, why), name in actuator.left_alone.items():
            if (id_, why) not in self._left_alone:
                self._left_alone.add((id_, why))
                history.leave(id_)
                print_message(f"{name}: {why}")


class LeaseKeeper:
    """The lease of what one run changes, and its watchdog."""

    def __init__(
        self, actuator: Actuator, lease: Lease, guard: Guard, tried: Lease | None = None
    ) -> None:
        """`tried` is the lease that a dry run would have, which keeps nothing under `lease`."""
        self._actuator = actuator
        self._lease = lease
        self._tried = tried or lease
        self._guard = guard
        self._is_leased = False
        self._is_live = False
        self._awaits_close = False
        self._covered: set[str] | None = set()  # by the plans so far; None: all
        self.is_orphaned = False
        """Whether the stream of plans has broken off."""
        self.has_closed = False
        """Whether a stream of plans has ended in order."""

    def begin(self, plan: Plan) -> None:
        """Put under lease what this plan will change, if it is one of a stream, or good for so
        long; a stream takes over what single plans have left."""
        self._is_leased = self._lease.is_for(plan.lease_s, is_live=plan.is_live)
        if plan.covers is None or plan.is_live:
            self._covered = None
        elif self._covered is not None:
            self._covered |= set(plan.covers)
        self._awaits_close = self._is_leased and plan.is_live
        self._actuator.lease(self._tried.is_for(plan.lease_s, is_live=plan.is_live))
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

    def close(self, _: object = None) -> None:
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


class FirstSignal:
    """Ends the run at the first SIGTERM, SIGINT or SIGHUP, unless whoever started it has ignored
    that signal, as nohup does. Later signals are ignored, so that they do not interrupt what is
    done at the end. Python drops an exception that is raised while it frees an object: so a run
    that waits must `check`, and wait by `wait_for`."""

    def __init__(self) -> None:
        """Handle the signals from now on."""
        self._is_armed = True
        self._number: int | None = None
        self._woken, self._wake = os.pipe()
        os.set_blocking(self._wake, False)
        signal.set_wakeup_fd(self._wake, warn_on_full_buffer=False)
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            if signal.getsignal(number) is not signal.SIG_IGN:
                signal.signal(number, self._handle)

    def wait_for(self, stream: BinaryIO | None, seconds: float | None) -> bool:
        """Wait until a stream can be read, a signal has come, somebody calls `wake`, or so many
        seconds are over (None: for ever). Tell whether the stream can be read."""
        streams = [] if stream is None else [stream.fileno()]
        ready, _, _ = select.select([*streams, self._woken], [], [], seconds)
        if self._woken in ready:
            os.read(self._woken, 1 << 10)
        return bool({*streams} & {*ready})

    def wake(self) -> None:
        """End the wait, from any thread."""
        with suppress(OSError):  # it has ended, or is to end anyway
            os.write(self._wake, b"\0")

    def ignore(self) -> None:
        """Ignore all signals from now on."""
        self._is_armed = False

    def close(self) -> None:
        """Wait for nothing any more."""
        signal.set_wakeup_fd(-1)
        wake, self._wake = self._wake, -1
        os.close(wake)
        os.close(self._woken)

    def _handle(self, number: int, _frame: object) -> None:
        if not self._is_armed:
            return
        self._is_armed = False
        self._number = number
        self.check()

    def check(self) -> None:
        """End the run if a signal has come."""
        if self._number is None:
            return
        if self._number == signal.SIGINT:
            raise KeyboardInterrupt
        raise SystemExit(Exit.TERMINATED)
