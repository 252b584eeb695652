"""Logs as the engine sends them, cut into entries wherever the pieces end."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dltools.engine import log_entries
from dltools.engine.log_entries import EntrySplitter


def frame(payload: bytes) -> bytes:
    return b"\x01\0\0\0" + len(payload).to_bytes(4, "big") + payload


def pieces(data: bytes, cuts: list[int]) -> list[bytes]:
    places = [0, *sorted(cut % (len(data) + 1) for cut in cuts), len(data)]
    return [data[a:b] for a, b in pairwise(places)]


@given(st.lists(st.binary(max_size=40)), st.lists(st.integers(0, 10**6)))
def test_frames_come_out_whole(payloads: list[bytes], cuts: list[int]) -> None:
    splitter = EntrySplitter(tty=False)
    found = []
    for piece in pieces(b"".join(map(frame, payloads)), cuts):
        found += splitter.feed(piece)
    assert found == payloads
    assert splitter.end() == []


@given(st.text("ab\n").map(str.encode), st.lists(st.integers(0, 10**6)))
def test_lines_of_a_terminal_come_out_whole(text: bytes, cuts: list[int]) -> None:
    splitter = EntrySplitter(tty=True)
    found = []
    for piece in pieces(text, cuts):
        found += splitter.feed(piece)
    assert found + splitter.end() == text.splitlines(keepends=True)


def test_a_frame_that_is_cut_off_is_no_entry() -> None:
    splitter = EntrySplitter(tty=False)
    assert splitter.feed(frame(b"whole") + frame(b"cut off")[:-1]) == [b"whole"]
    assert splitter.end() == []


def test_a_line_that_never_ends_is_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(log_entries, "LONGEST_ENTRY", 10)
    splitter = EntrySplitter(tty=True)
    assert splitter.feed(b"0123456789") == []
    assert splitter.feed(b"ab") == [b"0123456789ab"]
