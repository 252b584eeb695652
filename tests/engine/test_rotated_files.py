"""Logs that kubelet rotates: renamed, opened anew, and packed later."""

import gzip
import os
from pathlib import Path

import pytest

from dltools.engine.log_reading import FollowedFile, read_log, rotated


class Log:
    """A log, and a kubelet that rotates it."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.written = 0
        self.rotations = 0
        path.touch()

    def line(self, tag: str = "F", text: str = "") -> None:
        self.written += 1
        stamp = f"2026-01-31T12:00:{self.written // 10:02}.{self.written % 10}Z"
        with self.path.open("a") as file:
            file.write(f"{stamp} stdout {tag} {text or self.written}\n")

    def rotate(self) -> Path:
        self.rotations += 1
        to = self.path.with_name(f"{self.path.name}.20260131-1200{self.rotations:02}")
        self.path.rename(to)
        self.path.touch()
        return to

    def pack(self, path: Path) -> None:
        with gzip.open(f"{path}.gz", "wb") as file:
            file.write(path.read_bytes())
        path.unlink()

    def read(self, since: float = 0.0) -> list[str]:
        return texts([entry for entries in read_log(self.path, since) for entry in entries])

    def follow(self, *, is_new_only: bool = False) -> FollowedFile:
        return FollowedFile(self.path, 0.0, lambda: False, is_new_only=is_new_only)


@pytest.fixture
def log(tmp_path: Path) -> Log:
    return Log(tmp_path / "0.log")


def texts(entries: list[bytes]) -> list[str]:
    return [entry.partition(b" ")[2].decode().strip() for entry in entries]


def test_stamps_compare_as_texts_although_containerd_leaves_out_zeros(log) -> None:
    log.line()
    (entries,) = read_log(log.path, 0.0)
    assert entries == [b"2026-01-31T12:00:00.100000000Z 1\n"]


def test_a_line_in_parts_is_one_line(log) -> None:
    log.line("P", "loss: ")
    log.line("F", "0.5")
    (entries,) = read_log(log.path, 0.0)
    assert b"".join(entry.partition(b" ")[2] for entry in entries) == b"loss: 0.5\n"


def test_rotated_files_are_read_first_but_for_packed_ones(log) -> None:
    for _ in range(3):
        log.line()
        old = log.rotate()
        if log.rotations == 1:
            log.pack(old)
    log.line()
    assert log.read() == ["2", "3", "4"]


def test_files_from_before_the_time_are_passed_over(log) -> None:
    log.line()
    os.utime(log.rotate(), (1.0, 1.0))
    log.line()
    assert log.read(since=100.0) == ["2"]


def test_other_files_are_no_rotated_ones(log) -> None:
    log.path.with_name("0.log.tmp").touch()
    log.path.with_name("10.log").touch()
    assert rotated(log.path) == []


def test_several_rotations_between_two_looks_lose_nothing(log) -> None:
    flow = log.follow()
    for number in range(4):
        log.line()
        old = log.rotate()
        if number == 0:
            log.pack(old)  # it is open, and read to its end
    log.line()
    assert texts(flow.take()) == ["1", "2", "3", "4", "5"]
    log.line()
    assert texts(flow.take()) == ["6"]


def test_following_begins_with_the_rotated_files(log) -> None:
    log.line()
    log.rotate()
    log.line()
    flow = log.follow()
    assert texts(flow.take()) == ["1", "2"]
    log.rotate()
    log.line()
    assert texts(flow.take()) == ["3"]


def test_new_lines_alone_are_followed_across_a_rotation(log) -> None:
    log.line()
    log.rotate()
    log.line()
    flow = log.follow(is_new_only=True)
    log.line()
    log.rotate()
    log.line()
    assert texts(flow.take()) == ["3", "4"]
