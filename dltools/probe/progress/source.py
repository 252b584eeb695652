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
    """A point, and when the job reported it."""

    time: datetime
    point: Point


@dataclass(frozen=True, slots=True)
class Target:
    """A running container to read progress from.

    `pattern` is the user's, None for none. `is_visible` says that the container's processes are on
    this machine, `is_followed` that its sources will be read again and again.
    """

    engine: Engine
    container: Container
    pattern: Extractor | None = None
    is_visible: bool = True
    is_followed: bool = False


class ProgressSource(ABC):
    """One way to learn the progress of one container. It outlives a stop of the container."""

    needs_two_readings: ClassVar[bool] = False
    """Whether a reading gives points over the time since the reading before."""

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
        the epoch) are left out. Raises `UnavailableError` if the engine does not answer. What is
        wrong with the container is no error but a `gap`.
        """

    def stop(self) -> list[TimedPoint]:
        """Return the last points of the container, which has stopped and may start again."""
        return []

    @abstractmethod
    def restart(self, target: Target) -> None:
        """Go on with the container, which has started again."""

    def reconnect(self) -> None:  # noqa: B027
        """Go on after the engine was away."""

    def close(self) -> None:  # noqa: B027
        """Read no more: the container was removed."""
