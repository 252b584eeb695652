"""A stream of which the first bytes have been read and put back."""

from __future__ import annotations

import io
from typing import BinaryIO


class PrefixedStream(io.RawIOBase):
    """Some bytes, and the rest of a stream behind them."""

    def __init__(self, head: bytes, rest: BinaryIO | io.RawIOBase) -> None:
        """`head` is read first."""
        self._head = head
        self._rest = rest

    def readable(self) -> bool:
        """Tell that it can be read."""
        return True

    def read(self, size: int = -1) -> bytes:
        """Return that many bytes, fewer only at the end; all for -1."""
        if size < 0:
            head, self._head = self._head, b""
            return head + self._rest.read()
        head, self._head = self._head[:size], self._head[size:]
        return head if len(head) == size else head + read_exactly(self._rest, size - len(head))


def read_exactly(stream: BinaryIO | io.RawIOBase, size: int) -> bytes:
    """Return that many bytes of a stream that may give fewer at a time; fewer only at its end."""
    parts: list[bytes] = []
    while size > 0 and (part := stream.read(size)):
        parts.append(part)
        size -= len(part)
    return b"".join(parts)
