"""Changes of containers that are asked of Docker's API: pauses, limits, and whose they were."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterable
from typing import Any

from dltools.engine.docker.http import Transport, quoted
from dltools.engine.interface import Container, Event, Fields, GoneError, RefusedError, Requests
from dltools.engine.limits.limit_updates import (
    equivalent_original,
    recorded_limits,
    restoring_updates,
    setting_updates,
)
from dltools.engine.limits.limit_writing import WritesLimits
from dltools.engine.parts import LimitChange, Pauses
from dltools.notation.limits import Limits

_FREEZES_AGAIN_S = (0.02, 0.1, 0.5)
"""After what times a pause is tried again (ours)."""

_LOST_RACE = ("unable to freeze", "while freezing", "failed: exit status")
"""What runc says where processes start faster than it can freeze a cgroup of version 1, and what
Podman says then."""


def path_of(id_: str) -> str:
    """Return the path of requests on a container."""
    return f"/containers/{quoted(id_)}"


class Changes(Requests, Pauses):
    """Requests that change containers, pauses among them, of which an event of the same name will
    tell."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport
        self._asked: Counter[tuple[str, str]] = Counter()  # whose events are yet to come

    @property
    def repeats(self) -> int:
        """How many requests have been made again, as no answer had come."""
        return self._transport.patience.repeats

    def make(self, id_: str, action: str, body: Any = None) -> Any:
        """Have a container changed, and return the answer."""
        repeats = self.repeats
        self._asked[id_, action] += 1
        try:
            return self._transport.json("POST", f"{path_of(id_)}/{action}", body=body)
        except (GoneError, RefusedError):
            if self.repeats == repeats:  # else it may have been carried out before
                self._asked[id_, action] -= 1
            raise

    def is_own(self, event: Event) -> bool:
        """Tell whether an event comes of a request that was made here; once for each request."""
        key = event.container_id, event.action
        self._asked[key] -= 1
        is_own = self._asked[key] >= 0
        if self._asked[key] <= 0:
            del self._asked[key]
        return is_own

    def pause(self, id_: str) -> None:
        """Freeze a container's processes; again where runc has lost a race with new ones."""
        for wait_s in _FREEZES_AGAIN_S:
            try:
                self.make(id_, "pause")
            except RefusedError as error:
                if not any(sign in str(error) for sign in _LOST_RACE):
                    raise
                time.sleep(wait_s)
            else:
                return
        self.make(id_, "pause")

    def unpause(self, id_: str) -> None:
        """Thaw a container's processes."""
        self.make(id_, "unpause")


class DockerLimits(WritesLimits):
    """Sets limits in the kernel's files, and in the engine's record where these are elsewhere."""

    leaves_record = True

    def __init__(self, changes: Changes, cpus: int, default_shares: int) -> None:
        """`cpus`: how many the host has. `default_shares`: the weight of a container that has none
        on record."""
        self.changes = changes
        self.cpus = cpus
        self.default_shares = default_shares

    def update_limits(self, change: LimitChange) -> None:
        """Set CPU limits by an update, and the quota of the original fields."""
        located, limits = change.located, change.wanted
        if change.original is None:
            self._update_until(change, setting_updates(located, limits, self.cpus))
            return
        original, shares = change.original.fields, self.default_shares
        equivalent = equivalent_original(located, original, self.cpus)
        try:
            self._update_until(change, restoring_updates(located, original, limits, shares))
        except RefusedError:
            if not equivalent:
                raise
            equivalent |= {"CpuShares": original.get("CpuShares")}
            self._update_until(change, restoring_updates(located, equivalent, limits, shares))

    def _update_until(self, change: LimitChange, updates: Iterable[Fields]) -> Fields:
        """Make updates until one is in force, and return it."""
        container = change.located.container
        *others, last = updates
        if not last:
            return last
        for fields in others:
            self.update(container.id, fields)
            if change.is_in_force():
                return fields
        warnings = self.update(container.id, last)
        if warnings and container.pid and not change.is_in_force():
            raise RefusedError("; ".join(warnings))
        return last

    def update(self, id_: str, fields: Fields) -> list[str]:
        """Set fields of a container, under Docker's own names, and return the engine's warnings."""
        said = self.changes.make(id_, "update", dict(fields))
        return list(map(str, (said or {}).get("Warnings") or ())) if isinstance(said, dict) else []

    def renew(self, container: Container) -> None:
        """Bring into force what is on the engine's record."""
        self.update(container.id, {name: v for name, v in container.limit_fields.items() if v})

    def recorded(self, limit_fields: Fields) -> Limits:
        """Return the limits for which the fields of a journal's entry stand."""
        return recorded_limits(limit_fields, self.default_shares)
