"""The times of a saved log's points: all forms of stamps, lines without, logs that go back."""

from __future__ import annotations

import io
from datetime import UTC, datetime, timedelta
from itertools import chain

from hypothesis import given
from hypothesis import strategies as st

from dltools.observations.table import Row
from dltools.probe import saved_logs
from dltools.probe.progress import Automatic

START = datetime(2026, 1, 31, 12, tzinfo=UTC)


def rows(text: str, start: datetime = saved_logs.START) -> list[Row]:
    log = io.BytesIO(text.encode())
    return list(chain.from_iterable(saved_logs.progress_batches(log, "job", Automatic(), start)))


def times(text: str, start: datetime = saved_logs.START) -> list[str]:
    return [f"{row['time']:%Y-%m-%d %H:%M:%S}" for row in rows(text, start)]


def test_a_year_that_comes_later_holds_for_the_stamps_before() -> None:
    text = (
        "W0427 16:43:10.5 7 x.cc:1] step 1 loss: 1.5\n2026-04-27 16:44:10 step 2 loss: 1.25\n"
        "2026-04-27 16:45:10 step 3 loss: 0.5\n"
    )
    assert times(text) == ["2026-04-27 16:43:10", "2026-04-27 16:44:10", "2026-04-27 16:45:10"]


def test_a_date_that_comes_later_holds_for_the_times_of_day_before() -> None:
    text = "[23:59:50] step 1 loss: 1.5\n2026-04-28 00:00:10 step 2 loss: 1.25\n"
    assert times(text) == ["2026-04-27 23:59:50", "2026-04-28 00:00:10"]


def test_the_year_changes_with_stamps_of_two_forms() -> None:
    text = (
        "I1231 23:59:50.0 7 x.cc:1] step 1 loss: 1.5\n2027-01-01 00:00:10 step 2 loss: 1.25\n"
        "I0101 00:00:20.0 7 x.cc:1] step 3 loss: 1.0\n"
    )
    assert times(text) == ["2026-12-31 23:59:50", "2027-01-01 00:00:10", "2027-01-01 00:00:20"]


def test_without_any_year_times_read_as_elapsed() -> None:
    assert times("[00:00:10] step 1 loss: 1.5\n") == ["1970-01-01 00:00:10"]


def test_points_without_a_stamp_are_spread_and_keep_their_order() -> None:
    lines = ["2026-01-31 12:00:00 step 0 loss: 9.5"]
    lines += [f"step {n} loss: {9 - n}.5" for n in range(1, 8)]
    lines += ["2026-01-31 12:00:04 step 8 loss: 1.5"]
    found = rows("\n".join(lines))
    assert [row["step"] for row in found] == list(range(9))
    at = [(row["time"] - START).total_seconds() for row in found]
    assert at == [n / 2 for n in range(9)]


def test_a_log_in_the_wrong_order_keeps_the_order_of_arrival() -> None:
    text = "".join(
        f"2026-01-31 12:00:{second:02} step {n} loss: {9 - n}.5\n"
        for n, second in enumerate((5, 4, 6, 1, 9))
    )
    assert [row["step"] for row in rows(text)] == [0, 1, 2, 3, 4]
    assert [time[-2:] for time in times(text)] == ["05", "05", "06", "06", "09"]


def test_a_run_that_is_appended_goes_on_after_the_one_before() -> None:
    text = "".join(
        f"2026-01-{day} 12:00:{n:02} step {n} loss: {9 - n}.5\n"
        for day in (31, 30)
        for n in range(5)
    )
    found = rows(text)
    assert [row["step"] for row in found] == [0, 1, 2, 3, 4] * 2
    assert [time[8:] for time in times(text)] == [
        f"31 12:00:{n:02}" for n in (0, 1, 2, 3, 4, 4, 5, 6, 7, 8)
    ]
    assert [bool(row["gap"]) for row in found] == [False] * 5 + [True] + [False] * 4


def test_the_stamp_of_an_engine_counts_before_that_of_the_program() -> None:
    text = (
        '{"log":"10:00:00 step 1 loss: 0.5\\n","stream":"stdout","time":"2026-01-31T12:00:07.5Z"}\n'
    )
    assert times(text) == ["2026-01-31 12:00:07"]


def test_a_doubtful_point_has_the_time_of_its_own_line() -> None:
    text = "[12:00:10] loss = 0.75\n[12:00:20] nothing\n[12:00:30] loss = 0.5\n"
    assert [time[-8:] for time in times(text, START)] == ["12:00:10", "12:00:30"]


@given(st.lists(st.tuples(st.booleans(), st.integers(0, 10**6)), max_size=40))
def test_times_never_go_back(lines: list[tuple[bool, int]]) -> None:
    text = "".join(
        f"{START + timedelta(seconds=at) if has_stamp else 'INFO'} step {n} loss: 0.5\n"
        for n, (has_stamp, at) in enumerate(lines)
    )
    found = rows(text)
    assert [row["step"] for row in found] == list(range(len(lines)))
    at = [row["time"] for row in found]
    assert at == sorted(at)
