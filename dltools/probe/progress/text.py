"""Lines out of what a job writes: bars redrawn in place, escape codes, endless lines, any bytes."""

from __future__ import annotations

import re

LONGEST_LINE = 16_384
"""Bytes of a line that are looked at: a million-character line costs no more memory."""

_ESCAPES = re.compile(
    r"\x1b(?:\[[0-9;:?<=>]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)?|[()][0-9A-B]|[@-Z\\-_])"
)
_TAG = re.compile(r"\[\d+,\d+\]<std\w{2,4}>:\s?")
_BACK = bytes.maketrans(b"\x08\x0b\x0c", b"\r\r\r")


class Lines:
    """Cuts a log, given in pieces of any size, into lines.

    A bar that is redrawn by carriage returns or backspaces gives a line for each drawing, marked
    as drawn over another. Escape codes, a byte order mark and mpirun's tags are taken off; bytes
    that are no UTF-8 are replaced; of a line beyond `LONGEST_LINE` bytes the rest is dropped.
    """

    def __init__(self) -> None:
        """Nothing is read yet."""
        self._begun = b""
        self._skipping = False
        self._drawn = False  # something stands on the present line already

    def feed(self, data: bytes) -> list[tuple[str, bool]]:
        """Return the lines that are now complete, without blank ones: text, and whether it was
        drawn over another."""
        if _plain(data) and not self._begun and not self._skipping:
            self._drawn = False
            line = data[:-1].decode("utf-8", "replace")
            return [(line, False)] if line and not line.isspace() else []
        data = data.translate(_BACK)
        end = max(data.rfind(b"\n"), data.rfind(b"\r")) + 1
        if not end:
            self._keep(data)
            return []
        head = data[:end]
        if self._skipping:
            first = min(at for at in (head.find(b"\n"), head.find(b"\r")) if at >= 0)
            head = head[first:]
        head = self._begun + head
        self._begun, self._skipping = b"", False
        self._keep(data[end:])
        return self._cut(head)

    def end(self) -> list[tuple[str, bool]]:
        """Return the last line, which had no end."""
        head, self._begun, self._skipping = self._begun, b"", False
        return self._cut(head)

    def _keep(self, tail: bytes) -> None:
        if self._skipping:
            return
        self._begun += tail
        if len(self._begun) > LONGEST_LINE:
            self._begun, self._skipping = self._begun[:LONGEST_LINE], True

    def _cut(self, data: bytes) -> list[tuple[str, bool]]:
        found = []
        for number, line in enumerate(_clean(data).split("\n")):
            if number:
                self._drawn = False
            for drawing in line.split("\r") if "\r" in line else (line,):
                if drawing and not drawing.isspace():
                    found.append((drawing[:LONGEST_LINE], self._drawn))
                    self._drawn = True
        return found


_ODD = re.compile(rb"[\r\x1b\x08\0\x0b\x0c]|\xef\xbb\xbf|<std")


def _plain(data: bytes) -> bool:
    """Tell whether this is one line as most are: nothing in it needs a second look."""
    return data.find(b"\n") == len(data) - 1 < LONGEST_LINE and not _ODD.search(data)


def _clean(data: bytes) -> str:
    text = data.decode("utf-8", "replace")
    if "\x1b" in text:
        text = _ESCAPES.sub("", text)
    if "\ufeff" in text or "\0" in text:
        text = text.replace("\ufeff", "").replace("\0", "")
    return _TAG.sub("", text) if "<std" in text else text
