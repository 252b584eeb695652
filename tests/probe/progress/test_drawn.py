"""Drawings of a bar that are read together give what they give one by one."""

from __future__ import annotations

import io
from typing import Any

import pytest
from helpers.examples import examples
from hypothesis import given
from hypothesis import strategies as st

from dltools.observations.table import to_table
from dltools.probe import saved_logs
from dltools.probe.drawn_rows import DrawnRows
from dltools.probe.progress import Automatic, Pattern, PointReader

POSTFIXES = [
    "loss=0.{n}5",
    "loss=0.5, lr=1e-05, acc=0.{n}",
    "loss={n}, v_num=0",
    "x_loss: {n}.5 acc: 1",
]
HEADS = ["", "Epoch 1: ", "Validation: ", "[rank0]: ", "12:00:01 train: ", "loss 0.5: "]


def bar(head: str, n: int, spent: int, postfix: str) -> str:
    times = f"{spent // 60:02}:{spent % 60:02}<01:00"
    return f"{head}{n % 101:3}%|█▏  | {n}/900 [{times}, 9.5it/s, {postfix.format(n=n)}]"


def together(text: str) -> tuple[int, list[Any]]:
    """How many points were read together, and all rows."""
    count, rows = 0, []
    for batch in saved_logs.progress_batches(io.BytesIO(text.encode()), "job", Automatic()):
        if isinstance(batch, DrawnRows):
            count += len(batch)
            assert batch.table().equals(to_table(batch))
        rows += [
            (row["time"], row["gap"], row["metric"], row["metric_original"], repr(row["value"]),
             row["step"], row["epoch"], row["source"])
            for row in batch
        ]  # fmt: skip
    return count, rows


def one_by_one(text: str, monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    with monkeypatch.context() as patch:
        patch.setattr("dltools.probe.progress.drawn._OFTEN", 10**9)
        count, rows = together(text)
    assert count == 0
    return rows


@pytest.mark.parametrize("postfix", POSTFIXES)
@pytest.mark.parametrize("head", HEADS)
def test_most_drawings_are_read_together(
    head: str, postfix: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = "".join("\r" + bar(head, n, n // 9, postfix) for n in range(400))
    count, rows = together(text)
    assert rows == one_by_one(text, monkeypatch)
    assert (count > 200) == (head in HEADS[:3])


DRAWING = st.one_of(
    st.tuples(st.sampled_from(HEADS[:3]), st.integers(0, 60), st.integers(0, 200)).map(
        lambda drawn: bar(*drawn, POSTFIXES[0])
    ),
    st.tuples(st.integers(0, 9), st.sampled_from(POSTFIXES)).map(
        lambda drawn: bar("Epoch 2: ", drawn[0], drawn[0], drawn[1])
    ),
    st.sampled_from(
        ["", "   ", "\n", "2026-01-31 12:00:00 begun\n", "loss=nan]", "step 3 loss: 0.5\n"]
    ),
)  # fmt: skip


@examples(100)
@given(drawings=st.lists(DRAWING, max_size=80), many=st.integers(0, 3))
def test_whatever_stands_between_them(drawings: list[str], many: int) -> None:
    first = [bar("Epoch 1: ", n, n // 9, POSTFIXES[0]) for n in range(90)]
    text = "\r".join([*first, *drawings * many, *first, *drawings])
    with pytest.MonkeyPatch.context() as monkeypatch:
        assert together(text)[1] == one_by_one(text, monkeypatch)


def test_a_pattern_reads_each_drawing() -> None:
    text = "\r".join(bar("", n, n, "loss=0.{n}5") for n in range(1, 99)).encode()
    reader = PointReader(Pattern(r"loss=(?P<loss>[\d.]+)"), None, lambda elapsed: elapsed)
    assert len(reader.feed(text) + reader.end()) == 98
