"""Cuts the output of a job into lines; the first step of the pipeline.

A log comes in pieces of any size and may hold any bytes: bars redrawn in place, escape codes,
endless lines.

A saved log may be a file of an engine, whose entries hold a time stamp, a stream, and a line or a
part of one. Docker's json-file (`{"log":"...","stream":"stderr","time":"..."}`) and CRI
(`2026-01-31T12:00:00Z stderr F ...`) cut lines of more than 16 KiB. In json-file only the last part
ends with a newline, unless another program has removed the newlines; CRI marks the last part F, for
full, and the other parts P.
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

_JSON = '{"log":'
_ODD = re.compile(rb"[\r\x1b\x08\0\x0b\x0c]|\xef\xbb\xbf")
_CONTROL_CHARACTERS = bytes((*range(1, 7), *range(14, 27), *range(28, 32)))

_OF_ENTRIES = (b" stdout ", b" stderr ", _JSON.encode())
"""What the entries of an engine's file have."""

_ESCAPES = re.compile(
    r"\x1b(?:\[[0-9;:?<=>]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)?|[()][0-9A-B]|[@-Z\\-_])"
)

_BACK = bytes.maketrans(b"\x08\x0b\x0c", b"\r\r\r")
_BACK_TEXT = str.maketrans("\x08\x0b\x0c", "\r\r\r")

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
    """A line of a log, and whether it was drawn over another.

    `stamp` is the time that a prefix of the line says, as text, "" for none. `rank` names the
    process that printed the line, "" where no prefix does. A rank that is only a number before a
    colon may be a step as well: `is_certain` is False. A line that `is_drawn_over` is a drawing
    that is not the last one of a bar.
    """

    text: str
    is_redrawn: bool
    stamp: str = ""
    rank: str = ""
    is_certain: bool = True
    is_drawn_over: bool = False


