"""The formats of observations, and how --format and the name of -o choose one.

dl-probe and dl-sim write them; the other tools start without them.
"""

from __future__ import annotations

import sys
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from dltools.cli.destinations import is_terminal
from dltools.cli.formats import format_by_name
from dltools.errors import OutputError
from dltools.observations.formats import registry

if TYPE_CHECKING:

    class ObservationFormat(StrEnum):
        """The formats of observations: these, and those of the registry by their names."""

        AUTO = "auto"
        TABLE = "table"

else:
    ObservationFormat = StrEnum(
        "ObservationFormat",
        {"AUTO": "auto", "TABLE": "table", **{name.upper(): name for name in registry.NAMES}},
    )

WHOLE, STREAM = ObservationFormat("parquet"), ObservationFormat("arrow")
"""The defaults for a file or a pipe: for one sample, and for a stream of samples."""


def suffixes() -> dict[str, ObservationFormat]:
    """Return the formats by the suffixes of file names."""
    return {
        suffix: ObservationFormat(format_.name)
        for format_ in registry.formats().values()
        for suffix in format_.suffixes
    }


def choose_observation_format(
    wanted: ObservationFormat, output: str | None, *, is_stream: bool
) -> ObservationFormat:
    """Return the format to write in. Raises `BadParameter` for binary output on a terminal, and for
    a directory in another format than Parquet; `OutputError` for an impossible directory."""
    if output is not None and is_directory(output):
        _check_directory(output, wanted)
        return WHOLE
    to_terminal = sys.stdout.isatty() if output is None else is_terminal(output)
    chosen = format_by_name(wanted, output, suffixes())
    if chosen is ObservationFormat.AUTO:
        if to_terminal:
            return ObservationFormat.TABLE
        return STREAM if is_stream else WHOLE
    if to_terminal and _is_binary(chosen):
        raise typer.BadParameter(
            f"{chosen} is binary and standard output is a terminal; use -o FILE or a pipe"
        )
    return chosen


def is_directory(output: str) -> bool:
    """Tell whether -o names a directory of recordings: one that exists, or ends in a slash."""
    return output.endswith("/") or Path(output).is_dir()


def option_before_environment(
    wanted: ObservationFormat, output: str | None, context: typer.Context
) -> ObservationFormat:
    """Return the format that the options ask for: a file's name overrides DLTOOLS_FORMAT."""
    source = context.get_parameter_source("format")
    if output is None or source is None or source.name != "ENVIRONMENT":
        return wanted
    return suffixes().get(Path(output).suffix.lower(), wanted)


def _is_binary(format_: ObservationFormat) -> bool:
    return format_.value in registry.NAMES and registry.get_format(format_.value).is_binary


def _check_directory(output: str, wanted: ObservationFormat) -> None:
    if not output:
        raise OutputError("cannot create the output: its name is empty")
    if Path(output).exists() and Path(output).samefile("/"):
        raise OutputError(f"cannot create {output}: it is the root directory; name another")
    if wanted not in (ObservationFormat.AUTO, WHOLE):
        raise typer.BadParameter(f"a directory holds Parquet, not {wanted}; use -o FILE")
