"""What an input holds, told by how it begins, and where it belongs."""

from __future__ import annotations

import json
from enum import Enum
from typing import Any

PARQUET_MARK = b"PAR1"
ARROW_MARK = b"\xff\xff\xff\xff"
CSV_MARKS = (b"time,", b'"time"')
"""How files and streams of observations begin."""

_TABLE_MARKS = (b"policy,", b"run,")
_SPACE = b"\xef\xbb\xbf \t\r\n"


class Content(Enum):
    """The kinds of input. The value is what messages say of it: "this is ..."."""

    PARQUET = "Parquet"
    ARROW = "Arrow"
    OBSERVATIONS = "a table of observations"
    PLANS = "a plan"
    RESULTS = "what dl-apply has printed"
    JOBS = "a table of jobs"
    SUMMARY = "a table of runs"
    UNKNOWN = ""


_RECORDINGS = (Content.PARQUET, Content.ARROW, Content.OBSERVATIONS)
_TABLES = (Content.RESULTS, Content.JOBS, Content.SUMMARY)


def content_of(data: bytes) -> Content:
    """Return what an input holds, by its first bytes; a text needs its whole first line."""
    if data.startswith(PARQUET_MARK):
        return Content.PARQUET
    if data.startswith(ARROW_MARK):
        return Content.ARROW
    line = data.lstrip(_SPACE).split(b"\n", 1)[0]
    if line.startswith(CSV_MARKS):
        return Content.OBSERVATIONS
    if line.startswith(_TABLE_MARKS):
        return Content.JOBS if b",name," in line else Content.SUMMARY
    return _content_of_record(_record(line)) if begins_record(line) else Content.UNKNOWN


def begins_record(data: bytes) -> bool:
    """Tell whether a text begins with a JSON object."""
    return data.lstrip(_SPACE).startswith(b"{")


def refusal(data: bytes, recordings: str = "") -> str:
    """Return why a tool refuses an input, by its first bytes: what the input is, and what to do
    with it; "" where that is unknown. `recordings` says what to do with a recording, "" for a tool
    that reads recordings.
    """
    content = content_of(data)
    if content in _RECORDINGS:
        return recordings and f"this is {content.value}: {recordings}"
    if content is Content.PLANS:
        return "this is a plan: give it to dl-apply, or to dl-plan as --state"
    return f"this is {content.value}: give it to dl-report" if content in _TABLES else ""


def _content_of_record(record: dict[str, Any]) -> Content:
    if "time" in record and "kind" in record:
        return Content.OBSERVATIONS
    if record.get("kind") == "plan":
        return Content.PLANS
    if record.get("kind") == "result":
        return Content.RESULTS
    if "policy" in record or "run" in record:
        return Content.JOBS if "name" in record else Content.SUMMARY
    return Content.UNKNOWN


def _record(line: bytes) -> dict[str, Any]:
    """Return a line of JSON, {} where it is no object."""
    try:
        record = json.loads(line)
    except (ValueError, RecursionError):
        return {}
    return record if isinstance(record, dict) else {}
