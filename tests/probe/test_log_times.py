"""The times of a saved log's points: all forms of stamps, lines without, logs that go back."""

import io
from datetime import UTC, datetime, timedelta
from itertools import chain

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dltools.observations.table import Row
from dltools.probe import saved_logs
from dltools.probe.log_times import Stamps
from dltools.probe.progress import Automatic

START = datetime(2026, 1, 31, 12, tzinfo=UTC)


def rows(text: str, start: datetime = saved_logs.START) -> list[Row]:
    log = io.BytesIO(text.encode())
    return list(chain.from_iterable(saved_logs.progress_batches(log, "job", Automatic(), start)))


def times(text: str) -> list[str]:
    return [f"{row['time']:%Y-%m-%d %H:%M:%S}" for row in rows(text)]


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        pytest.param(
            ["W0427 16:43:10.5 7 x.cc:1] step 1 loss: 1.5",
             "2026-04-27 16:44:10 step 2 loss: 1.25", "2026-04-27 16:45:10 step 3 loss: 0.5"],
            ["2026-04-27 16:43:10", "2026-04-27 16:44:10", "2026-04-27 16:45:10"],
            id="a year that comes later holds for the stamps before",
        ),
        pytest.param(
            ["[23:59:50] step 1 loss: 1.5", "2026-04-28 00:00:10 step 2 loss: 1.25"],
            ["2026-04-27 23:59:50", "2026-04-28 00:00:10"],
            id="a date that comes later holds for the times of day before",
        ),
        pytest.param(
            ["I1231 23:59:50.0 7 x.cc:1] step 1 loss: 1.5", "2027-01-01 00:00:10 step 2 loss: 1.25",
             "I0101 00:00:20.0 7 x.cc:1] step 3 loss: 1.0"],
            ["2026-12-31 23:59:50", "2027-01-01 00:00:10", "2027-01-01 00:00:20"],
            id="the year changes with stamps of two forms",
        ),
        pytest.param(
            ["04-06 23:59:50,123 step 1 loss: 1.5", "04-07 09:02:50,456 step 2 loss: 1.25",
             "2026-04-07 09:03:50 step 3 loss: 0.5"],
            ["2026-04-06 23:59:50", "2026-04-07 09:02:50", "2026-04-07 09:03:50"],
            id="month and day are read with dashes",
        ),
        pytest.param(
            ["[00:00:10] step 1 loss: 1.5"],
            ["1970-01-01 00:00:10"],
            id="without any year times read as elapsed",
        ),
        pytest.param(
            ['{"log":"10:00:00 step 1 loss: 0.5\\n","stream":"stdout",'
             '"time":"2026-01-31T12:00:07.5Z"}'],
            ["2026-01-31 12:00:07"],
            id="the stamp of an engine counts before that of the program",
        ),
        pytest.param(
            [*(f" 10%|#  | {n}/10 [00:{n:02}<00:09, 1.0it/s, loss={9.5 - n}]" for n in (1, 5, 9)),
             "2026-04-28 00:00:10 saved", " 10%|#  | 11/10 [00:11<00:09, 1.0it/s, loss=-1.5]"],
            [f"2026-04-28 00:00:{second:02}" for second in (2, 6, 10, 12)],
            id="a stamp that comes later holds for the time elapsed before",
        ),
        pytest.param(
            ["[12:00:10] loss = 0.75", "[12:00:20] nothing", "[12:00:30] loss = 0.5"],
            ["1970-01-01 12:00:10", "1970-01-01 12:00:30"],
            id="a doubtful point has the time of its own line",
        ),
    ],
)  # fmt: skip
def test_a_point_has_the_time_of_its_stamp(lines, expected) -> None:
    assert times("".join(f"{line}\n" for line in lines)) == expected


def test_points_without_a_stamp_are_spread_and_keep_their_order() -> None:
    lines = ["2026-01-31 12:00:00 step 0 loss: 9.5"]
    lines += [f"step {n} loss: {9 - n}.5" for n in range(1, 8)]
    lines += ["2026-01-31 12:00:04 step 8 loss: 1.5"]
    found = rows("\n".join(lines))
    assert [row["step"] for row in found] == list(range(9))
    at = [(row["time"] - START).total_seconds() for row in found]
    assert at == [n / 2 for n in range(9)]
    assert [row["gap"] is None for row in found] == [True, *[False] * 7, True]


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


@given(st.lists(st.tuples(st.booleans(), st.integers(0, 10**6)), max_size=40))
def test_times_never_go_back(lines) -> None:
    text = "".join(
        f"{START + timedelta(seconds=at) if has_stamp else 'INFO'} step {n} loss: 0.5\n"
        for n, (has_stamp, at) in enumerate(lines)
    )
    found = rows(text)
    assert [row["step"] for row in found] == list(range(len(lines)))
    at = [row["time"] for row in found]
    assert at == sorted(at)


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("2026-01-31T12:00:00.123456789Z loss: 1", "2026-01-31T12:00:00.123456+00:00"),
        ("2026-01-31T12:00:00+01:00 x", "2026-01-31T11:00:00+00:00"),
        ("2026-01-31T12:00:00-0130 x", "2026-01-31T13:30:00+00:00"),
        ("[2022-04-08 18:48:05,372][train_inner][INFO] - {", "2022-04-08T18:48:05.372000+00:00"),
        ("2021-03-08 12:31:36 | INFO | train_inner | {", "2021-03-08T12:31:36+00:00"),
        ("2019/06/18 18:19:30 x", "2019-06-18T18:19:30+00:00"),
        (" [2025-04-13 23:41:20] iteration       20/", "2025-04-13T23:41:20+00:00"),
        ("[host] 2020-09-17 18:14:26,464 (trainer:243)", "2020-09-17T18:14:26.464000+00:00"),
        ("I0131 12:54:34.428942 10647 solver.cpp:237]", "2026-01-31T12:54:34.428942+00:00"),
        ("[11/09 14:34:10 d2.utils.events]:  eta: 0:14", "2026-11-09T14:34:10+00:00"),
        ("MLPerf: resnet [06/13/19 00:41:25], train", "2019-06-13T00:41:25+00:00"),
        (":::MLL 1558421081.652 eval_accuracy: {", "2019-05-21T06:44:41.652000+00:00"),
        (":::MLPv0.5.0 resnet 1541640000.123 (f:12)", "2018-11-08T01:20:00.123000+00:00"),
        (
            ':::MLLOG {"namespace": "", "time_ms": 1560881849843,',
            "2019-06-18T18:17:29.843000+00:00",
        ),
        ("1700000000.5 loss 1", "2023-11-14T22:13:20.500000+00:00"),
        ("1700000000500 loss 1", "2023-11-14T22:13:20.500000+00:00"),
        ('10.0.0.1 - - [21/Nov/2026:01:30:37 +0000] "GET', "2026-11-21T01:30:37+00:00"),
        ("Nov 21 01:30:37 host job: loss 1", "2026-11-21T01:30:37+00:00"),
        ("[12:00:01] loss: 1", "2026-01-31T12:00:01+00:00"),
        ("12:00:01.250 loss: 1", "2026-01-31T12:00:01.250000+00:00"),
        ("2026-01-31 12:00:00 PST loss: 1", "2026-01-31T20:00:00+00:00"),
        ("[2026-01-31 12:00:00,123 CEST] x", "2026-01-31T10:00:00.123000+00:00"),
        ("01/02/2026 03:04 PM loss: 1", "2026-01-02T15:04:00+00:00"),
        ("1/2/2026 12:04:05 AM x", "2026-01-02T00:04:05+00:00"),
        ("01/31/2026 15:04:05 - INFO - x", "2026-01-31T15:04:05+00:00"),
        ("31/01/2026 15:04:05 - INFO - x", "2026-01-31T15:04:05+00:00"),
        ("04/12 03:15:27 PM | loss 1", "2026-04-12T15:15:27+00:00"),
        ("Sat Jan 31 15:04:05 PST 2026 begun", "2026-01-31T23:04:05+00:00"),
        ("Sat Jan  3 15:04:05 2026 begun", "2026-01-03T15:04:05+00:00"),
        ("Jan 2, 2026 3:04:05 PM x", "2026-01-02T15:04:05+00:00"),
        ("2026-01-31 12:00 loss: 1", "2026-01-31T12:00:00+00:00"),
        ("2026.01.31 12:00:00 loss: 1", "2026-01-31T12:00:00+00:00"),
        ("20260131 12:00:00 loss: 1", "2026-01-31T12:00:00+00:00"),
        ("", None),
        ("loss: 0.5", None),
        ("step 1700000000 loss 0.5", None),
        ("Epoch 12/30 loss 0.5", None),
        ("2026-13-31 12:00:00 no such month", None),
        ("5045: 0.872799, 0.996185 avg loss", None),
        ("eta: 0:14:15  iter: 19", None),
        ("v2.10.3 1234567", None),
        ("Foo 21 01:30:37", None),
        ("x" * 100 + "2026-01-31 12:00:00", None),
    ],
)
def test_a_stamp_is_read_and_nothing_else(line, expected) -> None:
    found = Stamps(START).moment(line)
    assert (found and found.isoformat()) == expected


def test_a_line_that_is_a_little_late_is_not_a_day_on() -> None:
    stamps = Stamps(START)
    first, second = (stamps.moment(f"[{t}] x") for t in ("12:00:05", "12:00:04"))
    assert first and second
    assert first - second == timedelta(seconds=1)


@given(st.lists(st.text(max_size=90)), st.datetimes(timezones=st.just(UTC)))
def test_no_text_makes_it_fail(lines, start) -> None:
    stamps = Stamps(start)
    for line in lines:
        found = stamps.moment(line)
        assert found is None or found.tzinfo is UTC


@given(st.lists(st.from_regex(r"[IWEF]\d{4} \d\d:\d\d:\d\d x|\[\d\d:\d\d:\d\d\]", fullmatch=True)))
def test_no_stamp_makes_it_fail(lines) -> None:
    for start in (START, datetime.max.replace(tzinfo=UTC), datetime.min.replace(tzinfo=UTC)):
        stamps = Stamps(start)
        for line in lines:
            found = stamps.moment(line)
            assert found is None or (found.tzinfo is UTC and f"{found:%H:%M:%S}" in line)


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("2026-01-31T12:00:00-05 x", "2026-01-31T17:00:00+00:00"),
        ("2026-01-31 12:00:00 UTC x", "2026-01-31T12:00:00+00:00"),
        ("2026-01-31 12:00:00 ESTimate", "2026-01-31T12:00:00+00:00"),
        ("2026-01-31 12:00:00 -05 x", "2026-01-31T12:00:00+00:00"),
        ("2026-01-31 12:00:00 x", "2026-01-31T12:00:00+00:00"),
    ],
)
def test_zones_are_told_from_what_follows(line, expected) -> None:
    found = Stamps(START).moment(line)
    assert found and found.isoformat() == expected


@pytest.mark.parametrize(
    ("start", "lines", "expected"),
    [
        # Over midnight, and over New Year.
        ("26-01-31 23:59", ["[23:59:10] x", "[00:00:10] x", "[23:00:00] x", "[00:30:00] x"],
         ["26-01-31 23:59", "26-02-01 00:00", "26-02-01 23:00", "26-02-02 00:30"]),
        ("25-12-31 12:00", ["I1231 23:59:59.0 1", "I0101 00:00:01.0 1", "I0301 00:00:01.0 1"],
         ["25-12-31 23:59", "26-01-01 00:00", "26-03-01 00:00"]),
        # Forms may change from line to line.
        ("26-01-31 12:00",
         ["W0131 16:43:10.0", "2026-02-01 12:00:00 x", "[12:30:00] x", "02/01/2026 01:00 PM x"],
         ["26-01-31 16:43", "26-02-01 12:00", "26-02-01 12:30", "26-02-01 13:00"]),
        # Lateness moves no day and no year.
        ("26-01-31 23:59", ["[23:59:59] a", "[00:00:01] b", "[23:59:58] late", "[00:00:02] c"],
         ["26-01-31 23:59", "26-02-01 00:00", "26-01-31 23:59", "26-02-01 00:00"]),
        ("25-12-31 12:00",
         ["I1231 23:59:59.0", "I0101 00:00:01.0", "I1231 23:59:58.0", "I0101 00:00:02.0"],
         ["25-12-31 23:59", "26-01-01 00:00", "25-12-31 23:59", "26-01-01 00:00"]),
        ("26-01-01 00:00", ["I1231 23:59:58.0"], ["25-12-31 23:59"]),
        ("27-12-01 00:00", ["I0229 10:00:00.0"], ["28-02-29 10:00"]),
    ],
)  # fmt: skip
def test_stamps_without_a_day_or_a_year_go_on_from_those_before(start, lines, expected) -> None:
    stamps = Stamps(datetime.fromisoformat(f"20{start}:00+00:00"))
    found = [stamps.moment(line) for line in lines]
    assert [f"{moment:%y-%m-%d %H:%M}" for moment in found if moment] == expected


@pytest.mark.parametrize(
    ("form", "most_s"), [("[{:%H:%M:%S}] x", 11 * 3600), ("I{:%m%d %H:%M:%S} x", 300 * 86400)]
)
@given(
    start=st.datetimes(datetime(2020, 1, 1), datetime(2030, 1, 1), timezones=st.just(UTC)),
    data=st.data(),
)
def test_a_clock_or_a_date_without_a_year_is_followed(form, most_s, start, data) -> None:
    stamps, now = Stamps(start), start.replace(microsecond=0)
    for step in data.draw(st.lists(st.integers(0, most_s), max_size=50)):
        now += timedelta(seconds=step)
        assert stamps.moment(form.format(now)) == now
