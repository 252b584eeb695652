"""Inputs are read up to a bound, and cut into lines."""

import io

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dltools import bounded_reading
from dltools.bounded_reading import InputLines, LineSplitter
from dltools.errors import ConfigError, DataError


@given(st.lists(st.text("ab\n", max_size=6).map(str.encode)))
def test_however_bytes_come_the_lines_are_the_same(pieces) -> None:
    splitter = LineSplitter()
    found = [line for piece in pieces for line in splitter.feed(piece)]
    data = b"".join(pieces)
    assert splitter.begun_bytes == len(data) - data.rfind(b"\n") - 1
    found += splitter.end()
    assert found == (data.removesuffix(b"\n").split(b"\n") if data else [])
    assert splitter.begun_bytes == 0
    assert splitter.end() == []


def test_a_line_that_is_too_long_is_refused(monkeypatch) -> None:
    monkeypatch.setattr(bounded_reading, "LONGEST_LINE", 1 << 10)
    lines = InputLines("plan")
    assert lines.feed(b"x" * (1 << 10)) == []
    with pytest.raises(DataError, match=r"^plan: a line of more than 1 KiB: is it "):
        lines.feed(b"x")


def test_text_whose_first_line_does_not_end_is_refused(monkeypatch) -> None:
    monkeypatch.setattr(bounded_reading, "FIRST_LINE", 1 << 20)
    long = b"x" * (2 << 20)
    with pytest.raises(DataError, match=r"^log: no line end in 1 MiB: is it the right input\?$"):
        bounded_reading.read_whole(io.BytesIO(long), "log")
    assert bounded_reading.read_whole(io.BytesIO(b"PAR1" + long), "log") == b"PAR1" + long
    assert bounded_reading.read_whole(io.BytesIO(b"a\n" + long), "log") == b"a\n" + long


def test_files_that_people_write_are_small(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(bounded_reading, "SMALL", 4)
    file = tmp_path / "targets.toml"
    file.write_text("abcd")
    assert bounded_reading.read_text(file) == "abcd"
    file.write_text("abcde")
    with pytest.raises(ConfigError, match=r"more than 4 B: is it the right input\?$"):
        bounded_reading.read_text(file)
    file.write_bytes(b"\xff")
    with pytest.raises(DataError, match="not text"):
        bounded_reading.read_text(file, DataError)
    with pytest.raises(ConfigError, match=r"No such file or directory$"):
        bounded_reading.read_text(tmp_path / "none")
