"""The sources of progress that a container may have: its log, files and endpoints.

To add one, name its factory in `SOURCES`.
"""

from __future__ import annotations

from collections.abc import Callable

from dltools.probe.endpoints import endpoint_source
from dltools.probe.files.file_source import file_source
from dltools.probe.log_source import log_source
from dltools.probe.progress.source import ProgressSource, Target

SOURCES: tuple[Callable[[Target], ProgressSource | None], ...] = (
    log_source,
    file_source,
    endpoint_source,
)
"""Each returns its source for a container, None if the container has no such source."""


class SourceSet:
    """The sources of one container."""

    def __init__(self) -> None:
        self._sources: list[ProgressSource | None] = [None] * len(SOURCES)

    def start(self, target: Target) -> None:
        """Make the sources of a container that has started. Those of an earlier start continue."""
        for number, make in enumerate(SOURCES):
            progress_source = self._sources[number]
            if progress_source is None:
                self._sources[number] = make(target)
            else:
                progress_source.restart(target)

    @property
    def all(self) -> list[ProgressSource]:
        """The sources that the container has."""
        return [source for source in self._sources if source is not None]

    @property
    def gaps(self) -> list[str]:
        """Why points may be missing."""
        return [source.gap for source in self.all if source.gap]
