"""Local files of experiment trackers: the journals of wandb and SwanLab, the database of trackio.

A journal has LevelDB's log format: a header of 7 bytes, then blocks of 32 KiB with fragments, each
with its CRC-32 (4 bytes), length (2) and type (1): a whole record, or the first, a middle or the
last part of one. A record is a message of protobuf; these fields are read, of wandb's
wandb_internal.proto: history 2, its item 1 (key 1, nested_key 2, integer 5, number 6, value_json
16) and step 2; of SwanLab's record.proto: scalar 13 (key 1, step 2, timestamp 4, value 5).

The database is SQLite's, with a table of JSON objects; what is still in the write-ahead log (file
format 4) is read too. It is read in memory: nobody's lock is taken, nothing is written.
"""

from __future__ import annotations

import contextlib
import json
import struct
import time
import zlib
from collections.abc import Iterator
from datetime import datetime

from dltools.probe.files.event_file import Logged
from dltools.probe.files.protobuf import Message

_BLOCK, _HEADER = 32_768, 7
_FULL, _FIRST, _MIDDLE, _LAST = 1, 2, 3, 4
_LARGEST = 8 << 20
_NAMES = {b":W&B": "wandb", b":SWL": "swanlab"}


class Journal:
    """Reads a journal of wandb or SwanLab as it grows. After damage it gives nothing."""

    def __init__(self) -> None:
        self._rest = bytearray()
        self._at = 0  # of the rest, in the file
        self._begun = bytearray()  # of a record
        self.tracker = ""
        self.is_damaged = False

    def feed(self, data: bytes) -> list[Logged]:
        """Return what the records that are now whole say."""
        self._rest += data
        events: list[Logged] = []
        for record in self._records():
            with contextlib.suppress(struct.error, IndexError, ValueError, RecursionError):
                reader = _of_wandb if self.tracker == "wandb" else _of_swanlab
                read = reader(Message(record))
                events += [read] if read is not None and read.values else []
        return events

    def _records(self) -> Iterator[bytes]:
        if not self._at and len(self._rest) >= _HEADER:
            self.tracker = _NAMES.get(bytes(self._rest[:4]), "")
            self.is_damaged = not self.tracker
            self._take(_HEADER)
        while not self.is_damaged and self._at:
            left = _BLOCK - self._at % _BLOCK
            if left < _HEADER:
                if len(self._rest) < left:
                    return
                self._take(left)
            if len(self._rest) < _HEADER:
                return
            check, length, kind = struct.unpack_from("<IHB", self._rest)
            if not check and not length and not kind:
                return  # made room for
            if len(self._rest) < _HEADER + length:
                return
            part = self._take(_HEADER + length)[_HEADER:]
            self.is_damaged = (
                not _FULL <= kind <= _LAST or zlib.crc32(part, zlib.crc32(bytes([kind]))) != check
            )
            if not self.is_damaged:
                yield from self._joined(part, kind)

    def _joined(self, part: bytes, kind: int) -> Iterator[bytes]:
        if kind in (_FULL, _FIRST):
            self._begun.clear()
        if len(self._begun) <= _LARGEST:
            self._begun += part
        if kind in (_FULL, _LAST):
            yield bytes(self._begun)
            self._begun.clear()

    def _take(self, size: int) -> bytes:
        taken = bytes(self._rest[:size])
        del self._rest[:size]
        self._at += size
        return taken


def _of_wandb(record: Message) -> Logged | None:
    """Return the history in a record of wandb, None if it has none."""
    history = Message(record.bytes(2))
    values = dict(filter(None, map(_item, map(Message, history.all(1)))))
    own, seconds = values.pop("_step", None), values.pop("_timestamp", None)
    said = history.all(2)
    step = (Message(said[-1]).integer(1) or 0) if said else None if own is None else int(own)
    return Logged(seconds, step, {k: v for k, v in values.items() if not k.startswith("_")})


