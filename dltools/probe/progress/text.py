"""Lines out of what a job writes: bars redrawn in place, escape codes, endless lines, any bytes."""

from __future__ import annotations

import re

LONGEST_LINE = 16_384
"""Bytes of a line that are looked at: a million-character line costs no more memory."""

_ESCAPES = re.compile(
    r"\x1b(?:\[[0-9;:?<=>]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)?|[()][0-9A-B]|[@-Z\\-_])"
)
_TAG = re.compile(r"\[\d+,\d+\]<std\w{2,4}>:\s?")
_REDRAWN = bytes.maketrans(b"\r\x08\x0b\x0c", b"\n\n\n\n")


class Lines:
    """Cuts a log, given in pieces of any size, into lines.

    A bar that is redrawn by carriage returns or backspaces gives a line for each drawing. Escape
    codes, a byte order mark and mpirun's tags are taken off; bytes that are no UTF-8 are replaced;
    of a line beyond `LONGEST_LINE` bytes the rest is dropped.
    """

    def __init__(self) -> None:
        """Nothing is read yet."""
        self._begun = b""
        self._skipping = False

    def feed(self, data: bytes) -> list[str]:
        """Return the lines that are now complete, without blank ones."""
        head, found, tail = data.translate(_REDRAWN).rpartition(b"\n")
        if not found:
            self._keep(tail)
            return []
        if self._skipping:
            head = self._begun + b"\n" + head.partition(b"\n")[2]
        else:
            head = self._begun + head
        self._begun, self._skipping = b"", False
        self._keep(tail)
        return _clean(head)

    def end(self) -> list[str]:
        """Return the last line, which had no end."""
        head, self._begun, self._skipping = self._begun, b"", False
        return _clean(head)

    def _keep(self, tail: bytes) -> None:
        if self._skipping:
            return
        self._begun += tail
        if len(self._begun) > LONGEST_LINE:
            self._begun, self._skipping = self._begun[:LONGEST_LINE], True


def _clean(data: bytes) -> list[str]:
    text = data.decode("utf-8", "replace")
    if "\x1b" in text:
        text = _ESCAPES.sub("", text)
    if "\ufeff" in text or "\0" in text:
        text = text.replace("\ufeff", "").replace("\0", "")
    lines = text.split("\n")
    if "<std" in text:
        lines = [_TAG.sub("", line, count=1) for line in lines]
    return [line[:LONGEST_LINE] for line in lines if line and not line.isspace()]
