"""The formats in which observations are written and read: a line for each."""

from __future__ import annotations

from dltools.observations.formats.arrow import ARROW
from dltools.observations.formats.base import Format
from dltools.observations.formats.csv import CSV
from dltools.observations.formats.jsonl import JSONL
from dltools.observations.formats.parquet import PARQUET
from dltools.observations.formats.prometheus import PROMETHEUS

_ALL = (
    PARQUET,
    ARROW,
    JSONL,
    CSV,
    PROMETHEUS,
)

FORMATS: dict[str, Format] = {format_.name: format_ for format_ in _ALL}
"""Every format by its name."""

SUFFIXES: dict[str, str] = {suffix: format_.name for format_ in _ALL for suffix in format_.suffixes}
"""Names of formats by how names of files end."""