class LogLines:
    """Cuts a log, given in pieces of any size, into lines.

    A bar that is redrawn by carriage returns or backspaces gives a line for each drawing. Escape
    codes and a byte order mark are removed, and bytes that are no UTF-8 are replaced. Of each line
    only the first `LONGEST_LINE` bytes are kept; lines that are no text are dropped. Parts of a
    line in several entries of an engine's file are joined.
    """

    def __init__(self) -> None:
        self._begun = b""
        self._is_skipping = False
        self._parts: dict[str, _Part] = {}  # by stream
        self._begin()

    def feed(self, data: bytes) -> list[LogLine]:
        """Return the lines that are now complete, without blank ones."""
        if _plain(data) and not self._begun and not self._is_skipping:
            self._begin()
            line = data[:-1].decode("utf-8", "replace")
            if not _may_be_entry(line):
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
        found = self._cut(head)
        for part in self._parts.values():
            self._begin()
            self._is_drawn = part.is_redrawn
            self._draw(part.text, found)
        self._parts.clear()
        return found

    def _begin(self) -> None:
        """Begin a line."""
        self._is_begun = False
        self._is_drawn = False  # it already shows something
        self._stream = ""  # of the entry that it is, if that is a part of a line
        self._stamp = ""  # of the entry, for its first drawing

    def _keep(self, tail: bytes) -> None:
        if self._is_skipping:
            return
        self._begun += tail
        longest = LONGEST_LINE
        if len(self._begun) > longest:
            if self._begun.startswith(_JSON.encode()) or self._begun[10:11] == b"T":
                longest = _LONGEST_ENTRY
            if len(self._begun) > longest:
                self._begun, self._is_skipping = self._begun[:longest], True

    def _cut(self, data: bytes) -> list[LogLine]:
        found: list[LogLine] = []
        *whole, last = _clean(data.decode("utf-8", "replace")).split("\n")
        may_be_entries = any(word in data for word in _OF_ENTRIES)
        may_be_binary = len(data.translate(None, _CONTROL_CHARACTERS)) != len(data)
        if not (self._is_begun or b"\r" in data or may_be_entries or may_be_binary):
            found += _plain_lines(whole)
            whole = []
        for line in whole:
            if self._is_begun or "\r" in line or (may_be_entries and _may_be_entry(line)):
                self._add(line, found, is_whole=True)
                self._begin()
            elif line and not line.isspace() and not (may_be_binary and _is_binary(line)):
                found.append(LogLine(line[:LONGEST_LINE], is_redrawn=False))
        if last:
            self._add(last, found, is_whole=False)
        return found

    def _add(self, line: str, found: list[LogLine], *, is_whole: bool) -> None:
        """Add the drawings of a line, or of a part of it, that is an entry or none."""
        if self._is_begun or not _may_be_entry(line) or not (entries := _entries_of(line)):
            self._is_begun = True
            self._draw(line, found, is_whole=is_whole)
            return
        for entry in entries:
            self._begin()
            self._is_begun, self._stamp = True, entry.stamp
            text = _clean(entry.text.translate(_BACK_TEXT)) if line[0] == "{" else entry.text
            if (before := self._parts.pop(entry.stream, None)) is not None:
                text, self._is_drawn = before.text + text, before.is_redrawn
            if entry.is_part:
                self._stream = entry.stream
            self._draw(text, found, is_whole=is_whole or line[0] == "{")

    def _draw(self, line: str, found: list[LogLine], *, is_whole: bool = True) -> None:
        """Add drawings, without the last one if the next entry of the stream goes on with it."""
        rest = None
        if self._stream and is_whole:
            line, _, rest = line.rpartition("\r")
        if not _is_binary(line):
            self._draw_text(line, found)
        if rest is not None:
            self._parts[self._stream] = _Part(rest[:LONGEST_LINE], self._is_drawn)

    def _draw_text(self, line: str, found: list[LogLine]) -> None:
        drawings = line.split("\r")
        for number, drawing in enumerate(drawings, 1):
            if drawing and not drawing.isspace():
                head, is_over = drawing[:LONGEST_LINE], number < len(drawings)
                one = LogLine(head, self._is_drawn, self._stamp, is_drawn_over=is_over)
                found.append(one)
                self._is_drawn, self._stamp = True, ""


class _Part(NamedTuple):
    """The last drawing of an entry that is a part of a line."""

    text: str
    is_redrawn: bool


def _is_binary(line: str) -> bool:
    """Tell whether a line is no text, by its many control characters that no program prints to a
    terminal. Such lines are slow to read, and have no points."""
    if line.isprintable():
        return False
    begin = line[:_JUDGED]
    return len(_CONTROLS.findall(begin)) > max(_FEW, len(begin) // _ONE_IN)


class _Entry(NamedTuple):
    """The content of an entry: a line without its newline, or a part of a line, which the next
    entry of the stream continues."""

    text: str
    stream: str
    stamp: str
    is_part: bool


def _may_be_entry(line: str) -> bool:
    """Tell whether a line may be an entry: a quick look at some characters."""
    return line[10:11] == "T" or line.startswith(_JSON)


def _entries_of(line: str) -> list[_Entry]:
    """Return the entry that a line is, several for one of several lines; [] if it is none."""
    if line.startswith(_JSON):
        return _of_json(line)
    match = _CRI.match(line)
    if match is None:
        return []
    return [_Entry(line[match.end() :], match[2], match[1], match[3] == "P")]


def _of_json(line: str) -> list[_Entry]:
    try:
        record = json.loads(line)
        text, stream = record["log"], str(record.get("stream"))
        stamp = str(record.get("time") or record.get("@timestamp") or "")
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return []
    if not isinstance(text, str):
        return []
    *lines, last = text.split("\n")
    found = [_Entry(one, stream, stamp, is_part=False) for one in lines]
    if last or not lines:
        found.append(_Entry(last, stream, stamp, is_part=len(text) >= _LEAST_PART))
    return found


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
