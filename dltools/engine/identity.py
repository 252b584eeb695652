"""Which engine a state record belongs to: cloned machines share the ID of their engine."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol, TypeVar

from dltools.engine.interface import Engine, GoneError


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
