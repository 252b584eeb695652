"""Which engine a state record belongs to: cloned machines share the ID of their engine."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator, Mapping
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
    own = (one for one in records if one.engine == engine.id)
    return [
        one for one in own if one.host == engine.host or has_container(engine, one.container_id)
    ]


def has_container(engine: Engine, container_id: str) -> bool:
    """Tell whether an engine has a container. Raises as the engine does."""
    try:
        engine.inspect(container_id)
    except GoneError:
        return False
    return True


class DistinctEngines(Mapping[str, Engine]):
    """The engines of a run by host name. Two with the same ID or host name are refused: they would
    be taken for one. Threads add engines while others look at them: each sees those of a moment."""

    def __init__(self) -> None:
        self._addresses: dict[tuple[str, str], str] = {}
        self._by_host: dict[str, Engine] = {}  # never changed, but replaced
        self._lock = threading.Lock()

    def add(self, engine: Engine, address: str) -> None:
        """Add the engine at an address, or the one that has come back there. Raises
        `UnavailableError` if the engine at another address has the same ID or name."""
        self.claim("ID", engine.id, address)
        self.claim("host name", engine.host, address)
        with self._lock:
            self._by_host = {**self._by_host, engine.host: engine}

    def claim(self, kind: str, text: str, address: str) -> None:
        """Take a name of a kind for the engine at an address. Raises `UnavailableError` if the one
        at another address has it."""
        with self._lock:
            other = self._addresses.setdefault((kind, text), address)
        if other != address:
            raise UnavailableError(
                f"it has the {kind} of the engine at {other}, {text}: leave it out, or change that "
                "of one of them"
            )

    def __getitem__(self, host: str) -> Engine:
        """Return the engine of a host."""
        return self._by_host[host]

    def __iter__(self) -> Iterator[str]:
        """Yield the names of the hosts."""
        return iter(self._by_host)

    def __len__(self) -> int:
        """Return how many engines there are."""
        return len(self._by_host)
