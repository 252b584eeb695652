"""TensorBoard event files: scalars out of TFRecords of Event messages, without TensorFlow.

A record is a length (8 bytes), its masked CRC-32C (4), the data, and the data's CRC (4), little
endian. The length's CRC is verified, so that a reader notices when it has lost its place. That of
the data is not: it would take most of the time in Python, and a torn record is known by its length.
These fields of Event (event.proto, summary.proto, tensor.proto of TensorFlow) are read: wall_time
1, step 2, summary 5, its value 1 with tag 1, simple_value 2, tensor 8 (dtype 1, content 4, float 5,
double 6): all that the writers of TensorFlow, PyTorch and tensorboardX write for a scalar.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import NamedTuple


class Scalar(NamedTuple):
    """A value of a tag, at a step and a time in seconds since the epoch."""

    wall_time: float
    step: int
    tag: str
    value: float


_LARGEST = 64 << 20
_FORMATS = {1: "<f", 2: "<d"}
"""How the content of a tensor is packed, by its type."""


class EventFile:
    """Reads one event file as it grows. After damage it gives nothing; `damage` says why."""

    def __init__(self) -> None:
        self._rest = b""
        self.damage: str | None = None

    def feed(self, data: bytes) -> list[Scalar]:
        """Return the scalars of the records that are now whole."""
        if self.damage is not None:
            return []
        data = self._rest + data
        start = 0
        found: list[Scalar] = []
        while len(data) - start >= 12:
            (length,) = struct.unpack_from("<Q", data, start)
            (check,) = struct.unpack_from("<I", data, start + 8)
            if length > _LARGEST or check != _masked_crc(data[start : start + 8]):
                self.damage = "event file: damaged"
                break
            end = start + 12 + length + 4
            if end > len(data):
                break
            found += _scalars(data[start + 12 : end - 4])
            start = end
        self._rest = b"" if self.damage else data[start:]
        return found


def _scalars(event: bytes) -> list[Scalar]:
    try:
        wall_time, step, summary = 0.0, 0, b""
        for number, value in fields(event):
            if number == 1 and isinstance(value, bytes):
                (wall_time,) = struct.unpack("<d", value)
            elif number == 2 and isinstance(value, int):
                step = _signed(value)
            elif number == 5 and isinstance(value, bytes):
                summary = value
        found = []
        for number, value in fields(summary):
            if number == 1 and isinstance(value, bytes) and (scalar := _value(value)):
                found.append(Scalar(wall_time, step, *scalar))
        return found
    except (struct.error, IndexError, UnicodeDecodeError, ValueError):
        return []


def _value(data: bytes) -> tuple[str, float] | None:
    tag, number_found = "", None
    for number, value in fields(data):
        if number == 1 and isinstance(value, bytes):
            tag = value.decode()
        elif number == 2 and isinstance(value, bytes) and len(value) == 4:
            (number_found,) = struct.unpack("<f", value)
        elif number == 8 and isinstance(value, bytes):
            number_found = _tensor(value)
    return (tag, number_found) if tag and number_found is not None else None


def _tensor(data: bytes) -> float | None:
    """Return a tensor's number, None unless it has just one."""
    packed, content, dtype = "", b"", 0
    for number, value in fields(data):
        if number == 1 and isinstance(value, int):
            dtype = value
        elif number in (4, 5, 6) and isinstance(value, bytes):
            content, packed = value, {5: "<f", 6: "<d"}.get(number, "")
    packed = packed or _FORMATS.get(dtype, "")
    numbers = list(struct.iter_unpack(packed, content)) if packed else []
    return float(numbers[0][0]) if len(numbers) == 1 else None


def fields(data: bytes) -> Iterator[tuple[int, int | bytes]]:
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
            return value, at
        shift += 7
        if shift > 63:
            raise ValueError("varint of more than 64 bits")


def _signed(value: int) -> int:
    return value - (1 << 64) if value >= 1 << 63 else value


def _table() -> list[int]:
    table = []
    for byte in range(256):
        for _ in range(8):
            byte = byte >> 1 ^ (0x82F63B78 if byte & 1 else 0)
        table.append(byte)
    return table


_CRC = _table()


def _masked_crc(data: bytes) -> int:
    """Return the CRC-32C as TFRecords have it: rotated by 15 bits, plus a constant."""
    crc = 0xFFFFFFFF
    for byte in data:
        crc = crc >> 8 ^ _CRC[(crc ^ byte) & 0xFF]
    crc ^= 0xFFFFFFFF
    return ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF
