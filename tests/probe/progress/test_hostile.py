"""Lines made to hold an expression up: each took from seconds to for ever before it was bounded."""

from __future__ import annotations

import time

import pytest

from dltools.probe.progress import Automatic

MANY = 16_000
LONGEST_S = 2.0
"""CPU time that the lines may take together, with what is compiled for them."""

HOSTILE = {
    "logfmt, two ways to read a value": ["loss=1 " + 'z="." ' * 300 + "~"],
    "a number's digits split in two": ["steps: 10 loss: " + "0" * MANY + "~"],
    "nvidia, three runs in one word": [
        "DLL 2020-01-31 12:00:00.1 - " + "9/top1/" * (MANY // 7)
    ],
    "tqdm, where the count begins": ["loss=] /s " + "01" * (MANY // 2)],
    "latency, blanks before the value": ["serving time" + " " * MANY + "!"],
    "baselines, a row of blanks": ["-----", "| " + " " * MANY + "!", "loss"],
    "lightning, blanks before the value": ["Test metric", "ZZ" + "\t" * MANY + "~"],
    "yolo, a header of blanks": ["Epoch GPU_mem" + " " * MANY],
    "deepspeed, one endless word": ["Epoch: 1 | Step: 1 | a_loss " + "a" * MANY],
}  # fmt: skip


@pytest.mark.parametrize("lines", HOSTILE.values(), ids=HOSTILE)
def test_no_line_takes_long(lines: list[str]) -> None:
    reader = Automatic()
    begun = time.process_time()
    for line in lines:
        assert [point.metric for point in reader.points(line)] in ([], ["loss"])
    assert time.process_time() - begun < LONGEST_S
