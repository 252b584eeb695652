"""What an input of dl-report holds, told by its first line."""

from __future__ import annotations

import json
from enum import Enum, auto
from typing import Any


class Content(Enum):
    """The kinds of input."""

    OBSERVATIONS = auto()
    PLANS = auto()
    RESULTS = auto()
    JOBS = auto()
    """A table with a row per job."""
    SUMMARY = auto()
    """A table with a row per policy or run."""


def content_of(data: bytes) -> Content:
    """Return what an input holds; everything that is nothing else is taken for observations."""
    line = data.removeprefix(b"\xef\xbb\xbf").lstrip().split(b"\n", 1)[0]
    if line.startswith((b"policy,", b"run,")):
        return Content.JOBS if b",name," in line else Content.SUMMARY
    return _content_of_record(_record(line)) if line.startswith(b"{") else Content.OBSERVATIONS


def _content_of_record(record: dict[str, Any]) -> Content:
    if record.get("kind") == "plan":
        return Content.PLANS
    if record.get("kind") == "result":
        return Content.RESULTS
    if "policy" in record or "run" in record:
        return Content.JOBS if "name" in record else Content.SUMMARY
    return Content.OBSERVATIONS


def _record(line: bytes) -> dict[str, Any]:
    """Return a line of JSON, {} where it is no object."""
    try:
        record = json.loads(line)
    except (ValueError, RecursionError):
        return {}
    return record if isinstance(record, dict) else {}
