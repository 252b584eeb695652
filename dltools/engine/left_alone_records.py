"""Containers that somebody has for himself: no plan touches them, of whichever run.

A record is made where somebody pauses or signals a container that takes turns, or changes settings
that dl-apply has set, and by `dl-apply --release`. A dl-apply that runs meanwhile finds it.
dl-probe shows such a container as protected, so that no plan gives it a place in the order.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from dltools.engine.interface import Container, Engine, GoneError
from dltools.engine.state_records import EngineRecord, Records

FOLDER = "left-alone"
"""The name of the records' folder in a state directory."""


@dataclass(frozen=True, slots=True)
class LeftAlone(EngineRecord):
    """A container that is left alone."""

    why: str
    """Why, in words."""

    started: str = ""
    """When the run of it began for which this holds (the engine's text), "" where it holds for as
    long as there is the container."""

    def holds_for(self, container: Container) -> bool:
        """Tell whether it holds for the run that a container is in."""
        return self.started in ("", container.started_text)


class LeftAloneRecords(Records[LeftAlone]):
    """The records in one directory."""

    record_type = LeftAlone
    what = "record of a container that is left alone"

    def why(self, engine: Engine, container: Container) -> str | None:
        """Return why a container is left alone, None if it is not."""
        record = self.find(container.id)
        holds = record is not None and record.engine == engine.id and record.holds_for(container)
        return record.why if record and holds else None

    def forget_gone(self, engine: Engine) -> None:
        """Remove the records of an engine's containers that are gone, or run anew."""
        for record in self.readable():
            try:
                holds = record.engine != engine.id or record.holds_for(
                    engine.inspect(record.container_id)
                )
            except GoneError:
                holds = False
            if not holds:
                self.remove(record)


def read_left_alone(directories: Iterable[Path], engine: Engine) -> dict[str, LeftAlone]:
    """Return the records of an engine's containers in state directories, by id."""
    return {
        record.container_id: record
        for directory in directories
        for record in LeftAloneRecords(directory / FOLDER).readable()
        if record.engine == engine.id
    }
