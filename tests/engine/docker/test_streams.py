"""Logs as the engine sends them, cut into entries wherever the pieces end."""

import errno
from itertools import pairwise
from types import SimpleNamespace
from typing import cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dltools.engine.docker import http, streams
from dltools.engine.docker.http import Answer
from dltools.engine.docker.streams import EntrySplitter, FollowedLog


def frame(payload: bytes) -> bytes:
    return b"\x01\0\0\0" + len(payload).to_bytes(4, "big") + payload


def pieces(data: bytes, cuts: list[int]) -> list[bytes]:
    places = [0, *sorted(cut % (len(data) + 1) for cut in cuts), len(data)]
    return [data[a:b] for a, b in pairwise(places)]


@given(st.lists(st.binary(max_size=40)), st.lists(st.integers(0, 10**6)))
def test_frames_come_out_whole(payloads, cuts) -> None:
    splitter = EntrySplitter(tty=False)
    found = []
    for piece in pieces(b"".join(map(frame, payloads)), cuts):
        found += splitter.feed(piece)
    assert found == payloads
    assert splitter.end() == []


@given(st.text("ab\n").map(str.encode), st.lists(st.integers(0, 10**6)))
def test_lines_of_a_terminal_come_out_whole(text, cuts) -> None:
    splitter = EntrySplitter(tty=True)
    found = []
    for piece in pieces(text, cuts):
        found += splitter.feed(piece)
    assert found + splitter.end() == text.splitlines(keepends=True)


def test_a_frame_that_is_cut_off_is_no_entry() -> None:
    splitter = EntrySplitter(tty=False)
    assert splitter.feed(frame(b"whole") + frame(b"cut off")[:-1]) == [b"whole"]
    assert splitter.end() == []


def test_a_line_that_never_ends_is_cut(monkeypatch) -> None:
    monkeypatch.setattr(streams, "LONGEST_ENTRY", 10)
    splitter = EntrySplitter(tty=True)
    assert splitter.feed(b"0123456789") == []
    assert splitter.feed(b"ab") == [b"0123456789ab"]


@pytest.mark.parametrize(
    ("data", "fault"),
    [
        (b"\x03\0\0\0\0\0\0\x1cError grabbing logs: \n   EOF", "Error grabbing logs: EOF"),
        (b"\x03\0\0\0\0\0\0\0", "the engine failed to read it"),
        (b"HTTP/1.1 502 Bad Gateway", "the engine's answer is not a log"),
        (b"\x01\0\0\0\xff\xff\xff\xff", "the engine's answer is not a log"),
        (frame(b"cut off")[:-1], "the answer was cut off"),
    ],
)
def test_what_is_no_log_is_a_fault_after_the_entries_before_it(data, fault) -> None:
    splitter = EntrySplitter(tty=False)
    assert splitter.feed(frame(b"whole") + data) == [b"whole"]
    assert splitter.feed(b"") == splitter.end() == []
    assert splitter.fault == fault


class Arriving:
    """A connection on which a piece comes with each look, and at last its end."""

    def __init__(self, *pieces: bytes) -> None:
        self._pieces = list(pieces)
        self._has_come = False

    def recv(self, _most: int) -> bytes:
        self._has_come = not self._has_come
        if not self._has_come:
            raise BlockingIOError(errno.EAGAIN, "nothing yet")
        return self._pieces.pop(0) if self._pieces else b""

    def setblocking(self, _flag: bool) -> None:
        pass

    def close(self) -> None:
        pass


def log_of(*pieces: bytes, tty: bool) -> FollowedLog:
    answer = SimpleNamespace(connection=Arriving(*pieces), begun=b"")
    return FollowedLog(cast("Answer", answer), tty)


def test_a_log_that_goes_on_gives_whole_entries_and_at_its_end_the_rest() -> None:
    log = log_of(b"t1 a\nt2", b" b\n", b"t3 c", tty=True)
    assert [log.take() for _ in range(5)] == [[b"t1 a\n"], [b"t2 b\n"], [], [], [b"t3 c"]]
    assert log.ended


def test_a_log_that_outruns_its_reader_says_so(monkeypatch) -> None:
    monkeypatch.setattr(http, "LARGEST", 20)
    log = log_of(frame(b"x" * 8), frame(b"y" * 12), tty=False)
    found = [(log.take(), log.is_behind) for _ in range(2)]
    assert found == [([b"x" * 8], False), ([b"y" * 12], True)]
