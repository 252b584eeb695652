"""The formats that observations are written in, and the file names that stand for them."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING

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
