"""Logs that are plain files: read from begin to end, and followed from there."""

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from dltools.engine.cgroups import plain_logs
from dltools.engine.cgroups.plain_logs import LONGEST_LINE, PlainFlow, PlainLog, outputs_of
from dltools.notation.times import parse_time


@pytest.fixture
def path(tmp_path: Path) -> Path:
    found = tmp_path / "log"
    found.write_bytes(b"one\ntwo\n")
    return found


@pytest.fixture
def log(path: Path) -> Iterator[PlainLog]:
    made = PlainLog(lambda: [str(path)])
    yield made
    made.close()


def texts(entries: list[bytes]) -> list[bytes]:
    return [entry.partition(b" ")[2] for entry in entries]


def all_of(log: PlainLog, since: float = 0.0) -> list[bytes]:
    return [entry for entries in log.all(since) for entry in entries]


def add(path: Path, data: bytes) -> None:
    with path.open("ab") as file:
        file.write(data)


def test_lines_have_the_time_of_the_last_write(log, path) -> None:
    os.utime(path, ns=(1_700_000_000_123_456_789, 1_700_000_000_123_456_789))
    stamp = b"2023-11-14T22:13:20.123456789Z"
    assert all_of(log) == [stamp + b" one\n", stamp + b" two\n"]


def test_it_goes_on_where_it_ended_and_later(log, path) -> None:
    first = all_of(log)
    assert log.new() == ([], False)
    add(path, b"three\n")
    new, is_behind = log.new()
    assert (texts(new), is_behind) == ([b"three\n"], False)
    assert new[0].split()[0] > first[-1].split()[0]
    assert parse_time(new[0].split()[0].decode()) is not None


def test_stamps_rise_also_where_the_clock_does_not(log, path) -> None:
    all_of(log)
    os.utime(path, (1, 1))
    add(path, b"three\n")
    os.utime(path, (1, 1))
    first = log.new()[0]
    add(path, b"four\n")
    os.utime(path, (1, 1))
    assert log.new()[0][0].split()[0] > first[0].split()[0]


def test_a_line_comes_when_it_has_ended(log, path) -> None:
    all_of(log)
    add(path, b"thr")
    assert log.new()[0] == []
    add(path, b"ee\rfour")
    assert texts(log.new()[0]) == [b"three\r"]
    assert texts(log.rest()) == [b"four"]


def test_a_log_from_before_is_left_out(log, path) -> None:
    os.utime(path, (1000, 1000))
    assert all_of(log, 2000.0) == []
    add(path, b"three\n")
    assert texts(log.new()[0]) == [b"three\n"]


def test_what_is_there_can_be_left_out(log, path) -> None:
    log.skip()
    add(path, b"three\n")
    assert texts(log.new()[0]) == [b"three\n"]


def test_a_log_that_was_cut_is_read_anew(log, path) -> None:
    all_of(log)
    path.write_bytes(b"new\n")
    assert texts(log.new()[0]) == [b"new\n"]


def test_a_long_line_is_cut(log, path) -> None:
    path.write_bytes(b"x" * (LONGEST_LINE + 5) + b"\n")
    assert list(map(len, texts(all_of(log)))) == [LONGEST_LINE, 6]


def test_too_much_between_two_readings_is_said(log, path, monkeypatch) -> None:
    all_of(log)
    monkeypatch.setattr(plain_logs, "LARGEST_BACKLOG", 100)
    monkeypatch.setattr(plain_logs, "_CHUNK", 50)
    add(path, b"123456789\n" * 30)
    new, is_behind = log.new()
    assert (len(new), is_behind) == (10, True)


def test_files_that_come_later_are_read(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(plain_logs, "_SEARCH_S", 0.0)
    log = PlainLog(lambda: [str(one) for one in sorted(tmp_path.iterdir())])
    assert all_of(log) == []
    (tmp_path / "a").write_bytes(b"a\n")
    assert texts(log.new()[0]) == [b"a\n"]
    (tmp_path / "b").write_bytes(b"b\n")
    add(tmp_path / "a", b"c\n")
    assert texts(log.new()[0]) == [b"c\n", b"b\n"]
    log.close()


def test_a_flow_ends_with_its_writers(log, path) -> None:
    ended = [False]
    all_of(log)
    flow = PlainFlow(log, lambda: ended[0])
    add(path, b"three\nfo")
    assert texts(flow.take()) == [b"three\n"]
    assert not flow.ended
    ended[0] = True
    flow.wait(5)
    add(path, b"ur")
    assert texts(flow.take()) == [b"four"]
    assert flow.ended
    assert flow.take() == []


def test_the_outputs_of_a_process_are_its_files(tmp_path) -> None:
    out, err, given = tmp_path / "out", tmp_path / "err", tmp_path / "in"
    given.write_text("x")
    with out.open("w") as first, err.open("w") as second, given.open() as third:
        both = subprocess.Popen(["sleep", "60"], stdout=first, stderr=second, stdin=third)
        same = subprocess.Popen(["sleep", "60"], stdout=first, stderr=first)
        neither = subprocess.Popen(["sleep", "60"], stdout=third, stderr=subprocess.DEVNULL)
    try:
        found = outputs_of([both.pid, same.pid, neither.pid, 1 << 22])
        assert [Path(one).readlink() for one in found] == [out, err]
    finally:
        for one in (both, same, neither):
            one.kill()
            one.wait()
