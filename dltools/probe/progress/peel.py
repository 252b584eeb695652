"""What stands before a program's own line: engines, journals, launchers and ranks put it there.

Docker's json-file (`{"log":"...","time":"..."}`), CRI (`2026-01-31T12:00:00Z stdout F ...`),
journald, kubectl (`[pod/job/main] ...`), compose (`trainer-1  | ...`), mpirun (`[1,0]<stdout>:`),
Slurm (`0: ...`), torchrun (`[rank0]: ...`), Ray (`(Worker pid=7) ...`).
"""

from __future__ import annotations

import json
from typing import NamedTuple

from dltools.probe.progress.base import Regex
from dltools.probe.progress.log_lines import LogLine


class Peeled(NamedTuple):
    """A program's own line.

    `stamp` is the time that the prefix says, as text, "" for none. `rank` names the process that
    printed the line, "" where no prefix does. A rank that is only a number before a colon may be a
    step as well: `is_certain` is False.
    """

    text: str
    is_redrawn: bool
    stamp: str = ""
    rank: str = ""
    is_certain: bool = True


_MOST = 4
"""Prefixes that are peeled from one line."""

_ISO = Regex(
    r"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:[.,]\d{1,9})?(?:Z|[+-]\d\d:?\d\d))[ \t]"
    r"(?:std(?:out|err) [FP] ?|[\w.-]{1,80} [\w@./-]{1,80}\[\d{1,9}\]: )?"
)
_JOURNAL = Regex(
    r"([A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d(?:\.\d{1,6})?) [\w.-]{1,80} "
    r"[\w@./-]{1,80}\[\d{1,9}\]: ?"
)
_POD = Regex(r"\[pod/[\w./-]{1,200}\] ?")
_COMPOSE = Regex(r"[\w.-]{1,80}[-_]\d{1,4}\s{0,40}\| ?")
_RANK = Regex(
    r"\[(?:\d{1,5},(?P<mpi>\d{1,5})\]<std\w{2,4}>|(?P<r1>rank ?\d{1,5})\]"
    r"|(?P<r2>[a-z_]{1,20}\d{1,5})\](?=:))"
    r":?[ \t]?|(?P<r3>[Rr]ank ?\d{1,5}):[ \t]"
)
_RAY = Regex(r"\((?P<r>[\w./ =,:()-]{0,80}?\bpid=\d{1,9}(?:, ?ip=[\d.]{1,40})?)\)[ \t]?")
_TASK = Regex(r"\s{0,4}(?P<r>\d{1,5}):[ ](?=[^\d\s.+-])")


def peel(line: LogLine) -> list[Peeled]:
    """Return a line without what others put before it; a wrapped line may hold several drawings."""
    head = line.text[:1]
    if head == "{" and (line.text.startswith('{"log":') or '"MESSAGE"' in line.text):
        return _wrapped(line)
    return [_bare(line.text, is_redrawn=line.is_redrawn)]


def _bare(text: str, *, is_redrawn: bool, stamp: str = "") -> Peeled:
    if text[:1] not in _HEADS:
        return Peeled(text, is_redrawn, stamp)
    rank, is_certain = "", True
    for _ in range(_MOST):
        head = text[:1]
        if head == "[":
            if match := _RANK.match(text):
                rank = match["mpi"] or match["r1"] or match["r2"]
            else:
                match = _POD.match(text)
        elif head == "(":
            if (match := _RAY.match(text)) is not None:
                rank = match["r"]
        elif head in _DIGITS or head == " ":
            if match := _ISO.match(text):
                stamp = stamp or match[1]
            elif match := _TASK.match(text):
                rank, is_certain = match["r"], bool(rank)
        elif head == "r" or head == "R":
            if match := _RANK.match(text):
                rank = match["r3"]
            else:
                match = _COMPOSE.match(text)
        elif match := _JOURNAL.match(text):
            stamp = stamp or match[1]
        else:
            match = _COMPOSE.match(text)
        if match is None:
            break
        text = text[match.end() :]
    return Peeled(text, is_redrawn, stamp, rank, is_certain)


_DIGITS = frozenset("0123456789")
_HEADS = frozenset("[( 0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz")


def _wrapped(line: LogLine) -> list[Peeled]:
    """Return the lines in a record of Docker's json-file or of journald's JSON."""
    try:
        record = json.loads(line.text)
        text = record["log"] if "log" in record else record["MESSAGE"]
        stamp = record.get("time") or record.get("@timestamp") or ""
        if micros := record.get("__REALTIME_TIMESTAMP"):
            stamp = f"{int(micros) / 1e6:.6f}"
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return [Peeled(line.text, line.is_redrawn)]
    if not isinstance(text, str):
        return [Peeled(line.text, line.is_redrawn)]
    found: list[Peeled] = []
    for drawing in text.replace("\n", "\r").split("\r"):
        if drawing and not drawing.isspace():
            is_redrawn = line.is_redrawn or text[:1] == "\r" or bool(found)
            found.append(_bare(drawing, is_redrawn=is_redrawn, stamp=str(stamp)))
    return found
