"""Local files of wandb, SwanLab and trackio, written here as their formats say."""

import json
import sqlite3
import struct
import time
import zlib
from contextlib import closing

import pytest
from hypothesis import given
from hypothesis import strategies as st
from probe.files.test_event_file import field, fixed
from probe.files.test_file_source import new

from dltools.probe.files.event_file import Logged
from dltools.probe.files.file_source import FileSource
from dltools.probe.files.readers import reader_of
from dltools.probe.files.tracker_files import Database, Journal

BLOCK = 32_768


def message(*parts: tuple[int, int | float | str | bytes]) -> bytes:
    """A message of protobuf: numbers of fields with their values."""
    return b"".join(
        fixed(number, struct.pack("<d", value))
        if isinstance(value, float)
        else field(number, value.encode() if isinstance(value, str) else value)
        for number, value in parts
    )


def journal(head: bytes, records: list[bytes]) -> bytes:
    """A journal: records in fragments that end with their block."""
    found = bytearray(head)
    for record in records:
        rest, kind = record, 1
        while True:
            if (left := BLOCK - len(found) % BLOCK) < 7:
                found += bytes(left)
                left = BLOCK
            part, rest = rest[: left - 7], rest[left - 7 :]
            if rest:
                kind = 2 if kind == 1 else 3
            elif kind != 1:
                kind = 4
            check = zlib.crc32(bytes([kind]) + part)
            found += struct.pack("<IHB", check, len(part), kind) + part
            if not rest:
                break
    return bytes(found)


def wandb(step: int, **values: float) -> bytes:
    items = [(1, message((2, name), (16, json.dumps(value)))) for name, value in values.items()]
    items += [(1, message((2, "_timestamp"), (16, str(1_770_000_000 + step))))]
    return message((2, message(*items, (2, message((1, step))))), (99, "x" * 9000))


def swanlab(step: int, name: str, value: float) -> bytes:
    time = message((1, 1_770_000_000 + step), (2, 500_000_000))
    scalar = message((1, name), (2, step), (4, time), (5, message((1, value))))
    return message((1, step), (13, scalar))


WANDB = journal(
    b":W&B" + struct.pack("<HB", 0xBEE1, 0),
    [wandb(step, **{"loss": 3.0 - step / 8, "_runtime": 0.5, "lr": 0.1}) for step in range(12)],
)
SWANLAB = journal(
    b":SWL" + struct.pack("<HB", 0xE1D6, 2),
    [swanlab(step, "train/loss", 3.0 - step / 8) for step in range(12)],
)


@pytest.mark.parametrize(
    ("name", "data", "metric"),
    [
        ("wandb/offline-run-20310101_000000-ab12/run-ab12.wandb", WANDB, "loss"),
        ("swanlog/run-20310101_000000-ab12/run-ab12.swanlab", SWANLAB, "train_loss"),
    ],
)
def test_a_journal_is_read_as_it_grows(tmp_path, name, data, metric) -> None:
    file = tmp_path / "run" / name
    file.parent.mkdir(parents=True)
    file.write_bytes(data[:40_000])
    source = FileSource(str(tmp_path), None, ["/run"])
    first = new(source)
    with file.open("ab") as log:
        log.write(data[40_000:])
    tracker = name[: name.index("/")].replace("swanlog", "swanlab")
    wanted = [(metric, 3.0 - step / 8, step, None, tracker) for step in range(12)]
    assert first + new(source, 1.0) == wanted
    assert len(first) < 12 or tracker == "swanlab"
    reader = reader_of(f"/run/{name}")
    assert reader is not None
    times = [timed.seconds for timed in reader.feed(data)]
    half = 0.5 if tracker == "swanlab" else 0.0
    assert times == [1_770_000_000 + step + half for step in range(12)]


@pytest.mark.parametrize("data", [WANDB, SWANLAB])
def test_pieces_of_any_size_give_the_same(data) -> None:
    whole, pieces = Journal(), Journal()
    found = [one for at in range(0, len(data), 97) for one in pieces.feed(data[at : at + 97])]
    assert found == whole.feed(data)


def test_a_damaged_journal_gives_what_stands_before_the_damage() -> None:
    log = Journal()
    assert len(log.feed(WANDB[:60_000] + b"?" + WANDB[60_001:])) < 12
    assert log.is_damaged
    assert Journal().feed(b"SQLite format 3\0" * 9) == []


EMPTY_PART = struct.pack("<IHB", zlib.crc32(b"\3"), 0, 3)


