"""Lines made to hold an expression up: each took from seconds to for ever before it was bounded."""

import random
import time

import pytest

from dltools.probe.progress import Automatic, Point
from dltools.probe.progress.pipeline import PointReader

MANY = 16_000
LONGEST_S = 2.0
"""CPU time that the lines may take together, with what is compiled for them."""

HOSTILE = {
    "logfmt, two ways to read a value": ["loss=1 " + 'z="." ' * 300 + "~"],
    "a number's digits split in two": ["steps: 10 loss: " + "0" * MANY + "~"],
    "nvidia, three runs in one word": ["DLL 2020-01-31 12:00:00.1 - " + "9/top1/" * (MANY // 7)],
    "tqdm, where the count begins": ["loss=] /s " + "01" * (MANY // 2)],
    "latency, blanks before the value": ["serving time" + " " * MANY + "!"],
    "baselines, a row of blanks": ["-----", "| " + " " * MANY + "!", "loss"],
    "lightning, blanks before the value": ["Test metric", "ZZ" + "\t" * MANY + "~"],
    "yolo, a header of blanks": ["Epoch GPU_mem" + " " * MANY],
    "deepspeed, one endless word": ["Epoch: 1 | Step: 1 | a_loss " + "a" * MANY],
}


@pytest.mark.parametrize("lines", HOSTILE.values(), ids=HOSTILE)
def test_no_line_takes_long(lines) -> None:
    reader = Automatic()
    begun = time.process_time()
    for line in lines:
        assert [point.metric for point in reader.points(line)] in ([], ["loss"])
    assert time.process_time() - begun < LONGEST_S


def read(data: bytes) -> list[Point]:
    reader: PointReader[None] = PointReader(Automatic())
    return [*reader.feed(data), *reader.end()]


def test_a_hundred_thousand_numbers_in_random_bytes_cost_little() -> None:
    """Every family tried each of their lines: 18 s for 50 MB with a million numbers."""
    chance = random.Random(0)
    junk = b"".join(chance.randbytes(40) + b" %.3f " % chance.random() for _ in range(100_000))
    begun = time.process_time()
    assert read(junk) == []
    assert time.process_time() - begun < LONGEST_S


@pytest.mark.parametrize(
    "line",
    [
        b"\x1b[1mstep 1 loss: 0.5\x1b[0m\x07",
        "第 3 轮 loss: 0.5".encode("gbk"),
        "époque 3 loss: 0.5".encode("latin-1"),
        b"\x01\x02$ loss: 0.5",
        "loss: 0.5".encode("utf-16-le"),
        b"\0" * 5000 + b"loss: 0.5",
        b"|\x08/\x08-\x08" * 200 + b" loss: 0.5",
    ],
)
def test_odd_text_is_text(line) -> None:
    assert [point.value for point in read(line + b"\n")] == [0.5]
