"""Applying plans to the containers of several engines, at the same time.

An engine that does not answer holds up no other: its actions fail, and it is connected to in the
background until it is back.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

from dltools.apply.deliver.deliverer import Deliverer
from dltools.apply.deliver.deliverers import Deliverers
from dltools.apply.engine_actuator import Actuator, OnResult
from dltools.apply.migrate.migrator import Migrator
from dltools.engine.interface import Engine
from dltools.errors import DltoolsError, RetryError, UnavailableError
from dltools.plan.records import Action, Plan, Result, Status

Connector = Callable[[], Actuator]
"""Connects to an engine, and raises `DltoolsError` if that fails."""

FIRST_ANSWER_S = 10.0
"""How long to wait for all engines at first (ours)."""


class Actuators:
    """The actuators of several engines, used as one."""

    def __init__(
        self,
        connectors: Mapping[str, Connector],
        wait_s: float = FIRST_ANSWER_S,
        migrator: Migrator | None = None,
    ) -> None:
        """Connect to all engines, by what to call them, but wait no longer than `wait_s` for any.

        Raises `UnavailableError` if none answers, `RetryError` if another run writes to each.
        """
        self._links = [_Link(name, connect) for name, connect in connectors.items()]
        until = time.monotonic() + wait_s
        for link in self._links:
            link.wait(until - time.monotonic())
        if not self._connected():
            if all(link.is_held for link in self._links):
                raise RetryError("; ".join(self.unreachable))
            raise UnavailableError("; ".join(self.unreachable))
        self.rotation = _Rotations(self._links)
        self.deliverer = Deliverers(self._each_deliverer)
        self.migrator = migrator
        self._is_leased = False

    @property
    def changed(self) -> frozenset[str]:
        """Ids of the containers that have been changed."""
        return frozenset().union(*(link.changed for link in self._links))

    @property
    def foreign(self) -> dict[str, str]:
        """Ids and names of the containers that were left alone: somebody else has changed them."""
        found: dict[str, str] = {}
        for link in self._links:
            found |= link.actuator.foreign if link.actuator else {}
        return found

    @property
    def paused_elsewhere(self) -> dict[str, str]:
        """Ids and names of the containers of plans that somebody else has paused."""
        found: dict[str, str] = {}
        for link in self._links:
            found |= link.actuator.paused_elsewhere if link.actuator else {}
        return found

    def lease(self, is_leased: bool) -> None:
        """Say whether what is changed from now on is to end with this run."""
        self._is_leased = is_leased

    def adopt_leases(self, covered: Set[str] | None) -> None:
        """Let the leases that runs before have left behind end with this run."""
        for actuator in self._known():
            actuator.adopt_leases(covered)

    def leave_leases(self, until: str, covered: Set[str] | None) -> bool:
        """Let what is under lease stay until a time (RFC 3339), also on engines that do not
        answer now, and tell whether that is anything."""
        found = [actuator.leave_leases(until, covered) for actuator in self._known()]
        return any(found)

    def _known(self) -> list[Actuator]:
        found = (link.actuator or link.lost for link in self._links)
        return [actuator for actuator in found if actuator is not None]

    def release(self, on_result: OnResult) -> None:
        """End all turns, and restore what has been changed, until the next plan is applied: on all
        engines at the same time. Raises `UnavailableError` after that, where engines on which
        something was changed do not answer."""
        lock = threading.Lock()

        def report(result: Result) -> None:
            with lock:
                on_result(result)

        connected = list(self._connected().values())
        with ThreadPoolExecutor(len(connected) or 1) as pool:
            begun = [pool.submit(link.release, report) for link in connected]
        for one in begun:
            one.result()  # raises what is no engine's fault, such as a full disk
        if faults := [
            f"{link.name}: {link.fault}"
            for link in self._links
            if link.actuator is None and link.owing
        ]:
            raise UnavailableError(f"not undone: {'; '.join(faults)}")

    @property
    def engines(self) -> list[Engine]:
        """The engines that answer."""
        return [link.actuator.engine for link in self._links if link.actuator is not None]

    @property
    def unreachable(self) -> list[str]:
        """Why engines do not answer, one line each."""
        return [f"{link.name}: {link.fault}" for link in self._links if link.actuator is None]

    def apply(self, plan: Plan, on_result: OnResult) -> list[Result]:
        """Apply each action on the engine of its host, whatever becomes of the others."""
        connected, lock = self._connected(), threading.Lock()
        results: list[Result] = []

        def report(result: Result) -> None:
            with lock:
                results.append(result)
                on_result(result)

        for link in connected.values():
            assert link.actuator is not None
            link.actuator.lease(self._is_leased)
        for action in plan.actions:
            if action.host not in connected:
                report(self._unreached(action))
        with ThreadPoolExecutor(len(connected) or 1) as pool:
            begun = []
            for name, link in connected.items():
                own = tuple(action for action in plan.actions if action.host == name)
                begun.append(pool.submit(link.apply, replace(plan, actions=own), report))
        for one in begun:
            one.result()  # raises what has ended it, such as a full disk
        for link in self._links:
            link.reconnect()
        return sorted(results, key=lambda result: result.id)

    def undo(self, only: Iterable[str] | None, on_result: OnResult) -> list[Result]:
        """Restore containers: all in the journal, or those with the ids `only`. Raises
        `UnavailableError` after that, where an engine has gone away meanwhile."""
        wanted = None if only is None else set(only)
        results: list[Result] = []

        def report(found: Result) -> None:
            results.append(replace(found, id=len(results) + 1))
            on_result(results[-1])

        faults = []
        for link in self._connected().values():
            assert link.actuator is not None
            try:
                link.actuator.undo(wanted, report)
            except UnavailableError as error:
                link.lose(error)
                faults.append(f"{link.name}: {error}")
        if faults:
            raise UnavailableError("; ".join(faults))
        return results

    def _each_deliverer(self) -> list[Deliverer]:
        actuators = [link.actuator for link in self._links if link.actuator is not None]
        return [one.deliverer for one in actuators if one.deliverer is not None]

    def _connected(self) -> dict[str, _Link]:
        """Return the links to engines that answer, by host."""
        return {link.host: link for link in self._links if link.actuator is not None}

    def _unreached(self, action: Action) -> Result:
        found = Result(action.id, Status.SKIPPED, action.container_id, action.container_name)
        if not self.unreachable:
            return replace(found, error=f"no engine that was named is on host {action.host}")
        lost = [link for link in self._links if link.actuator is None]
        own = [link for link in lost if action.host in (link.host, link.name)] or lost
        why = "; ".join(f"{link.name}: {link.fault}" for link in own)
        return replace(found, status=Status.FAILED, error=f"host {action.host}: {why}")


class _Link:
    """One engine: its actuator, None while it does not answer, and why."""

    def __init__(self, name: str, connect: Connector) -> None:
        self.name = name
        self.host = ""
        self.fault = "no answer yet"
        self.is_held = False  # by another run
        self.actuator: Actuator | None = None
        self.lost: Actuator | None = None  # the last one, of an engine that has gone away
        self.owing: frozenset[str] = frozenset()  # what was changed before that
        self._connect = connect
        self._thread: threading.Thread | None = None
        self.reconnect()

    @property
    def changed(self) -> frozenset[str]:
        return self.owing | (self.actuator.changed if self.actuator else frozenset())

    def reconnect(self) -> None:
        """Begin to connect in the background, unless that is done or under way."""
        if self.actuator is None and not (self._thread and self._thread.is_alive()):
            self._thread = threading.Thread(target=self._try, daemon=True)
            self._thread.start()

    def wait(self, seconds: float) -> None:
        """Wait for the attempt to connect."""
        if self._thread is not None:
            self._thread.join(max(0.0, seconds))

    def lose(self, error: DltoolsError) -> None:
        """Take the engine as gone, with what has been changed there."""
        self.owing, self.fault = self.changed, str(error)
        if self.actuator is not None and self.actuator.deliverer is not None:
            self.actuator.deliverer.stop()  # its hooks begin again when the engine is back
        self.lost, self.actuator = self.actuator or self.lost, None

    def release(self, on_result: OnResult) -> None:
        """Undo what has been changed, also before the engine went away. It may go away again."""
        assert self.actuator is not None
        try:
            self.actuator.release(on_result)
            if self.owing:
                self.actuator.undo(self.owing, on_result)
        except UnavailableError as error:
            self.lose(error)
        else:
            self.owing = frozenset()

    def apply(self, plan: Plan, report: OnResult) -> None:
        """Apply a plan; where the engine goes away, report the actions that are left as failed."""
        done: set[int] = set()

        def on_result(result: Result) -> None:
            done.add(result.id)
            report(result)

        assert self.actuator is not None
        try:
            self.actuator.apply(plan, on_result)
        except DltoolsError as error:
            self.lose(error)
            for action in plan.actions:
                if action.id not in done:
                    report(
                        Result(
                            action.id,
                            Status.FAILED,
                            action.container_id,
                            action.container_name,
                            error=str(error),
                        )
                    )

    def _try(self) -> None:
        try:
            found = self._connect()
        except DltoolsError as error:
            self.fault, self.is_held = str(error), isinstance(error, RetryError)
            return
        self.host = found.engine.host
        self.actuator = found


class _Rotations:
    """The turns on all engines. An engine that goes away has none until it is back."""

    def __init__(self, links: Sequence[_Link]) -> None:
        self._links = links

    @property
    def has_turns(self) -> bool:
        """Whether containers take turns."""
        return any(link.actuator.rotation.has_turns for link in self._links if link.actuator)

    def seconds_until_due(self) -> float | None:
        """Return the seconds until `advance` has something to do, None if it never has."""
        due = [link.actuator.rotation.seconds_until_due() for link in self._links if link.actuator]
        return min((seconds for seconds in due if seconds is not None), default=None)

    def advance(self) -> None:
        """Do what is due on each engine."""
        for link in self._links:
            if link.actuator is not None:
                try:
                    link.actuator.rotation.advance()
                except UnavailableError as error:
                    link.lose(error)

    def end(self) -> None:
        """Unpause all containers. Raises `UnavailableError` where some stay paused."""
        faults = []
        for link in self._links:
            if link.actuator is not None:
                try:
                    link.actuator.rotation.end()
                except UnavailableError as error:
                    faults.append(str(error))
        if faults:
            raise UnavailableError("; ".join(faults))
