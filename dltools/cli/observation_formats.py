"""The formats that observations are written in, and the file names that stand for them."""

from __future__ import annotations

from enum import StrEnum


class Output(StrEnum):
    """What --format may be."""

    AUTO = "auto"
    TABLE = "table"
    PARQUET = "parquet"
    ARROW = "arrow"
    JSONL = "jsonl"
    CSV = "csv"
    PROM = "prom"


SUFFIXES = {".parquet": Output.PARQUET, ".arrow": Output.ARROW, ".arrows": Output.ARROW,
            ".jsonl": Output.JSONL, ".csv": Output.CSV, ".prom": Output.PROM}  # fmt: skip
"""How the names of observations end."""
