"""Samples of several hosts, taken at the same time.

Each host has a thread of its own. A host that has not answered by the deadline gets a row of kind
`node` that has only a gap; what it answers later is in the next sample.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from datetime import UTC, datetime

from dltools.engine.interface import Engine
from dltools.errors import DltoolsError, UnavailableError
from dltools.observations.table import Row
from dltools.probe.events import await_change
from dltools.probe.sampler import Options, Sampler

Connector = Callable[[], Engine]
"""Connects to an engine, and raises `DltoolsError` if that fails."""


class Hosts:
    """Samples several hosts as `Sampler` samples one. `faults` says why hosts are not in the newest
    sample, by host; `is_complete`, whether each was in every sample so far."""

    def __init__(
        self, connectors: Mapping[str, Connector], options: Options, deadline_s: float
    ) -> None:
        """Nothing is read yet. A host has the name of its connector until its engine says its own;
        it has `deadline_s` for each sample."""
        self._deadline_s = deadline_s
        self._changed = threading.Event()
        self._names = _Names()
        self._hosts = [
            _Host(
                name,
                self._names,
                lambda connect=connect: Sampler(  # type: ignore[misc]
                    connect(), options, self._changed
                ),
            )
            for name, connect in connectors.items()
        ]
        self._has_answered = False
        self.faults: dict[str, str] = {}
        self.is_complete = True

    def follow(self) -> None:
        """From now on watch events and read only new log lines: for a stream of samples."""
        for host in self._hosts:
            host.is_followed = True

    def resume(self) -> None:
        """Nothing is to be done: each host is asked again at each sample."""

    def wait_for_change(self, seconds: float) -> bool:
        """Wait until a container starts or exits, but so long at most; tell whether one has."""
        return await_change(self._changed, seconds)

    def counters(self) -> list[Row]:
        """Return only counters and limits. Raises `UnavailableError` as `sample` does."""
        return self._read(Sampler.counters)

    def sample(self) -> list[Row]:
        """Return a whole sample. Raises `UnavailableError` if no host has ever answered."""
        return self._read(Sampler.sample)

    def left_paused(self) -> list[str]:
        """Return the names of containers that a dl-apply has left paused."""
        return [name for host in self._hosts for name in host.left_paused()]

    def _read(self, read: Callable[[Sampler], list[Row]]) -> list[Row]:
        until = time.monotonic() + self._deadline_s
        for host in self._hosts:
            host.begin(read)
        rows: list[Row] = []
        self.faults = {}
        for host in self._hosts:
            host.wait(until - time.monotonic())
            fault = host.fault(self._deadline_s)
            rows += host.take()
            if fault is not None:
                self.faults[host.name] = fault
                rows.append(_gap(host.name, fault))
        self._has_answered |= len(self.faults) < len(self._hosts)
        self.is_complete &= not self.faults
        if not self._has_answered:
            raise UnavailableError("; ".join(dict.fromkeys(self.faults.values())))
        return rows


def _gap(host: str, fault: str) -> Row:
    """Return the row of a host that was not reached: all that is known is why."""
    return {"time": datetime.now(UTC), "host": host, "kind": "node", "gap": f"no sample: {fault}"}


class _Names:
    """Which engine has which host name: two hosts of one name would be taken for one."""

    def __init__(self) -> None:
        self._owners: dict[str, _Host] = {}
        self._lock = threading.Lock()

    def claim(self, name: str, host: _Host) -> None:
        """Raise `UnavailableError` if another engine has the name."""
        with self._lock:
            owner = self._owners.setdefault(name, host)
        if owner is not host:
            raise UnavailableError(
                f"{host.address}: the host of {owner.address} is named {name} too: "
                "leave one out, or rename one"
            )


class _Host:
    """One host: its sampler, once its engine has answered, and what it has read."""

    def __init__(self, address: str, names: _Names, make: Callable[[], Sampler]) -> None:
        self.address = self.name = address
        self.is_followed = False
        self._names = names
        self._make = make
        self._sampler: Sampler | None = None
        self._is_lost = False
        self._fault: str | None = None
        self._rows: list[Row] = []
        self._thread: threading.Thread | None = None

    @property
    def is_busy(self) -> bool:
        """Whether it is being read."""
        return self._thread is not None and self._thread.is_alive()

    def begin(self, read: Callable[[Sampler], list[Row]]) -> None:
        """Begin to read in the background, unless that is still under way."""
        if not self.is_busy:
            self._thread = threading.Thread(target=self._run, args=(read,), daemon=True)
            self._thread.start()

    def wait(self, seconds: float) -> None:
        """Wait until it has been read, but so long at most."""
        if self._thread is not None:
            self._thread.join(max(0.0, seconds))

    def fault(self, deadline_s: float) -> str | None:
        """Return why it has not been read by the deadline, None if it has."""
        return f"no answer within {deadline_s:g} s" if self.is_busy else self._fault

    def take(self) -> list[Row]:
        """Return what has been read since the last call."""
        rows, self._rows = self._rows, []
        return rows

    def left_paused(self) -> list[str]:
        return [] if self.is_busy or self._sampler is None else self._sampler.left_paused()

    def _run(self, read: Callable[[Sampler], list[Row]]) -> None:
        try:
            if self._sampler is None:
                made = self._make()
                self._names.claim(made.host, self)
                self.name, self._sampler = made.host, made
                if self.is_followed:
                    made.follow()
            elif self._is_lost and self.is_followed:
                self._sampler.resume()
            self._rows += read(self._sampler)
            self._fault, self._is_lost = None, False
        except DltoolsError as error:
            self._fault, self._is_lost = str(error), True
        except Exception as error:  # what an engine answers may be anything; others go on
            self._fault, self._is_lost = f"{type(error).__name__}: {error}", True
