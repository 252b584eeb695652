"""Applying plans to the containers of engines: one, or several at the same time.

Of several engines, one that does not answer holds up no other: its actions fail, and it is
connected to in the background until it is back. An engine alone has nobody to hold up: its
connection waits as long as it may, and then its error ends the run.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Set
from dataclasses import replace
from functools import partial
from operator import call

from dltools.actions.plans import Action, OnResult, Plan, Result, Status
from dltools.apply.engine_actuator import EngineActuator
from dltools.apply.migrate.migrator import Migrator
from dltools.apply.turn_schedule import TurnWait
from dltools.engine.interface import Engine
from dltools.engine.links import Link
from dltools.errors import DltoolsError, RetryError, UnavailableError
from dltools.threads import in_threads

Connector = Callable[[], EngineActuator]
"""Connects to an engine, and raises `DltoolsError` if that fails."""

FIRST_ANSWER_S = 10.0
"""How long to wait for all engines at first, where there are several (ours)."""


class Actuator:
    """Applies plans to the containers of the engines of a run, and undoes what it has changed."""

    def __init__(
        self,
        connectors: Mapping[str, Connector],
        wait_s: float = FIRST_ANSWER_S,
        migrator: Migrator | None = None,
    ) -> None:
        """Connect to all engines, by what to call them, but wait no longer than `wait_s` for any of
        several.

        Raises `UnavailableError` if none answers, `RetryError` if another run writes to each; of an
        engine alone, what its connector raises.
        """
        self.migrator = migrator
        self._is_leased = False
        is_alone = len(connectors) == 1
        self._links = [
            _Link(name, connect, is_alone=is_alone) for name, connect in connectors.items()
        ]
        if is_alone:
            self._links[0].connect()
            return
        for link in self._links:
            link.reconnect()
        until = time.monotonic() + wait_s
        for link in self._links:
            link.wait(until - time.monotonic())
        if not self.engines:
            are_locked = all(isinstance(link.error, RetryError) for link in self._links)
            error = RetryError if are_locked else UnavailableError
            raise error("; ".join(self.unreachable))

    @property
    def engines(self) -> list[Engine]:
        """The engines that answer."""
        return [actuator.engine for _, actuator in self._connected()]

    @property
    def unreachable(self) -> list[str]:
        """Why engines do not answer, one line each."""
        return [link.complaint for link in self._links if link.actuator is None]

    @property
    def changed(self) -> frozenset[str]:
        """Ids of the containers that have been changed."""
        return frozenset().union(*(link.changed for link in self._links))

    @property
    def left_alone(self) -> dict[tuple[str, str], str]:
        """The names of the containers that are left alone, by id and reason."""
        by_engine = [actuator.hands_off.names for _, actuator in self._connected()]
        return {key: name for names in by_engine for key, name in names.items()}

    def apply(self, plan: Plan, on_result: OnResult) -> list[Result]:
        """Apply each action on the engine of its host, whatever becomes of the others."""
        results: list[Result] = []
        lock, stopped = threading.Lock(), threading.Event()

        def report(result: Result) -> None:
            with lock:
                results.append(result)
                on_result(result)
            if stopped.is_set():
                raise _StoppedError

        parts = self._parts(plan)
        taken = {action.id for _, part in parts for action in part.actions}
        for action in plan.actions:
            if action.id not in taken:
                report(self._unreached(action))
        work = [partial(link.apply, part, report, self._is_leased, stopped) for link, part in parts]
        try:
            in_threads(call, work, len(work))
        finally:
            stopped.set()  # those that a signal finds under way end with their current actions
        for link in self._links:
            link.reconnect()
        return sorted(results, key=lambda result: result.id)

    def _parts(self, plan: Plan) -> list[tuple[_Link, Plan]]:
        """Return the engines that answer, each with its part of a plan: the actions of its host.
        One alone gets all: it says of the others that they are for another host."""
        if len(self._links) == 1:
            return [(self._links[0], plan)]
        parts = []
        for link, _ in self._connected():
            own = tuple(action for action in plan.actions if action.host == link.host)
            parts.append((link, replace(plan, actions=own)))
        return parts

    def _unreached(self, action: Action) -> Result:
        if not self.unreachable:
            reason = f"no named engine is on host {action.host}"
            return _not_done(action, Status.SKIPPED, reason)
        lost = [link for link in self._links if link.actuator is None]
        own = [link for link in lost if action.host in (link.host, link.address)] or lost
        why = "; ".join(link.complaint for link in own)
        return _not_done(action, Status.FAILED, f"host {action.host}: {why}")

    def undo(self, only: Collection[str] | None, on_result: OnResult) -> list[Result]:
        """Restore containers: all in the journal, or those with the ids `only`. Then raises
        `UnavailableError` if one of several engines went away meanwhile."""
        results: list[Result] = []
        faults = []
        for link, actuator in self._one_by_one():
            before = results[-1].id if results else 0

            def report(result: Result, before: int = before) -> None:
                results.append(replace(result, id=before + result.id))
                on_result(results[-1])

            try:
                actuator.undo(only, report)
            except UnavailableError as error:
                link.lose(error)
                faults.append(f"{link.address}: {error}")
        if faults:
            raise UnavailableError("; ".join(faults))
        return results

    # Leases

    def lease(self, is_leased: bool) -> None:
        """Set whether changes from now on end with this run."""
        self._is_leased = is_leased

    def adopt_leases(self, covered: Set[str] | None) -> None:
        """Make leases of earlier runs end with this run: those of containers that this run may
        change and, unless `covered` is None, whose ids are in it."""
        for actuator in self._known():
            actuator.leases.adopt(covered)

    def leave_leases(self, until: str, covered: Set[str] | None) -> bool:
        """Keep what this run holds under lease until a time (RFC 3339), also on engines that do not
        answer now; the same for leases of earlier runs, on the containers that `adopt_leases`
        takes. Tell whether anything is under lease."""
        leased = [actuator.leases.leave(until, covered) for actuator in self._known()]
        return any(leased)

    def release(self, on_result: OnResult) -> None:
        """End all turns, and restore what has been changed, until the next plan is applied: on all
        engines at the same time. Raises `UnavailableError` after that, where engines on which
        something was changed do not answer."""
        lock = threading.Lock()

        def report(result: Result) -> None:
            with lock:
                on_result(result)

        work = [partial(link.release, report) for link, _ in self._connected()]
        in_threads(call, work, len(work))
        owing = [link.complaint for link in self._links if link.actuator is None and link.owing]
        if owing:
            raise UnavailableError(f"not undone: {'; '.join(owing)}")

    # Turns

    @property
    def has_turns(self) -> bool:
        """Whether containers take turns. On an engine that has gone away they take none."""
        return any(actuator.rotation.has_turns for _, actuator in self._connected())

    def waits(self) -> Iterator[tuple[str, TurnWait]]:
        """Yield the containers that are paused until their turn, each with its host."""
        for _, actuator in self._connected():
            for turn_wait in actuator.rotation.waits():
                yield actuator.engine.host, turn_wait

    def advance(self, wake: Callable[[], None]) -> None:
        """Do what is due on each engine: attend to people at work on containers, end turns, and
        begin the next. `wake` is called, in another thread, when there is more to do."""
        for link, actuator in self._connected():
            try:
                actuator.hands.attend(wake)
                actuator.rotation.advance()
            except UnavailableError as error:
                link.lose(error)

    def end_turns(self) -> None:
        """Unpause all containers. Raises `UnavailableError` where some stay paused."""
        faults = []
        for _, actuator in self._one_by_one():
            try:
                actuator.rotation.end()
            except UnavailableError as error:
                faults.append(str(error))
        if faults:
            raise UnavailableError("; ".join(faults))

    # Deliveries

    def retry_deliveries(self, on_result: OnResult) -> None:
        """Try again the deliveries that are due."""
        for _, actuator in self._connected():
            if actuator.deliverer is not None:
                actuator.deliverer.retry(on_result)

    def seconds_until_due(self) -> float | None:
        """Return how long until turns, people or deliveries have something to do, None for
        never."""
        due = [actuator.seconds_until_due() for _, actuator in self._connected()]
        return min((seconds for seconds in due if seconds is not None), default=None)

    def _connected(self) -> Iterator[tuple[_Link, EngineActuator]]:
        """Yield the engines that answer."""
        for link in self._links:
            if (actuator := link.actuator) is not None:
                yield link, actuator

    def _one_by_one(self) -> Iterator[tuple[_Link, EngineActuator]]:
        """Yield the engines that answer, each once nothing else is done there: what a signal has
        left under way ends with its action. Such engines come last."""
        for link, _ in sorted(self._connected(), key=lambda pair: pair[0].busy.locked()):
            with link.busy:
                if link.actuator is not None:
                    yield link, link.actuator

    def _known(self) -> Iterator[EngineActuator]:
        """Yield the engines that answer, and those that have answered once."""
        for link in self._links:
            if (actuator := link.actuator or link.lost) is not None:
                yield actuator


def _not_done(action: Action, status: Status, error: str) -> Result:
    """Return the result of an action that no engine has tried, or not to its end."""
    id_, name = action.container_id, action.container_name
    return Result(action.id, status, id_, name, error=error)


class _StoppedError(Exception):
    """A signal has ended the run: no action is begun any more."""


class _Link(Link):
    """One engine: its actuator, None while it does not answer."""

    def __init__(self, name: str, connect: Connector, *, is_alone: bool) -> None:
        super().__init__(name)
        self.host = ""
        self.actuator: EngineActuator | None = None
        self.lost: EngineActuator | None = None  # the last one, of an engine that has gone away
        self.owing: frozenset[str] = frozenset()  # what was changed before that
        self.busy = threading.Lock()  # held by whoever does something on the engine
        self._is_alone = is_alone
        self._connect = connect

    @property
    def complaint(self) -> str:
        """Why it does not answer, with its address."""
        return f"{self.address}: {self.fault}"

    @property
    def changed(self) -> frozenset[str]:
        return self.owing | (self.actuator.changed if self.actuator else frozenset())

    def connect(self) -> None:
        """Connect now. Raises `DltoolsError` if that fails."""
        actuator = self._connect()
        self.host = actuator.engine.host
        self.actuator = actuator

    def reconnect(self) -> None:
        """Begin to connect in the background, unless that is done or under way."""
        if self.actuator is None:
            self.begin(self.connect)

    def lose(self, error: DltoolsError) -> None:
        """Take the engine as gone, with what has been changed there. Raises the error of an engine
        alone: nobody is left to go on with."""
        if self._is_alone:
            raise error
        self.owing, self.error = self.changed, error
        if self.actuator is not None:
            self.actuator.hands.hearing.close()
        self.lost, self.actuator = self.actuator or self.lost, None

    def apply(
        self, plan: Plan, report: OnResult, is_leased: bool, stopped: threading.Event
    ) -> None:
        """Apply a plan, unless the run has been stopped; where the engine goes away, report the
        actions that are left as failed."""
        done: set[int] = set()

        def on_result(result: Result) -> None:
            done.add(result.id)
            report(result)

        with self.busy:
            if self.actuator is None or stopped.is_set():
                return
            self.actuator.lease(is_leased)
            try:
                self.actuator.apply(plan, on_result)
            except DltoolsError as error:
                self.lose(error)
                for action in plan.actions:
                    if action.id not in done:
                        report(_not_done(action, Status.FAILED, str(error)))

    def release(self, on_result: OnResult) -> None:
        """Undo what has been changed, also before the engine went away. It may go away again."""
        with self.busy:
            if self.actuator is None:
                return
            try:
                self.actuator.release(on_result)
                if self.owing:
                    self.actuator.undo(self.owing, on_result)
            except UnavailableError as error:
                self.lose(error)
            else:
                self.owing = frozenset()
