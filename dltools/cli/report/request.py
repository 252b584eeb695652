"""What a dl-report command line asks for, validated."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from dltools.cli import destinations
from dltools.cli.report.formats import ReportFormat
from dltools.errors import ConfigError


@dataclass(frozen=True, slots=True)
class Request:
    """What to report, and how.

    `inputs` are files, - or NAME=FILE. `baseline` is the name of a run, "" for the default one.
    `pictures` are kinds of pictures.
    """

    inputs: tuple[str, ...]
    baseline: str
    is_by_job: bool
    pictures: tuple[str, ...]
    output: Path | None
    format: ReportFormat
    scale: float
    title: str

    def __post_init__(self) -> None:
        """Raise `ConfigError` for a scale out of range, `OutputError` for an impossible output."""
        if self.output is not None:
            destinations.check(self.output)
        if not 0.1 <= self.scale <= 10:
            raise ConfigError("--scale must be between 0.1 and 10")


def choose_pictures(asked: Sequence[str]) -> tuple[str, ...]:
    """Return the kinds of pictures that --plot names, by default all. Raises `ConfigError`."""
    from dltools.report.plots.figure import KINDS

    for kind in asked:
        if kind not in KINDS:
            raise ConfigError(f"--plot must be one of {', '.join(KINDS)}, not {kind}")
    return tuple(kind for kind in KINDS if not asked or kind in asked)
