"""The interface of all sources of progress: logs, files and endpoints."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from datetime import datetime
from typing import ClassVar

from dltools.engine.interface import Container, Engine
from dltools.probe.progress.base import Extractor, Point


@dataclass(frozen=True, slots=True)
class TimedPoint:
    """A point with its time."""

    time: datetime
    """When the job reported it."""

    point: Point
    """The point."""


@dataclass(frozen=True, slots=True)
class Target:
    """A running container to read progress from."""

    engine: Engine
    """The engine that runs it."""

    container: Container
    """What the engine says of it."""

    pattern: Extractor | None = None
    """The user's, None for none."""

    is_visible: bool = True
    """Whether the container's processes are on this machine."""

    is_followed: bool = False
    """Whether its sources will be read again and again."""


class ProgressSource(ABC):
    """One way to learn the progress of one container. It outlives a stop of the container."""

    needs_two_readings: ClassVar[bool] = False
    """Whether the points of a reading are about the time since the reading before."""

    gap: str | None = None
    """Why points may be missing, None if nothing is known to be missing."""

    @property
    def may_wait(self) -> bool:
        """Whether the next reading may wait for a network."""
        return False

    @abstractmethod
    def read(self, now: float, since: float) -> list[TimedPoint]:
        """Return the points that are new since the last reading, [] for none.

        `now` is a time in seconds on any steady clock; points from before `since` (seconds since
        the epoch) are left out. Raises `UnavailableError` if the engine does not answer. A fault of
        the container raises nothing, and is told in `gap`.
        """

    def stop(self) -> list[TimedPoint]:
        """Return the last points of the container, which has stopped and may start again."""
        return []

    @abstractmethod
    def restart(self, target: Target) -> None:
        """Continue with the container, which has started again."""

    def reconnect(self) -> None:  # noqa: B027
        """Continue after the engine was away."""

    def close(self) -> None:  # noqa: B027
        """Stop reading, because the container was removed."""
