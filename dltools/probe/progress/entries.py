"""Entries of the files that engines write: a time stamp, a stream, and a line or a part of one.

Docker's json-file (`{"log":"...","stream":"stderr","time":"..."}`) and CRI
(`2026-01-31T12:00:00Z stderr F ...`) cut lines of more than 16 KiB. In json-file only the last part
ends with a line end, where no other program took the line ends away; CRI calls it F, for full, and
the other parts P.
"""

from __future__ import annotations

import json
import re
from typing import NamedTuple

JSON = '{"log":'

_LEAST_PART = 4_096
"""Characters of an entry of json-file without a line end that is a part of a line: it has 16 KiB,
and a character up to four bytes."""

_CRI = re.compile(
    r"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d{1,9})?(?:Z|[+-]\d\d:?\d\d)) (std(?:out|err)) ([FP])"
    r"(?: |\Z)"
)


class Entry(NamedTuple):
    """What an entry holds: a line without its end, or a part of one, which the next entry of the
    stream goes on with."""

    text: str
    stream: str
    stamp: str
    is_part: bool


def may_be_entry(line: str) -> bool:
    """Tell whether a line may be an entry: a quick look at some characters."""
    return line[10:11] == "T" or line.startswith(JSON)


def entries_of(line: str) -> list[Entry]:
    """Return the entry that a line is, several for one of several lines; [] if it is none."""
    if line.startswith(JSON):
        return _of_json(line)
    match = _CRI.match(line)
    if match is None:
        return []
    return [Entry(line[match.end() :], match[2], match[1], match[3] == "P")]


def _of_json(line: str) -> list[Entry]:
    try:
        record = json.loads(line)
        text, stream = record["log"], str(record.get("stream"))
        stamp = str(record.get("time") or record.get("@timestamp") or "")
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return []
    if not isinstance(text, str):
        return []
    *lines, last = text.split("\n")
    found = [Entry(one, stream, stamp, is_part=False) for one in lines]
    if last or not lines:
        found.append(Entry(last, stream, stamp, is_part=len(text) >= _LEAST_PART))
    return found
