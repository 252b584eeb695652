"""What stands before a program's own line: engines, journals, launchers and ranks put it there.

Docker's time stamps (`2026-01-31T12:00:00Z ...`), journald, kubectl (`[pod/job/main] ...`), compose
(`trainer-1  | ...`), mpirun (`[1,0]<stdout>:`), Slurm (`0: ...`), torchrun (`[rank0]: ...`), Ray
(`(Worker pid=7) ...`).
"""

from __future__ import annotations

import json

from dltools.probe.progress.base import Regex
from dltools.probe.progress.log_lines import LogLine

Peeled = LogLine
"""A program's own line; its `stamp` and `rank` are what was before it."""

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


def may_have_prefix(text: str) -> bool:
    """Tell whether a prefix may begin a line: a quick look at some characters."""
    head = text[:1]
    if head.isalpha():
        return "|" in text[:_LONGEST_NAME] or head in "rR" or text[3:4] == " " == text[6:7]
    if head == "[":
        return text[1:2] in _RANK_HEADS
    if head == " " or head.isdigit():
        return text[4:5] == "-" or ": " in text[:8]
    return head in "({"


def peel(line: LogLine) -> list[LogLine]:
    """Return a line without what others put before it; a wrapped line may hold several drawings."""
    text = line.text
    if text[:1] == "{":
        return _of_journal(line) if '"MESSAGE"' in text else [line]
    return [_bare(text, is_redrawn=line.is_redrawn, stamp=line.stamp)]


_LONGEST_NAME = 100
_RANK_HEADS = frozenset("0123456789abcdefghijklmnopqrstuvwxyz_")


def _bare(text: str, *, is_redrawn: bool, stamp: str = "") -> LogLine:
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
    return LogLine(text, is_redrawn, stamp, rank, is_certain)


_DIGITS = frozenset("0123456789")


def _of_journal(line: LogLine) -> list[LogLine]:
    """Return the lines in a record of journald's JSON."""
    try:
        record = json.loads(line.text)
        text = record["MESSAGE"]
        stamp = record.get("time") or record.get("@timestamp") or line.stamp
        if micros := record.get("__REALTIME_TIMESTAMP"):
            stamp = f"{int(micros) / 1e6:.6f}"
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return [line]
    if not isinstance(text, str):
        return [line]
    found: list[LogLine] = []
    for drawing in text.replace("\n", "\r").split("\r"):
        if drawing and not drawing.isspace():
            is_redrawn = line.is_redrawn or text[:1] == "\r" or bool(found)
            found.append(_bare(drawing, is_redrawn=is_redrawn, stamp=str(stamp)))
    return found
