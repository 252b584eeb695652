"""Which engine a state record belongs to: cloned machines share the ID of their engine."""

from __future__ import annotations

import threading
from collections.abc import Iterable
from typing import Protocol, TypeVar

from dltools.engine.interface import Engine, GoneError
from dltools.errors import UnavailableError


class EngineRecord(Protocol):
    """What the state says of a container of an engine."""

    @property
    def engine(self) -> str:
        """The ID of the engine."""

    @property
    def host(self) -> str:
        """The host where the container ran."""

    @property
    def container_id(self) -> str:
        """The container's id."""


R = TypeVar("R", bound=EngineRecord)


def own_records(engine: Engine, records: Iterable[R]) -> list[R]:
    """Return the records of an engine's containers: those with its ID, unless they are of another
    host. A host that was renamed keeps its containers. Raises as the engine does.
    """
    return [
        one
        for one in records
        if one.engine == engine.id and (one.host == engine.host or _has(engine, one.container_id))
    ]


def _has(engine: Engine, container_id: str) -> bool:
    try:
        engine.inspect(container_id)
    except GoneError:
        return False
    return True


class DistinctEngines:
    """The engines of a run by address. Two with the same ID or host name are refused: they would be
    taken for one."""

    def __init__(self) -> None:
        self._addresses: dict[tuple[str, str], str] = {}
        self._lock = threading.Lock()

    def add(self, engine: Engine, address: str) -> None:
        """Raise `UnavailableError` if the engine at another address has the same ID or name."""
        for kind, text in (("ID", engine.id), ("host name", engine.host)):
            with self._lock:
                other = self._addresses.setdefault((kind, text), address)
            if other != address:
                raise UnavailableError(
                    f"it has the {kind} of the engine at {other}, {text}: leave it out, or change "
                    "that of one of them"
                )
