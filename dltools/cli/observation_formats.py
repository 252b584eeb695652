"""The formats that observations are written in, and the file names that stand for them."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING

from dltools.observations.formats import registry

if TYPE_CHECKING:

    class ObservationFormat(StrEnum):
        """The formats of observations: these, and the formats of the registry by their names."""

        AUTO = "auto"
        TABLE = "table"

else:
    ObservationFormat = StrEnum("ObservationFormat", [("AUTO", "auto"), ("TABLE", "table"),
                                *((name.upper(), name) for name in registry.FORMATS)])  # fmt: skip

WHOLE, STREAM = ObservationFormat("parquet"), ObservationFormat("arrow")
"""What `auto` is for a file or a pipe: of one sample, of a stream of samples."""

SUFFIXES = {suffix: ObservationFormat(name) for suffix, name in registry.SUFFIXES.items()}
"""How the names of observations end."""
