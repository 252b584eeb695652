"""Whose state it is: machines that were cloned share the ID of their engine."""

from __future__ import annotations

import threading
from collections.abc import Iterable
from typing import Protocol, TypeVar

from dltools.engine.interface import Engine, GoneError
from dltools.errors import UnavailableError


class ContainerRecord(Protocol):
    """What the state says of a container."""

    @property
    def host(self) -> str:
        """The host where it ran."""

    @property
    def container_id(self) -> str:
        """Its id."""


AnyRecord = TypeVar("AnyRecord", bound=ContainerRecord)


def own_records(engine: Engine, noted: Iterable[AnyRecord]) -> list[AnyRecord]:
    """Return what was noted of containers of an engine's ID, without those of another host.

    A host that was renamed keeps its containers. Raises as the engine does.
    """
    return [one for one in noted if one.host == engine.host or _has(engine, one.container_id)]


def _has(engine: Engine, container_id: str) -> bool:
    try:
        engine.inspect(container_id)
    except GoneError:
        return False
    return True


class DistinctEngines:
    """Which of a run's engines has which ID and host name: two of one would be taken for one."""

    def __init__(self) -> None:
        self._owners: dict[tuple[str, str], str] = {}
        self._lock = threading.Lock()

    def claim(self, engine: Engine, address: str) -> None:
        """Raise `UnavailableError` if the engine at another address has the same ID or name."""
        for kind, text in (("ID", engine.id), ("host name", engine.host)):
            with self._lock:
                owner = self._owners.setdefault((kind, text), address)
            if owner != address:
                raise UnavailableError(
                    f"it has the {kind} of the engine at {owner}, {text}: leave it out, or change "
                    "that of one of them"
                )
