"""Rows as JSON Lines or CSV."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Mapping, Sequence
from typing import Any

Rows = Sequence[Mapping[str, Any]]


def to_jsonl(rows: Rows) -> str:
    """Return rows as JSON Lines."""
    return "".join(json.dumps(row, separators=(",", ":")) + "\n" for row in rows)


def to_csv(rows: Rows) -> str:
    """Return rows as CSV, with the columns of all of them."""
    out = io.StringIO()
    columns = list(dict.fromkeys(key for row in rows for key in row))
    table = csv.DictWriter(out, columns, lineterminator="\n")
    table.writeheader()
    table.writerows(rows)
    return out.getvalue()
