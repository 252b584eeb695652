"""The lines of what a job writes: bars redrawn in place, escape codes, endless lines, any bytes."""

from __future__ import annotations

import re
from typing import NamedTuple

LONGEST_LINE = 16_384
"""Bytes of a line that are read: a line of a million characters takes no more memory."""

_ESCAPES = re.compile(
    r"\x1b(?:\[[0-9;:?<=>]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)?|[()][0-9A-B]|[@-Z\\-_])"
)
_BACK = bytes.maketrans(b"\x08\x0b\x0c", b"\r\r\r")


class LogLine(NamedTuple):
    """A line of a log, and whether it was drawn over another.

    `stamp` is the time that a prefix of the line says, as text, "" for none. `rank` names the
    process that printed the line, "" where no prefix does. A rank that is only a number before a
    colon may be a step as well: `is_certain` is False.
    """

    text: str
    is_redrawn: bool
    stamp: str = ""
    rank: str = ""
    is_certain: bool = True


class LogLines:
    """Cuts a log, given in pieces of any size, into lines.

    A bar that is redrawn by carriage returns or backspaces gives a line for each drawing. Escape
    codes and a byte order mark are removed, bytes that are no UTF-8 replaced, and what follows the
    first `LONGEST_LINE` bytes of a line dropped, and lines that are no text.
    """

    def __init__(self) -> None:
        """Nothing is read yet."""
        self._begun = b""
        self._is_skipping = False
        self._is_drawn = False  # the present line already shows something

    def feed(self, data: bytes) -> list[LogLine]:
        """Return the lines that are now complete, without blank ones."""
        if _plain(data) and not self._begun and not self._is_skipping:
            self._is_drawn = False
            line = data[:-1].decode("utf-8", "replace")
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
        return self._cut(head)

    def _keep(self, tail: bytes) -> None:
        if self._is_skipping:
            return
        self._begun += tail
        if len(self._begun) > LONGEST_LINE:
            self._begun, self._is_skipping = self._begun[:LONGEST_LINE], True

    def _cut(self, data: bytes) -> list[LogLine]:
        found = []
        for number, line in enumerate(_clean(data).split("\n")):
            if number:
                self._is_drawn = False
            if _is_binary(line):
                continue
            for drawing in line.split("\r") if "\r" in line else (line,):
                if drawing and not drawing.isspace():
                    found.append(LogLine(drawing[:LONGEST_LINE], self._is_drawn))
                    self._is_drawn = True
        return found


_CONTROLS = re.compile("[\x01-\x06\x0e-\x1a\x1c-\x1f]")
_JUDGED, _FEW, _ONE_IN = 512, 3, 32


def _is_binary(line: str) -> bool:
    """Tell whether a line holds so many control characters that no program prints to a terminal
    that it is no text: bytes cost more to read than text, and say nothing."""
    if line.isprintable():
        return False
    begin = line[:_JUDGED]
    return len(_CONTROLS.findall(begin)) > max(_FEW, len(begin) // _ONE_IN)


_ODD = re.compile(rb"[\r\x1b\x08\0\x0b\x0c]|\xef\xbb\xbf")


def _plain(data: bytes) -> bool:
    """Tell whether this is one line that needs no cleaning, as most lines are."""
    return data.find(b"\n") == len(data) - 1 < LONGEST_LINE and not _ODD.search(data)


def _clean(data: bytes) -> str:
    text = data.decode("utf-8", "replace")
    if "\x1b" in text:
        text = _ESCAPES.sub("", text)
    if "\ufeff" in text or "\0" in text:
        text = text.replace("\ufeff", "").replace("\0", "")
    return text
