"""The file that tells owners who waits."""

import os
import stat
from pathlib import Path

import pytest
from helpers.clocks import Clock

from dltools.apply.history import Held
from dltools.apply.locks import locked_state
from dltools.apply.turn_schedule import Bound, Turn, TurnOrder, TurnWait
from dltools.apply.waiting_file import WaitingFile
from dltools.errors import OutputError

BEGAN = 1_780_000_000.0  # 2026-05-28 20:26:40 UTC


@pytest.fixture
def clock() -> Clock:
    return Clock(BEGAN)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "waiting"


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path / "state"


def held(weight: float, reason: str, own: float = 1024.0) -> Held:
    return Held("lab", "gru", {"weight": weight}, {"weight": own}, reason)


def rows(path: Path) -> list[list[str]]:
    lines = path.read_text().splitlines()
    return [line.split() for line in lines if not line.startswith("#")]


def test_who_is_paused_until_its_turn(path, home, clock) -> None:
    file = WaitingFile(path, home, "ada@lab.example", clock)
    assert path.read_text().endswith("# Ask: ada@lab.example\n# None waits.\n")
    clock.now += 5
    file.update([("lab", TurnWait(Turn("1", "vae", 1, 5.0), 20.0, 80.0, 2, 3))], {})
    assert rows(path) == [
        ["vae", "lab", "paused", "20:26:25", "20:28:05", *["2", "of", "3", "in", "the", "queue"]]
    ]
    assert "2026-05-28 20:26:45 UTC" in path.read_text()


def test_who_waits_at_a_low_weight(path, home, clock) -> None:
    file = WaitingFile(path, home, clock=clock)
    clock.now += 5
    said = "2 of 4 in the queue, until 20:28:10 at the latest"
    low = {"1": held(10.0, f"growing: efficiency 0.2; {said}")}
    file.update([], low)
    clock.now += 5
    file.update([], low)
    (row,) = rows(path)
    assert row[:8] == ["gru", "lab", "weight", "10", "of", "1024", "20:26:45", "-"]
    assert " ".join(row[8:]) == f"growing: efficiency 0.2; {said}"
    clock.now += 5
    file.update([], {"1": held(1536.0, "1 of 4 in the queue")})
    assert path.read_text().endswith("# None waits.\n")


def test_an_owners_low_weight_is_no_wait(path, home, clock) -> None:
    file = WaitingFile(path, home, clock=clock)
    clock.now += 5
    file.update([], {"1": held(100.0, "2 of 4 in the queue", own=100.0)})
    assert rows(path) == []


def test_all_may_read_it_and_it_is_never_half_there(path, home, clock) -> None:
    before = os.umask(0o077)
    try:
        file = WaitingFile(path, home, clock=clock)
        first = path.stat()
        clock.now += 60
        file.update([], {})
    finally:
        os.umask(before)
    assert stat.S_IMODE(first.st_mode) == stat.S_IMODE(path.stat().st_mode) == 0o644
    assert first.st_ino != path.stat().st_ino
    assert [one.name for one in path.parent.iterdir() if "waiting" in one.name] == ["waiting"]


def test_it_is_written_once_a_second_at_most(path, home, clock) -> None:
    file = WaitingFile(path, home, clock=clock)
    first = path.stat().st_ino
    for _ in range(3):
        clock.now += 0.25
        file.update([], {"1": held(10.0, "")})
    assert path.stat().st_ino == first


def test_strangers_text_is_made_printable(path, home, clock) -> None:
    file = WaitingFile(path, home, "ask\x1b[2J me", clock)
    clock.now += 5
    name = "a\x1b]0;x\x07\nb" + 300 * "c"
    file.update([("lab", TurnWait(Turn("1", name, 1, 5.0), 20.0, 80.0, 2, 3))], {})
    text = path.read_text()
    assert all(line.isprintable() for line in text.splitlines())
    assert max(map(len, text.splitlines())) < 200
    assert len(rows(path)) == 1
    clock.now += 5
    file.update([], {"1": held(10.0, "of \x1b[2J\n" + 300 * "d")})
    text = path.read_text()
    assert all(line.isprintable() for line in text.splitlines())
    assert max(map(len, text.splitlines())) < 250


def test_it_goes_with_its_run(path, home) -> None:
    WaitingFile(path, home).remove()
    assert not path.exists()


def test_who_takes_the_lock_after_a_killed_run_removes_it(path, home) -> None:
    WaitingFile(path, home)
    with locked_state(home):
        assert not path.exists()


def test_what_has_taken_its_name_is_left(path, home, tmp_path) -> None:
    WaitingFile(path, home)
    path.write_text("mine")
    with locked_state(home):
        assert path.read_text() == "mine"
    path.unlink()
    WaitingFile(path, home)
    path.unlink()
    (tmp_path / "other").write_text("theirs")
    path.symlink_to(tmp_path / "other")
    with locked_state(home):
        assert (tmp_path / "other").read_text() == "theirs"


def test_only_a_new_or_empty_file_or_one_of_a_killed_run_is_replaced(path, home) -> None:
    path.write_text("mine")
    with pytest.raises(OutputError, match="it is another file; name a new one"):
        WaitingFile(path, home)
    assert path.read_text() == "mine"
    path.write_text("")
    WaitingFile(path, home)
    WaitingFile(path, home).remove()
    assert not path.exists()


def test_a_link_is_replaced_and_not_written_through(path, home, tmp_path) -> None:
    (tmp_path / "other").write_text("theirs")
    path.symlink_to(tmp_path / "other")
    WaitingFile(path, home)
    assert not path.is_symlink()
    assert (tmp_path / "other").read_text() == "theirs"


def test_a_file_that_cannot_be_made_is_an_error(home, tmp_path) -> None:
    with pytest.raises(OutputError, match="cannot create"):
        WaitingFile(tmp_path / "nowhere" / "waiting", home)


def test_without_a_path_nothing_happens(tmp_path) -> None:
    file = WaitingFile()
    file.update([], {"1": held(10.0, "")})
    file.remove()
    assert list(tmp_path.iterdir()) == []


def test_an_order_of_turns_says_who_waits_and_for_how_long() -> None:
    order = TurnOrder()
    turns = [Turn(str(number), f"job-{number}", number, 5.0) for number in range(3)]
    turns[2] = Turn("2", "job-2", 2, 5.0, longest_pause_s=30.0)
    order.replace(turns, 100.0)
    found = list(order.waits(110.0))
    waits = [(one.turn.container_id, one.waited_s, one.place, one.groups) for one in found]
    assert waits == [("1", 10.0, 2, 3), ("2", 10.0, 3, 3)]
    assert found[0].left_s == Bound(3).patience_s - 10.0
    assert found[1].left_s == 20.0
