"""Rows of a table as CSV or JSON Lines."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Mapping, Sequence
from typing import Any


def records(rows: Sequence[Mapping[str, Any]], *, as_csv: bool) -> str:
    """Return rows as CSV, with the columns of all of them, or as JSON Lines."""
    if not as_csv:
        return "".join(json.dumps(row, separators=(",", ":")) + "\n" for row in rows)
    out = io.StringIO()
    table = csv.DictWriter(out, list(dict.fromkeys(k for row in rows for k in row)),
                           lineterminator="\n")  # fmt: skip
    table.writeheader()
    table.writerows(rows)
    return out.getvalue()