def _item(item: Message) -> tuple[str, float] | None:
    """Return the name and the number of an item, None if it is no number."""
    name = "/".join(part.decode() for part in (*item.all(1), *item.all(2)) if part)
    value: object = item.real(6)
    if (whole := item.integer(5)) is not None:
        value = whole >> 1 ^ -(whole & 1)
    elif text := item.bytes(16):
        value = json.loads(text)
    is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
    return (name, float(value)) if name and is_number else None  # type: ignore[arg-type]


def _of_swanlab(record: Message) -> Logged | None:
    """Return the scalar in a record of SwanLab, None if it has none."""
    if not (said := record.bytes(13)):
        return None
    scalar = Message(said)
    time = Message(scalar.bytes(4))
    seconds = (time.integer(1) or 0) + (time.integer(2) or 0) / 1e9
    value = Message(scalar.bytes(5)).real(1) or 0.0
    return Logged(seconds or None, scalar.integer(2) or 0, {scalar.bytes(1).decode(): value})


_MAGIC = b"SQLite format 3\0"
_LONGEST_S = 1.0
"""CPU seconds. A view may call functions, of which one call may take hours: none may be called.
Indices may name some, as trackio's own do."""

_ROWS = "SELECT id, timestamp, step, metrics FROM metrics WHERE id > ? ORDER BY id"


class Database:
    """Reads a database of trackio, given as a whole, from the row after the last one read."""

    def __init__(self) -> None:
        self._newest = 0

    def feed(self, data: bytes, log: bytes) -> list[Logged]:
        """Return what the new rows say; `log` is the write-ahead log, b"" for none."""
        import sqlite3

        if not data.startswith(_MAGIC):
            return []
        events: list[Logged] = []
        with contextlib.closing(sqlite3.connect(":memory:")) as memory:
            until = time.thread_time() + _LONGEST_S
            memory.set_progress_handler(lambda: time.thread_time() > until, 100)
            memory.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, _LARGEST)
            memory.set_authorizer(lambda action, *_: action == sqlite3.SQLITE_FUNCTION)
            with contextlib.suppress(sqlite3.Error, ValueError, OverflowError):
                memory.deserialize(_with_log(data, log))
                memory.execute("PRAGMA trusted_schema = OFF")
                for number, moment, step, said in memory.execute(_ROWS, (self._newest,)):
                    self._newest = int(number)
                    events += _of_row(moment, step, said)
        return events


def _of_row(moment: object, step: object, said: object) -> list[Logged]:
    try:
        record = json.loads(said if isinstance(said, (str, bytes)) else "")
        seconds = datetime.fromisoformat(str(moment)).timestamp()
    except (ValueError, RecursionError, OverflowError):
        return []
    if not isinstance(record, dict):
        return []
    values = {
        name: float(value)
        for name, value in record.items()
        if isinstance(value, (int, float)) and not isinstance(value, bool) and abs(value) < 1e300
    }
    return [Logged(seconds, step if isinstance(step, int) else None, values)] if values else []


def _with_log(data: bytes, log: bytes) -> bytes:
    """Return a database with the pages of its write-ahead log, up to the last transaction."""
    pages = bytearray(data)
    if len(log) >= 32:
        (size,) = struct.unpack_from(">I", log, 8)
        at, total = 32, 0
        waiting, written = dict[int, bytes](), dict[int, bytes]()
        while size and at + 24 + size <= len(log) and log[at + 8 : at + 16] == log[16:24]:
            number, count = struct.unpack_from(">II", log, at)
            waiting[number] = log[at + 24 : at + 24 + size]
            at += 24 + size
            if count:
                written |= waiting
                waiting, total = {}, count
        if 0 < total * size <= 2 * _LARGEST:
            pages = pages[: total * size].ljust(total * size, b"\0")
            for page in filter(range(1, total + 1).__contains__, written):
                pages[(page - 1) * size : page * size] = written[page]
    pages[18:20] = b"\1\1"  # no write-ahead log
    return bytes(pages)
