"""Logs in files, as Podman and Kubernetes keep them."""

from datetime import UTC, datetime
from pathlib import Path

import pytest

from dltools.engine import log_reading
from dltools.engine.log_reading import FollowedFile, entry_of, read_log

NOON = datetime(2026, 1, 31, 12, tzinfo=UTC).timestamp()


def line(second: float, text: str, tag: str = "F", zone: str = "+00:00") -> bytes:
    whole, fraction = divmod(second, 1)
    stamp = datetime.fromtimestamp(NOON + whole, UTC).strftime("%Y-%m-%dT%H:%M:%S")
    return f"{stamp}.{round(fraction * 1e9):09d}{zone} stdout {tag} {text}\n".encode()


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "ctr.log"


@pytest.fixture
def flow(path: Path) -> FollowedFile:
    """A log of one line, of a container that runs, and its follower."""
    path.write_bytes(line(0, "a"))
    return FollowedFile(path, 0.0, lambda: False)


def texts(entries: list[bytes]) -> list[bytes]:
    return [entry.partition(b" ")[2] for entry in entries]


def everything(path: Path, since: float = 0.0) -> list[bytes]:
    return [entry for some in read_log(path, since) for entry in some]


@pytest.mark.parametrize(
    ("line", "entry"),
    [
        (b"2026-01-31T12:00:00.123456789+00:00 stdout F loss: 1\n",
         b"2026-01-31T12:00:00.123456789Z loss: 1\n"),
        (b"2026-01-31T12:00:00.123456789Z stderr F loss: 1\n",
         b"2026-01-31T12:00:00.123456789Z loss: 1\n"),
        (b"2026-01-31T14:00:00.123456789+02:00 stdout F  two  blanks\n",
         b"2026-01-31T12:00:00.123456789Z  two  blanks\n"),
        (b"2026-01-31T09:00:00.5-03:00 stdout F x\n", b"2026-01-31T12:00:00.500000000Z x\n"),
        (b"2026-01-31T12:00:00Z stdout P goes on\n", b"2026-01-31T12:00:00.000000000Z goes on"),
        (b"2026-01-31T12:00:00Z stdout F:tag x\n", b"2026-01-31T12:00:00.000000000Z x\n"),
        (b"2026-01-31T12:00:00Z stdout F \n", b"2026-01-31T12:00:00.000000000Z \n"),
        (b"2026-01-31T12:00:00Z stdout F\n", b"2026-01-31T12:00:00.000000000Z \n"),
        (b"2026-01-31T12:00:00Z stdout X x\n", None),
        (b'{"log":"loss: 1\\n","stream":"stdout","time":"2026-01-31T12:00:00.123456789Z"}\n',
         b"2026-01-31T12:00:00.123456789Z loss: 1\n"),
        (b'{"log":"a \\u003e \\"b\\"","stream":"stderr","attrs":{"a":"b","stream":"c"},'
         b'"time":"2026-01-31T12:00:00.5Z"}\n', b'2026-01-31T12:00:00.500000000Z a > "b"'),
        (b'{"log":"a\\n","stream":"stdout","time":"2026-01-31T12:0', None),
        (b'{"log":3,"stream":"stdout","time":"2026-01-31T12:00:00Z"}\n', None),
        (b"\n", None),
    ],
)  # fmt: skip
def test_a_line_is_an_entry_with_its_stamp_in_utc(line, entry) -> None:
    assert entry_of(line) == entry


def test_only_whole_lines_are_read(path) -> None:
    path.write_bytes(line(0, "a") + line(1, "b")[:-1])
    assert texts(everything(path)) == [b"a\n"]


@pytest.mark.parametrize("count", [1, 50, 20_000])
def test_a_log_is_read_from_a_time_on(path, count) -> None:
    path.write_bytes(b"".join(line(n * 0.25, f"n {n}") for n in range(count)))
    for first in {0, count // 3, count - 1}:
        found = texts(everything(path, NOON + first * 0.25))
        assert found == [f"n {n}\n".encode() for n in range(first, count)]
    assert everything(path, NOON + count) == []


def test_lines_of_another_format_are_passed_over(path) -> None:
    path.write_bytes(b"\0\xff\n" * 50_000 + line(0, "a") + b"x" * (3 << 20) + b"\n" + line(1, "b"))
    assert texts(everything(path)) == [b"a\n", b"b\n"]


def test_a_followed_log_gives_each_entry_once(path, flow) -> None:
    assert texts(flow.take()) == [b"a\n"]
    assert flow.take() == []
    with path.open("ab") as file:
        more = line(1, "b") + line(2, "c")
        file.write(more[:70])
        file.flush()
        assert texts(flow.take()) == [b"b\n"]
        file.write(more[70:])
    assert texts(flow.take()) == [b"c\n"]
    assert not flow.ended


def test_a_log_goes_on_in_the_file_that_takes_its_place(path, flow) -> None:
    assert texts(flow.take()) == [b"a\n"]
    with path.open("ab") as file:
        file.write(line(1, "b"))
    path.rename(path.with_suffix(".1"))
    path.write_bytes(line(2, "c"))
    assert texts(flow.take()) == [b"b\n", b"c\n"]
    path.write_bytes(b"")
    path.write_bytes(line(3, "d"))
    path.write_bytes(b"")
    assert flow.take() == []
    path.write_bytes(line(4, "e"))
    assert texts(flow.take()) == [b"e\n"]


def test_it_has_ended_with_its_container_and_its_last_line(path) -> None:
    path.write_bytes(line(0, "a"))
    flow = FollowedFile(path, 0.0, lambda: True)
    assert not flow.ended
    flow.wait(5)
    assert texts(flow.take()) == [b"a\n"]
    assert flow.ended


def test_too_much_at_once_is_told(path, monkeypatch) -> None:
    monkeypatch.setattr(log_reading, "LARGEST_BACKLOG", 1 << 17)
    path.write_bytes(b"".join(line(n, "a" * 100) for n in range(4000)))
    flow = FollowedFile(path, 0.0, lambda: False)
    flow.take()
    assert flow.is_behind
    assert flow.take() == []
    assert not flow.is_behind


def test_a_closed_log_gives_nothing(flow) -> None:
    flow.close()
    assert flow.ended
    assert flow.take() == []
    flow.wait(1)


def test_a_settled_log_holds_no_file_open(path) -> None:
    path.write_bytes(line(0, "a"))
    flow = FollowedFile(path, 0.0, lambda: True)
    assert texts(flow.take()) == [b"a\n"]
    with path.open("ab") as file:
        file.write(line(1, "b"))
    flow.wait(5)
    assert texts(flow.take()) == [b"b\n"]
    path.write_bytes(line(2, "c"))
    assert flow.take() == []
    assert flow.ended


def test_a_log_that_was_removed_ends_nothing(path, flow) -> None:
    assert texts(flow.take()) == [b"a\n"]
    path.unlink()
    assert flow.take() == []
    path.mkdir()  # what takes its place cannot be read
    assert flow.take() == []
