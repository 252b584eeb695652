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
from typing import NamedTuple

from dltools.probe.files.protobuf import Message


class Logged(NamedTuple):
    """What a writer or a tracker was told at a step: values by name, and when (seconds since the
    epoch)."""

    seconds: float | None
    step: int | None
    values: dict[str, float]


_LARGEST = 64 << 20
_FORMATS = {1: "<f", 2: "<d"}
"""How the content of a tensor is packed, by its type."""


class EventFile:
    """Reads one event file as it grows. After damage it gives nothing; `damage` says why."""

    tracker = "tensorboard"

    def __init__(self) -> None:
        self._rest = b""
        self.damage: str | None = None

    def feed(self, data: bytes) -> list[Logged]:
        """Return what the records that are now whole say."""
        if self.damage is not None:
            return []
        data = self._rest + data
        start = 0
        events: list[Logged] = []
        while len(data) - start >= 12:
            (length,) = struct.unpack_from("<Q", data, start)
            (check,) = struct.unpack_from("<I", data, start + 8)
            if length > _LARGEST or check != _masked_crc(data[start : start + 8]):
                self.damage = "event file: damaged"
                break
            end = start + 12 + length + 4
            if end > len(data):
                break
            events += _events(data[start + 12 : end - 4])
            start = end
        self._rest = b"" if self.damage else data[start:]
        return events


def _events(data: bytes) -> list[Logged]:
    """Return the scalars of an event; [] if it is damaged."""
    values = {}
    try:
        event = Message(data)
        for value in map(Message, Message(event.bytes(5)).all(1)):
            tag, number = value.bytes(1).decode(), value.real(2)
            number = _tensor(Message(value.bytes(8))) if number is None else number
            if tag and number is not None:
                values[tag] = number
        return [Logged(event.real(1) or 0.0, event.integer(2) or 0, values)] if values else []
    except (struct.error, IndexError, ValueError):
        return []


def _tensor(tensor: Message) -> float | None:
    """Return a tensor's number, None unless it has just one."""
    packings = {4: _FORMATS.get(tensor.integer(1) or 0), 5: "<f", 6: "<d"}
    for field, packing in packings.items():
        if packing and (content := tensor.bytes(field)):
            numbers = list(struct.iter_unpack(packing, content))
            return float(numbers[0][0]) if len(numbers) == 1 else None
    return None


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
