"""Cuts the output of a job into lines; the first step of the pipeline.

A log comes in pieces of any size and may hold any bytes: bars redrawn in place, escape codes,
endless lines.

A saved log may be a file of an engine, whose entries hold a time stamp, a stream, and a line or a
part of one: what each stream says is a log of its own. Docker's json-file
(`{"log":"...","stream":"stderr","time":"..."}`) and CRI (`2026-01-31T12:00:00Z stderr F ...`) cut
lines of more than 16 KiB. In json-file only the last part ends with a newline, unless another
program has removed the newlines; CRI marks the last part F, for full, and the other parts P. A
record of journald's JSON holds a line in `MESSAGE`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from functools import partial
from itertools import repeat
from typing import NamedTuple

LONGEST_LINE = 16_384
"""Most bytes of a line that are read, so that a line of a million characters takes no more."""

_LONGEST_ENTRY = 8 * LONGEST_LINE
"""Bytes of an entry of an engine's file that are read: it holds up to 16 KiB, and escapes."""

_ODD = re.compile(rb"[\r\x1b\x08\0\x0b\x0c]|\xef\xbb\xbf")
_CONTROL_CHARACTERS = bytes((*range(1, 7), *range(14, 27), *range(28, 32)))

_OF_ENTRIES = (b" stdout ", b" stderr ", b'{"log":', b'"MESSAGE"')
"""What the entries of an engine's file have."""

_ESCAPES = re.compile(
    r"\x1b(?:\[[0-9;:?<=>]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)?|[()][0-9A-B]|[@-Z\\-_])"
)

_BACK = bytes.maketrans(b"\x08\x0b\x0c", b"\r\r\r")

_LEAST_PART = 4_096
"""Least characters of an entry of json-file without a newline that count as a part of a line: a
part has 16 KiB, and a character has up to four bytes."""

_CRI = re.compile(
    r"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d{1,9})?(?:Z|[+-]\d\d:?\d\d)) (std(?:out|err)) ([FP])"
    r"(?: |\Z)"
)

_CONTROLS = re.compile("[\x01-\x06\x0e-\x1a\x1c-\x1f]")
_JUDGED, _FEW, _ONE_IN = 512, 3, 32


class LogLine(NamedTuple):
    """A line of a log."""

    text: str
    """The line, without its end."""

    is_redrawn: bool
    """Whether it was drawn over another."""

    stamp: str = ""
    """The time that a prefix of the line says, as text; "" for none."""

    rank: str = ""
    """The process that printed the line, "" where no prefix names one."""

    is_certain: bool = True
    """Whether `rank` can be nothing else: only a number before a colon may be a step as well."""

    is_drawn_over: bool = False
    """Whether it is a drawing that is not the last one of a bar."""


