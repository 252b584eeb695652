"""TensorBoard event files: records, scalars of every kind, damage, growth."""

import math
import os
import struct
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dltools.probe.files.event_file import EventFile, Logged, _masked_crc


def varint(value: int) -> bytes:
    out = b""
    value &= (1 << 64) - 1
    while value >= 0x80:
        out += bytes([value & 0x7F | 0x80])
        value >>= 7
    return out + bytes([value])


def field(number: int, value: int | bytes) -> bytes:
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    return varint(number << 3 | 2) + varint(len(value)) + value


def fixed(number: int, value: bytes) -> bytes:
    return varint(number << 3 | (1 if len(value) == 8 else 5)) + value


def simple(tag: str, value: float) -> bytes:
    return field(1, field(1, tag.encode()) + fixed(2, struct.pack("<f", value)))


def tensor(tag: str, content: bytes) -> bytes:
    return field(1, field(1, tag.encode()) + field(8, content))


def event(time: float, step: int, summary: bytes) -> bytes:
    return fixed(1, struct.pack("<d", time)) + field(2, step) + field(5, summary)


def record(data: bytes) -> bytes:
    head = struct.pack("<Q", len(data))
    return head + struct.pack("<I", _masked_crc(head)) + data + struct.pack("<I", _masked_crc(data))


HEAD = record(fixed(1, struct.pack("<d", 1.7e9)) + field(3, b"brain.Event:2"))


def test_the_checksum_is_castagnolis() -> None:
    # RFC 3720, B.4: the CRC-32C of 32 zero bytes is aa 36 91 8a; then TensorFlow's mask.
    crc = 0x8A9136AA
    assert _masked_crc(bytes(32)) == ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF


Scalar = tuple[float | None, int | None, str, float]


def scalars(logged: list[Logged]) -> list[Scalar]:
    return [(one.seconds, one.step, *value) for one in logged for value in one.values.items()]


def read(data: bytes) -> list[Scalar]:
    return scalars(EventFile().feed(data))


def number(kind: int, value: bytes) -> bytes:
    """An event of a tensor: its type, and the field of its values."""
    return event(1.0, 1, tensor("x", field(1, kind) + value))


HALF, TENTH = struct.pack("<f", 0.5), struct.pack("<d", 0.1)


@pytest.mark.parametrize(
    ("logged", "expected"),
    [
        (event(1.7e9, 5, simple("loss", 0.5) + simple("acc", 0.25)),
         [(1.7e9, 5, "loss", 0.5), (1.7e9, 5, "acc", 0.25)]),
        (event(-1.0, -5, simple("loss", 1)), [(-1.0, -5, "loss", 1.0)]),
        # Tensors of one number are scalars, others none.
        (number(1, field(4, HALF)), [(1.0, 1, "x", 0.5)]),
        (number(2, field(4, TENTH)), [(1.0, 1, "x", 0.1)]),
        (number(1, field(5, HALF)), [(1.0, 1, "x", 0.5)]),
        (number(1, fixed(5, HALF)), [(1.0, 1, "x", 0.5)]),
        (number(2, field(6, TENTH)), [(1.0, 1, "x", 0.1)]),
        (number(1, field(5, HALF + HALF)), []),
        (number(7, field(8, b"a string")), []),
        (number(1, field(4, b"123")), []),
        (event(1.0, 1, tensor("x", b"")), []),
    ],
)  # fmt: skip
def test_scalars_are_read(logged, expected) -> None:
    assert read(HEAD + record(logged)) == expected


def test_a_diverged_loss_is_data() -> None:
    ((_, _, _, value),) = read(record(event(1.0, 1, simple("loss", math.nan))))
    assert math.isnan(value)


DATA = HEAD + b"".join(record(event(1.7e9 + n, n, simple("loss", n))) for n in range(5))


@given(st.lists(st.integers(0, len(DATA)), max_size=8))
def test_pieces_of_any_size_give_the_same(cuts) -> None:
    events, found = EventFile(), list[Scalar]()
    edges = [0, *sorted(cuts), len(DATA)]
    for start, end in zip(edges, edges[1:], strict=False):
        found += scalars(events.feed(DATA[start:end]))
    assert found == read(DATA)
    assert len(found) == 5


@given(st.integers(0, len(DATA) - 1))
def test_a_torn_file_gives_its_whole_records(cut) -> None:
    found = read(DATA[:cut])
    assert found == read(DATA)[: len(found)]


def test_damage_ends_the_reading() -> None:
    events = EventFile()
    assert len(events.feed(DATA + b"\x07" * 40 + DATA)) == 5
    assert events.damage == "event file: damaged"
    assert events.feed(DATA) == []


@given(st.binary(max_size=300))
def test_bytes_without_a_checksum_are_no_records(data) -> None:
    assert read(data) == []


@given(st.binary(max_size=300))
def test_a_record_of_any_bytes_costs_no_other_record(data) -> None:
    for odd in (record(data), record(event(1.0, 1, data))):
        found = read(odd + DATA)
        assert found[-5:] == read(DATA)
        for time, step, tag, value in found:
            assert (type(time), type(step), type(tag), type(value)) == (float, int, str, float)


REAL = (
    Path(os.environ.get("DLTOOLS_DATA") or Path(__file__).parents[4] / "shared" / "data")
    / "logs/tfevents/uvadlc"
)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("tutorial17__classification__ResNet__events.out.tfevents.ResNet",
         {"epoch": 206, "train_loss": 156, "train_acc": 156, "val_loss": 50, "val_acc": 50,
          "lr-AdamW": 100}),
        ("JAX__tutorial5__GoogleNet__events.out.tfevents.googlenet",
         {"train/loss": 200, "train/acc": 200, "val/acc": 100}),
        ("JAX__tutorial5__ResNet__events.out.tfevents.resnet",
         {"train/loss": 200, "train/acc": 200, "val/acc": 100}),
    ],
)  # fmt: skip
def test_real_files_hold_as_many_as_their_tags_are_written(name, expected) -> None:
    path = REAL / name
    if not path.exists():
        pytest.skip("the real event files are not at hand: set DLTOOLS_DATA")
    data = path.read_bytes()
    counts: dict[str, int] = {}
    for time, _, tag, _ in read(data):
        counts[tag] = counts.get(tag, 0) + 1
        assert 1.5e9 < time < 2e9
    assert counts == expected
    for tag, count in expected.items():  # a second method: the tag's own bytes in the file
        encoded = tag.encode()
        assert data.count(bytes([10, len(encoded)]) + encoded) == count
