"""What some engines can do beside what each must: the types of an engine's parts.

`part` and `needed` find them. An engine is a part itself, or has objects for its parts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import NamedTuple, Protocol, TypeVar, runtime_checkable

from dltools.engine.interface import Container, Engine, Fields, LocatedContainer, UnableError
from dltools.notation.limits import Limits


class Original(NamedTuple):
    """The limits of a container before they were changed."""

    fields: Fields
    """The engine's: `Container.limit_fields`."""

    files: Mapping[str, str]
    """The texts of the kernel's files by their names, as far as they were visible."""


class LimitChange(NamedTuple):
    """What is asked of an engine that sets limits."""

    located: LocatedContainer
    """The container."""

    wanted: Limits
    """The limits that it is to get; what is absent stays as it is."""

    is_in_force: Callable[[], bool]
    """Tells whether it has been done: of several ways one after the other is tried until then."""

    original: Original | None = None
    """Where a container is restored: the quota is to be the one then, and the files those then."""


@runtime_checkable
class SetsLimits(Protocol):
    """Sets limits of containers. `limits/limit_writing.py` has a base for those that
    do so in the kernel's files, for all of their containers or for some."""

    def set_limits(self, change: LimitChange) -> None:
        """Set CPU limits."""

    def recorded(self, limit_fields: Fields) -> Limits:
        """Return the limits for which the fields of a journal's entry stand."""
        return {}


@runtime_checkable
class Pauses(Protocol):
    """Pauses containers."""

    def pause(self, id_: str) -> None:
        """Freeze a container's processes."""

    def unpause(self, id_: str) -> None:
        """Thaw a container's processes."""


@runtime_checkable
class Delivers(Protocol):
    """Gives out files of containers."""

    def archive(self, id_: str, path: str) -> Iterator[bytes]:
        """Return a file or folder of a container, running or not, as the chunks of a tar stream.
        Raises `GoneError` also where the container has no such path."""


class Move(NamedTuple):
    """What must be known to move a container."""

    body: Fields
    """What the target creates its like from."""

    restart: Fields
    """When the source would start it again by itself."""

    stop_signal: str
    """The signal that asks it to stop."""

    grace_s: float
    """How long that may take (s)."""


@runtime_checkable
class Moves(Protocol):
    """Creates, starts, stops and removes containers, so that they can move to an engine, and from
    it."""

    node_id: str = ""
    """The engine's name in the cluster whose services it runs, "" for none."""

    def describe_move(self, container: Container, original: Fields, image: str) -> Move:
        """Return what must be known to move a container. `original` are the `limit_fields` that it
        had before dl-apply changed it; `image` is what the target calls the image."""

    def describe_look(self, container: Container, image: str) -> Fields:
        """Return what a target creates a container from that has the volumes of a service's task
        and does nothing."""

    def image_id(self, name: str) -> str | None:
        """Return the id of an image, None where it is absent."""

    def has_task_of(self, service_id: str) -> bool:
        """Tell whether a task of a service runs here."""

    def create(self, name: str, body: Fields) -> str:
        """Create a container, which does not run yet, and return its id."""

    def start(self, id_: str) -> None:
        """Start a container, unless it runs."""

    def signal(self, id_: str, name: str) -> None:
        """Send a signal, such as SIGTERM, to a container's first process."""

    def remove(self, id_: str) -> None:
        """Remove a container that does not run."""

    def set_restart(self, id_: str, policy: Fields | None) -> None:
        """Set when the engine starts a container again by itself; None: never."""

    def has_volume(self, name: str) -> bool:
        """Tell whether there is a volume of a name."""

    def has_network(self, name: str) -> bool:
        """Tell whether there is a network of a name."""


_Part = TypeVar("_Part")

_CANNOT: Mapping[type, str] = {
    SetsLimits: "set limits",
    Pauses: "pause containers",
    Delivers: "copy files out of containers",
    Moves: "move containers",
}


def part(engine: Engine, kind: type[_Part]) -> _Part | None:
    """Return an engine's part of a type, None where it has none."""
    return next((piece for piece in (engine, *engine.parts) if isinstance(piece, kind)), None)


def needed(engine: Engine, kind: type[_Part]) -> _Part:
    """Return an engine's part of a type. Raises `UnableError` where it has none."""
    if (piece := part(engine, kind)) is not None:
        return piece
    raise UnableError(f"the engine of host {engine.host} cannot {_CANNOT[kind]}")