class LogLines:
    """Cuts a log, given in pieces of any size, into lines.

    A bar that is redrawn by carriage returns or backspaces gives a line for each drawing. Escape
    codes and a byte order mark are removed, and bytes that are no UTF-8 are replaced. Of each line
    only the first `LONGEST_LINE` bytes are kept; lines that are no text are dropped.
    """

    def __init__(self, *, may_have_entries: bool = True) -> None:
        """`may_have_entries`: whether it may be a file of an engine."""
        self._begun = b""
        self._is_skipping = False
        self._is_begun = False  # the newest line, which has no end yet
        self._is_drawn = False  # that line already shows something
        self._may_have_entries = may_have_entries
        self._streams: dict[bool, LogLines] = {}

    def feed(self, data: bytes) -> list[LogLine]:
        """Return the lines that are now complete, without blank ones."""
        if _plain(data) and not self._begun and not self._is_skipping:
            self._is_begun = self._is_drawn = False
            line = data[:-1].decode("utf-8", "replace")
            if not (self._may_have_entries and _may_be_entry(line)):
                return [LogLine(line, False)] if line and not line.isspace() else []
        data = data.translate(_BACK)
        end = max(data.rfind(b"\n"), data.rfind(b"\r")) + 1
        if not end:
            self._keep(data)
            return []
        head = data[:end]
        if self._is_skipping:
            first = min(at for at in (head.find(b"\n"), head.find(b"\r")) if at >= 0)
            head = head[first:]
        head = self._begun + head
        self._begun, self._is_skipping = b"", False
        self._keep(data[end:])
        return self._cut(head)

    def end(self) -> list[LogLine]:
        """Return the last line, if it has no end."""
        head, self._begun, self._is_skipping = self._begun, b"", False
        log_lines = self._cut(head + b"\n")
        for of_stream in self._streams.values():
            log_lines += of_stream.end()
        return log_lines

    def _keep(self, tail: bytes) -> None:
        if self._is_skipping:
            return
        self._begun += tail
        longest = LONGEST_LINE
        if len(self._begun) > longest:
            if self._begun[:1] == b"{" or self._begun[10:11] == b"T":
                longest = _LONGEST_ENTRY
            if len(self._begun) > longest:
                self._begun, self._is_skipping = self._begun[:longest], True

    def _cut(self, data: bytes) -> list[LogLine]:
        log_lines: list[LogLine] = []
        *whole, last = _clean(data.decode("utf-8", "replace")).split("\n")
        may_be_entries = self._may_have_entries and any(word in data for word in _OF_ENTRIES)
        may_be_binary = len(data.translate(None, _CONTROL_CHARACTERS)) != len(data)
        if not (self._is_begun or b"\r" in data or may_be_entries or may_be_binary):
            log_lines += _plain_lines(whole)
            whole = []
        for line in whole if may_be_entries else (line.rstrip("\r") for line in whole):
            self._add(line, log_lines, may_be_entry=may_be_entries)
            self._is_begun = self._is_drawn = False
        if may_be_entries and last[10:11] == "T" and len(last) < _LONGEST_ENTRY:
            self._begun = last.encode() + self._begun  # an entry that goes on behind its drawings
        elif last:
            self._add(last, log_lines, may_be_entry=may_be_entries)
        return log_lines

    def _add(self, line: str, log_lines: list[LogLine], *, may_be_entry: bool) -> None:
        """Add the drawings of a line, or of a part of it, or what an entry holds."""
        if may_be_entry and not self._is_begun and (entry := _entry_of(line)):
            of_stream = self._streams.setdefault(entry.is_error, LogLines(may_have_entries=False))
            shown = of_stream.feed(entry.text.encode("utf-8", "replace"))
            log_lines += [log_line._replace(stamp=entry.stamp) for log_line in shown]
        elif not _is_binary(line):
            self._is_begun = True
            drawings = line.split("\r")
            for number, drawing in enumerate(drawings, 1):
                if drawing and not drawing.isspace():
                    head, is_over = drawing[:LONGEST_LINE], number < len(drawings)
                    log_lines.append(LogLine(head, self._is_drawn, is_drawn_over=is_over))
                    self._is_drawn = True


def _is_binary(line: str) -> bool:
    """Tell whether a line is no text, by its many control characters that no program prints to a
    terminal. Such lines are slow to read, and have no points."""
    if line.isprintable():
        return False
    begin = line[:_JUDGED]
    return len(_CONTROLS.findall(begin)) > max(_FEW, len(begin) // _ONE_IN)


class _Entry(NamedTuple):
    """What an entry holds: text, with the newline where a line ends, whether its stream is that of
    errors (hostile entries name endless others), and its time."""

    text: str
    is_error: bool
    stamp: str


def _may_be_entry(line: str) -> bool:
    """Tell whether a line may be an entry: a quick look at some characters."""
    return line[10:11] == "T" or (line[:1] == "{" and ('{"log":' in line or '"MESSAGE"' in line))


def _entry_of(line: str) -> _Entry | None:
    """Return the entry that a line is, None if it is none."""
    if line[:1] != "{":
        match = _CRI.match(line)
        end = "\n" if match and match[3] == "F" else ""
        return _Entry(line[match.end() :] + end, match[2] == "stderr", match[1]) if match else None
    try:
        record = json.loads(line)
        text, is_error = record.get("log", record.get("MESSAGE")), record.get("stream") == "stderr"
        stamp = str(record.get("time") or record.get("@timestamp") or "")
        if micros := record.get("__REALTIME_TIMESTAMP"):
            stamp = f"{int(micros) / 1e6:.6f}"
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return None
    if not isinstance(text, str):
        return None
    is_part = "log" in record and len(text.rpartition("\n")[2]) >= _LEAST_PART
    return _Entry(text if is_part or text.endswith("\n") else f"{text}\n", is_error, stamp)


def _plain(data: bytes) -> bool:
    """Tell whether this is one line that needs no cleaning, as most lines are."""
    return data.find(b"\n") == len(data) - 1 < LONGEST_LINE and not _ODD.search(data)


def _plain_lines(lines: list[str]) -> Iterator[LogLine]:
    """Yield the lines that are not blank, as `LogLine`. They are made in C, which saves a tenth of
    the time for a usual line."""
    shown = [line[:LONGEST_LINE] for line in lines if line and not line.isspace()]
    rest = (repeat(False), repeat(""), repeat(""), repeat(True), repeat(False))
    return map(partial(tuple.__new__, LogLine), zip(shown, *rest, strict=False))


def _clean(text: str) -> str:
    if "\x1b" in text:
        text = _ESCAPES.sub("", text)
    if "\ufeff" in text or "\0" in text:
        text = text.replace("\ufeff", "").replace("\0", "")
    return text
