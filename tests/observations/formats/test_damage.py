"""Cut, foreign and hostile input ends in one line of `DataError`, and in nothing else."""

import io
import math
from collections.abc import Callable
from datetime import UTC, datetime

import pyarrow as pa
import pytest
from helpers.encoding import (
    EPOCH,
    as_arrow_stream,
    as_parquet,
    canonical,
    decode,
    encode,
    losses,
    narrow,
)
from helpers.examples import QUICK, examples
from hypothesis import given
from hypothesis import strategies as st

from dltools.errors import DataError
from dltools.observations.formats.arrow import FORMAT as ARROW
from dltools.observations.formats.csv import FORMAT as CSV
from dltools.observations.formats.jsonl import FORMAT as JSONL
from dltools.observations.formats.registry import read, read_table
from dltools.observations.schema import NAMES, REQUIRED, Kind
from dltools.observations.table import to_table

TABLE = losses(0.5, math.nan, -math.inf)
EVENTS = to_table(
    {"time": EPOCH, "host": "h", "kind": Kind.EVENT, "event": "exit", "exit_code": code}
    for code in (0, 137)
)


def _csv(table: pa.Table) -> bytes:
    used = [name for name in table.column_names if table.column(name).null_count < len(table)]
    lines = encode(CSV, table).decode().splitlines()
    keep = [table.column_names.index(name) for name in used]
    return "".join(
        ",".join(line.split(",")[column] for column in keep) + "\n" for line in lines
    ).encode()


SMALL: dict[str, Callable[[pa.Table], bytes]] = {
    "parquet": lambda table: as_parquet(narrow(table)),
    "arrow stream": lambda table: as_arrow_stream(narrow(table)),
    "jsonl": lambda table: encode(JSONL, table),
    "csv": _csv,
}
"""Encoders of files small enough to try every byte of."""

FOREIGN = pa.table({"x": [1]})
WHOLE_OR_NOTHING = ("parquet",)


def _try(data: bytes) -> pa.Table | None:
    """Read what may be damaged: rows that a tool can go on with, or None after a `DataError`."""
    try:
        table = decode(data)
    except DataError as error:
        assert str(error).startswith("input: ")
        assert len(str(error).splitlines()) == 1
        return None
    assert table.schema.names == list(NAMES)
    for row in table.to_pylist():
        assert None not in [row[name] for name in REQUIRED]
    return table


@pytest.mark.parametrize("encoder", SMALL)
def test_the_small_files_are_valid(encoder) -> None:
    assert canonical(decode(SMALL[encoder](TABLE))) == canonical(TABLE)


@pytest.mark.parametrize("encoder", WHOLE_OR_NOTHING)
def test_every_cut_of_a_file_with_a_footer_is_refused(encoder) -> None:
    data = SMALL[encoder](TABLE)
    assert [cut for cut in range(len(data)) if _try(data[:cut]) is not None] == []


@pytest.mark.parametrize("table", [TABLE, EVENTS], ids=["progress", "events"])
@pytest.mark.parametrize("encoder", [name for name in SMALL if name not in WHOLE_OR_NOTHING])
def test_every_cut_of_a_stream_is_refused_or_gives_whole_rows(encoder, table) -> None:
    data = SMALL[encoder](table)
    whole = canonical(table)
    wrong = []
    for cut in range(0, len(data), 3 if QUICK else 1):
        part = _try(data[:cut])
        if part is not None and canonical(part) != whole[: len(part)]:
            wrong.append((cut, canonical(part)))
    assert wrong == []


@pytest.mark.parametrize("encoder", ["arrow stream", "jsonl", "csv"])
def test_recordings_joined_by_cat_are_read_whole_or_refused(encoder) -> None:
    joined = _try(SMALL[encoder](losses(1.0)) + SMALL[encoder](losses(2.0)))
    assert joined is None or joined.column("value").to_pylist() == [1.0, 2.0]


def test_a_killed_recorder_loses_only_the_batch_in_flight() -> None:
    samples = [losses(1.0), losses(2.0, 3.0), losses(4.0)]
    complete = [len(encode(ARROW, *samples[:n])) - 8 for n in (1, 2)]  # less the end mark
    data = encode(ARROW, *samples)
    for batches, start in enumerate(complete, 1):
        for cut in (start, start + 1, start + 8, start + 100):
            seen = []
            try:
                for table in read(io.BytesIO(data[:cut]), "input").tables:
                    seen.append(len(table))  # noqa: PERF401 (what came before the error counts)
            except DataError as error:
                assert "damaged or truncated Arrow stream" in str(error)
            assert seen == [1, 2][:batches]