@pytest.mark.slow
@pytest.mark.parametrize(
    "data",
    [
        journal(WANDB[:7], [b"\x80\1\1"] * 400_000),
        WANDB[:7] + EMPTY_PART * 4680 + b"\0" + (EMPTY_PART * 4681 + b"\0") * 16,
    ],
    ids=["records", "parts"],
)
def test_the_time_to_read_a_journal_grows_with_its_size(data) -> None:
    begun = time.thread_time()
    assert Journal().feed(data) == []
    assert time.thread_time() - begun < 12


@given(st.binary(max_size=300))
def test_no_bytes_make_it_fail(data) -> None:
    found = [
        *Journal().feed(b":W&B\xe1\xbe\0" + data),
        *Journal().feed(journal(b":SWL\xd6\xe1\2", [data])),
        *Database().feed(b"SQLite format 3\0" + data, data),
    ]
    assert all(isinstance(one, Logged) for one in found)


def test_a_database_of_trackio_is_read_with_its_log(tmp_path) -> None:
    file = tmp_path / "run" / "trackio" / "job.db"
    file.parent.mkdir(parents=True)
    source = FileSource(str(tmp_path), None, ["/run"])
    with closing(sqlite3.connect(file)) as base:
        base.execute("PRAGMA journal_mode = WAL")
        base.execute("CREATE TABLE metrics (id INTEGER PRIMARY KEY, timestamp TEXT, step INTEGER,"
                     " metrics TEXT)")  # fmt: skip
        # trackio has indices with functions.
        base.execute("CREATE UNIQUE INDEX whose ON metrics(id, COALESCE(step, 0))")
        add(base, 0, {"loss": 2.5, "epoch": 0.5, "lr": 0.1, "note": "x", "image": {"a": 1}})
        assert new(source) == [("loss", 2.5, 0, 0.5, "trackio")]
        assert new(source, 1.0) == []
        base.execute("PRAGMA wal_checkpoint")
        add(base, 1, {"loss": 2.25, "val/loss": 2.0})
        assert new(source, 2.0) == [
            ("loss", 2.25, 1, None, "trackio"),
            ("val_loss", 2.0, 1, None, "trackio"),
        ]
        times = [
            timed.time.isoformat() for timed in FileSource(str(tmp_path), None, ["/run"]).read(0)
        ]
        assert times[0] == "2031-01-01T00:00:00+00:00"


def add(base: sqlite3.Connection, step: int, record: dict[str, object]) -> None:
    row = (f"2031-01-01T00:00:{step:02}+00:00", step, json.dumps(record))
    base.execute("INSERT INTO metrics (timestamp, step, metrics) VALUES (?, ?, ?)", row)
    base.commit()


@pytest.mark.parametrize(
    "columns",
    [
        "i AS id, '' AS timestamp, i AS step, '{}' AS metrics",
        "i AS id, '' AS timestamp, i AS step, hex(zeroblob(200000000)) AS metrics",
        "i AS id, '' AS timestamp, i AS step, instr(hex(zeroblob(400000)),"
        " hex(zeroblob(200000)) || '1') AS metrics",
    ],
    ids=["rows", "large", "slow"],
)
def test_a_database_whose_query_never_ends_is_left(tmp_path, columns) -> None:
    file = tmp_path / "job.db"
    with closing(sqlite3.connect(file)) as base:
        base.execute("CREATE VIEW metrics AS WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1"
                     f" FROM n) SELECT {columns} FROM n")  # fmt: skip
        base.commit()
    begun = time.thread_time()
    assert Database().feed(file.read_bytes(), b"") == []
    assert time.thread_time() - begun < 5


def test_a_log_of_many_transactions_is_read_at_once(tmp_path) -> None:
    file = tmp_path / "job.db"
    with closing(sqlite3.connect(file)) as base:
        base.execute("CREATE TABLE metrics (id INTEGER PRIMARY KEY, timestamp TEXT, step INTEGER,"
                     " metrics TEXT)")  # fmt: skip
        add(base, 0, {"loss": 2.5})
        base.execute("CREATE TABLE other AS SELECT zeroblob(8000000)")
        base.commit()
    data, salt = file.read_bytes(), b"12345678"
    frame = struct.pack(">II", 1, len(data) // 16) + salt + bytes(8) + data[:16]
    log = struct.pack(">IIII", 0x377F0682, 3007000, 16, 0) + salt + bytes(8) + frame * 150_000
    begun = time.thread_time()
    assert [logged.values for logged in Database().feed(data, log)] == [{"loss": 2.5}]
    assert time.thread_time() - begun < 5
