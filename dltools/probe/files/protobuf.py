"""Messages of protobuf, read without their definition: fields by their numbers."""

from __future__ import annotations

import struct
from collections.abc import Iterator


class Message:
    """The fields of a message; of a field that comes again the last one counts. Raises IndexError
    or ValueError for what is no message."""

    def __init__(self, data: bytes) -> None:
        self._fields: dict[int, list[int | bytes]] = {}
        for number, value in _fields(data):
            self._fields.setdefault(number, []).append(value)

    def all(self, number: int) -> list[bytes]:
        """Return the values of a field of bytes, text, messages or floats."""
        return [value for value in self._fields.get(number, ()) if isinstance(value, bytes)]

    def bytes(self, number: int) -> bytes:
        """Return such a value, b"" for none."""
        return (self.all(number) or [b""])[-1]

    def integer(self, number: int) -> int | None:
        """Return an integer of up to 64 bits, with the sign of an int64; None for none."""
        values = [value for value in self._fields.get(number, ()) if isinstance(value, int)]
        return None if not values else values[-1] - ((values[-1] >> 63) << 64)

    def real(self, number: int) -> float | None:
        """Return a float or a double, None for none."""
        packed = {4: "<f", 8: "<d"}.get(len(data := self.bytes(number)))
        return float(struct.unpack(packed, data)[0]) if packed else None


def _fields(data: bytes) -> Iterator[tuple[int, int | bytes]]:
    """Yield a message's fields: number, and its integer or bytes."""
    at = 0
    while at < len(data):
        key, at = _varint(data, at)
        number, kind = key >> 3, key & 7
        if kind == 0:
            value, at = _varint(data, at)
            yield number, value
            continue
        if kind == 1:
            size = 8
        elif kind == 5:
            size = 4
        elif kind == 2:
            size, at = _varint(data, at)
        else:
            raise ValueError(f"wire type {kind}")
        if at + size > len(data):
            raise IndexError("field beyond its message")
        yield number, data[at : at + size]
        at += size


def _varint(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value & (1 << 64) - 1, at
        shift += 7
        if shift > 63:
            raise ValueError("varint of more than 64 bits")