@pytest.mark.parametrize(
    ("data", "message"),
    [
        pytest.param(b"", "empty input", id="empty"),
        pytest.param(b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR" + bytes(40), "not dltools", id="PNG"),
        pytest.param(b"hello, world\n", "not dltools", id="text"),
        pytest.param(b"\n\n\n", "not dltools", id="blank lines"),
        pytest.param(b"timeless,host,kind\n", "not dltools", id="another CSV"),
        pytest.param(b"time,x\n2026-01-31T12:00:00Z,1\n", "no column host", id="a foreign CSV"),
        pytest.param(b"time,host,kind,host\n2026-01-31T12:00:00Z,a,node,b\n", "host", id="twice"),
        pytest.param(b'{"a": 1}\n', "line 1: no time, host, kind", id="foreign JSON Lines"),
        pytest.param(b"{}\n[]\n", "line 1: no time, host, kind", id="an empty object"),
        pytest.param(b"{", "line 1: ", id="a brace"),
        pytest.param(as_parquet(FOREIGN), "no column time", id="foreign Parquet"),
        pytest.param(as_arrow_stream(FOREIGN.slice(0, 0)), "no column time", id="foreign stream"),
    ],
)
def test_foreign_input_is_refused(data, message) -> None:
    with pytest.raises(DataError, match=f"^input: .*{message}"):
        decode(data)


@pytest.mark.parametrize("encoder", SMALL)
@examples(150)
@given(data=st.data())
def test_flipped_bits_give_rows_or_an_error(encoder, data) -> None:
    damaged = bytearray(SMALL[encoder](TABLE))
    places = st.integers(0, len(damaged) - 1)
    for place in data.draw(st.lists(places, min_size=1, max_size=3, unique=True)):
        damaged[place] ^= data.draw(st.integers(1, 255))
    _try(bytes(damaged))


@pytest.mark.parametrize("encoder", ["arrow stream", "csv"])
def test_a_column_name_that_is_no_utf8_is_refused(encoder) -> None:
    damaged = SMALL[encoder](TABLE).replace(b"metric", b"m\xfftric")
    with pytest.raises(DataError):
        decode(damaged)


@pytest.mark.parametrize("encoder", [as_parquet, as_arrow_stream], ids=lambda f: f.__name__)
@pytest.mark.parametrize("name", ["host", "value"])
def test_a_column_that_comes_twice_is_refused(encoder, name) -> None:
    with pytest.raises(DataError, match=name):
        decode(encoder(TABLE.append_column(name, TABLE.column(name))))


@pytest.mark.parametrize("encoder", [as_parquet, as_arrow_stream], ids=lambda f: f.__name__)
@pytest.mark.parametrize("microseconds", [2**62, -(2**62)])
def test_a_time_that_no_calendar_has_is_refused(encoder, microseconds) -> None:
    times = pa.array([microseconds] * len(TABLE), pa.timestamp("us", tz="UTC"))
    with pytest.raises(DataError, match="column time"):
        decode(encoder(TABLE.set_column(0, "time", times)))


LINE = '{"time": "2026-01-31T12:00:00Z", "host": "h", "kind": "container"%s}\n'


@pytest.mark.parametrize(
    "cell",
    [
        pytest.param('"host": null', id="no host"),
        pytest.param('"time": "noon"', id="no time"),
        pytest.param('"time": 1769860800', id="a number for a time"),
        pytest.param('"time": "2026-01-31T12:00:00"', id="a time without zone"),
        pytest.param('"started_at": "2026-13-31T12:00:00Z"', id="month 13"),
        pytest.param('"started_at": "0001-01-01T00:00:00+23:00"', id="before the calendar"),
        pytest.param('"started_at": "9999-12-31T23:59:59-23:00"', id="after the calendar"),
        pytest.param('"cpu_seconds": "much"', id="text for a real"),
        pytest.param('"cpu_seconds": true', id="true for a real"),
        pytest.param(f'"cpu_seconds": {"9" * 400}', id="a real of 400 digits"),
        pytest.param('"thread_count": "x"', id="text for an integer"),
        pytest.param('"thread_count": 1.5', id="a fraction for an integer"),
        pytest.param('"thread_count": NaN', id="NaN for an integer"),
        pytest.param(f'"thread_count": {2**63}', id="an integer of 64 bits"),
        pytest.param(f'"thread_count": {"9" * 5000}', id="an integer of 5000 digits"),
        pytest.param('"state": "\\ud800"', id="half a surrogate pair"),
        pytest.param('"x": ' + "[" * 100_000, id="deeply nested"),
    ],
)
def test_a_bad_json_line_is_refused_by_its_number(cell) -> None:
    good = LINE % ""
    with pytest.raises(DataError, match=r"^input: ") as refused:
        decode((good + LINE % (", " + cell)).encode())
    if "JSON Lines" not in str(refused.value):
        assert str(refused.value).startswith("input: line 2: ")


@pytest.mark.parametrize("line", [b"[]", b"1", b"null", b'"text"', b"nonsense", b"\xff", b"\x00"])
def test_a_line_that_is_no_object_is_refused_by_its_number(line) -> None:
    with pytest.raises(DataError, match=r"^input: line 2: "):
        decode((LINE % "").encode() + line + b"\n")


@pytest.mark.parametrize(
    "rows_",
    [
        "2026-01-31T12:00:00Z,h,node,1,2\n",
        "2026-01-31T12:00:00Z,,node,1\n",
        "2026-01-31T12:00:00,h,node,1\n",
        "noon,h,node,1\n",
        ",h,node,1\n",
        "2026-01-31T12:00:00Z,h,node,9223372036854775808\n",
        '2026-01-31T12:00:00Z,"h,node,1\n',
        "2026-01-31T12:00:00Z,\udcff,node,1\n",
    ],
)
def test_a_bad_csv_row_is_refused(rows_) -> None:
    data = ("time,host,kind,thread_count\n" + rows_).encode(errors="surrogateescape")
    with pytest.raises(DataError, match=r"^input: "):
        decode(data)


def test_input_is_named_in_the_message() -> None:
    with pytest.raises(DataError, match=r"^jobs\.parquet: "):
        read_table(io.BytesIO(b"PAR1 and no more"), "jobs.parquet")


def test_blank_lines_and_a_byte_order_mark_are_skipped() -> None:
    data = b"\xef\xbb\xbf\n" + (LINE % "").encode() + b"\r\n  \n" + (LINE % "").encode()
    assert decode(data).column("time").to_pylist() == [datetime(2026, 1, 31, 12, tzinfo=UTC)] * 2
