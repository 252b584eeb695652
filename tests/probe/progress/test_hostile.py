"""Lines made to hold an expression up: each took from seconds to for ever before it was bounded."""

import json
import random
import time
import tracemalloc

import pytest
from helpers.excerpts import read

from dltools.probe.progress import Automatic, PointReader

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


LONG = [
    "loss: " + "[(" * 8000, "loss " * 3000, "a/" * 8000, "loss=tensor(" * 1300,
    "epoch [" + " " * 16000, "[" + "1/" * 8000, "epoch 1" + ",[" * 8000,
    "train " * 2500 + "loss: 1",
    "val loss: 1 " * 1300, '{"log":' * 2000, "(" + "pid=" * 4000, "a-1" * 5000, "0: " * 5000,
    "2026-01-31 " * 1400, "1,111" * 3000 + " loss 1", "loss " + "\t" * 16000,
    "-" * 16000 + "loss 1",
    "loss: 0.5 " + "x " * 8000, " " * 16000 + "loss: 1", "loss" + "'" * 16000 + ": 1",
]  # fmt: skip


@pytest.mark.parametrize("line", LONG, ids=lambda line: line[:12])
def test_no_long_line_takes_long_in_a_log(line) -> None:
    read(b"warm loss: 1\n")
    begun = time.process_time()
    read(b"warm loss: 1\n" + line.encode() + b"\n")
    assert time.process_time() - begun < 1.0


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


def test_entries_of_ever_new_streams_take_no_memory() -> None:
    reader = PointReader(Automatic())
    entry = json.dumps({"log": "x" * 5000, "stream": "%d" + "s" * 5000}) + "\n"
    reader.feed(b"".join((entry % number).encode() for number in range(10)))
    tracemalloc.start()
    for number in range(10, 500):
        reader.feed((entry % number).encode())
    kept = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()
    assert kept < 500_000
