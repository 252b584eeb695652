"""Finds and removes the prefix of a line; the second step of the pipeline.

Engines, journals, launchers and ranks add prefixes: Docker's time stamps
(`2026-01-31T12:00:00Z ...`), journald, kubectl (`[pod/job/main] ...`), compose
(`trainer-1  | ...`), mpirun (`[1,0]<stdout>:`), Slurm (`0: ...`), torchrun (`[rank0]: ...`), Ray
(`(Worker pid=7) ...`), R's reprex (`#> ...`), notebooks of Kaggle (`12.5s<tab>3<tab>...`).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from dltools.probe.progress.base import Regex
from dltools.probe.progress.clean_lines import LogLine

Span = tuple[int, int]
"""Begin and end of a part of a line."""

_MOST = 4
"""Most prefixes that are removed from one line."""

_ISO = Regex(
    r"(?P<stamp>\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:[.,]\d{1,9})?(?:Z|[+-]\d\d:?\d\d))[ \t]"
    r"(?:std(?:out|err) [FP] ?|[\w.-]{1,80} [\w@./-]{1,80}\[\d{1,9}\]: )?"
)
_JOURNAL = Regex(
    r"(?P<stamp>[A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d(?:\.\d{1,6})?) [\w.-]{1,80} "
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
_PRINTED = Regex(r"#=?>[ \t]")
_NOTEBOOK = Regex(r"\d{1,9}\.\ds\t\d{1,9}\t")
_TASK = Regex(r"\s{0,4}(?P<task>\d{1,5}):[ ](?=[^\d\s.+-])")
_LOGGER = Regex(
    r"(?:\b(?:INFO|DEBUG|WARNING)\b(?::[\w.-]{1,60}:|[\]:]?\s{1,9}(?:\[[\w.]+:\d+[^\]]{0,20}\]\s)?)"
    r"|(?:\w\.(?:cpp|cc|py):\d+\]|\d:\d\d[^\]\s]{0,9}(?: \d{4})? ?\])\s)+"
)
"""What a logger puts before what the program says."""

_LOOKED_AT = 100
"""Characters at the start of a line in which a logger's may stand."""

_DIGITS = frozenset("0123456789")


class Prefix(NamedTuple):
    """The prefix of a line: where it ends, and where its time stamp and its rank stand."""

    end: int = 0
    stamp: Span | None = None
    rank: Span | None = None
    is_certain: bool = True


def prefix_of(text: str) -> Prefix | None:
    """Return the prefix of a line, None if it has none. It does not depend on the digits in the
    line."""
    head = text[:1]
    if not (head.isalnum() or head in "[(#" or (head == " " and ": " in text[:8])):
        return None
    prefix = Prefix()
    for _ in range(_MOST):
        match = _match(text, prefix.end)
        if match is None:
            break
        prefix = prefix._replace(end=match.end())
        group = match.lastgroup
        if group == "stamp":
            prefix = prefix._replace(stamp=prefix.stamp or match.span(group))
        elif group is not None:
            is_certain = prefix.is_certain if group != "task" else prefix.rank is not None
            prefix = prefix._replace(rank=match.span(group), is_certain=is_certain)
    return prefix if prefix.end else None


def _match(text: str, at: int) -> re.Match[str] | None:
    """Return the prefix that begins at a place."""
    head = text[at : at + 1]
    if head == "[":
        forms: tuple[Regex, ...] = (_RANK, _POD)
    elif head in ("(", "#"):
        forms = (_RAY, _PRINTED)
    elif head in _DIGITS or head == " ":
        forms = (_ISO, _TASK, _NOTEBOOK)
    else:
        forms = (_RANK, _COMPOSE) if head in ("r", "R") else (_JOURNAL, _COMPOSE)
    matches: Iterator[re.Match[str] | None] = (form.match(text, at) for form in forms)
    return next(filter(None, matches), None)


def peel(line: LogLine, prefix: Prefix) -> LogLine:
    """Return the program's own line without this prefix, with the prefix's time stamp and rank."""
    text, stamp, rank = line.text, line.stamp, ""
    if prefix.stamp and not stamp:
        stamp = text[slice(*prefix.stamp)]
    if prefix.rank:
        rank = text[slice(*prefix.rank)]
    own = text[prefix.end :]
    return line._replace(text=own, stamp=stamp, rank=rank, is_certain=prefix.is_certain)


def own_start(line: str) -> int:
    """Return where a program's own text begins in a line, behind what a logger puts before it."""
    match = _LOGGER.search(line[:_LOOKED_AT])
    return match.end() if match else 0
