"""What is written is read back, in every format and however it is cut into samples."""

import io
import math
import os
from datetime import UTC, datetime, timedelta, timezone

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from helpers.encoding import EPOCH, READABLE, canonical, decode, encode, losses
from helpers.examples import examples
from helpers.strategies import tables
from hypothesis import given
from hypothesis import strategies as st

from dltools.observations.formats.arrow import FORMAT as ARROW
from dltools.observations.formats.csv import FORMAT as CSV
from dltools.observations.formats.jsonl import FORMAT as JSONL
from dltools.observations.formats.parquet import FORMAT as PARQUET
from dltools.observations.formats.prometheus import FORMAT as PROMETHEUS
from dltools.observations.formats.registry import read, read_table
from dltools.observations.schema import VERSION, VERSION_KEY, arrow_schema
from dltools.observations.table import to_table

BINARY = (PARQUET, ARROW)


@pytest.mark.parametrize("format_", READABLE)
@examples(40)
@given(table=tables(min_rows=1))
def test_any_table_survives_a_round_trip(format_, table) -> None:
    data = encode(format_, table)
    back = decode(data)
    assert back.schema.equals(arrow_schema(), check_metadata=True)
    assert canonical(back) == canonical(table)
    assert encode(format_, back) == data


@pytest.mark.parametrize("format_", READABLE)
@examples(20)
@given(samples=st.lists(tables(max_rows=3), min_size=1, max_size=4))
def test_samples_come_back_as_one_recording_sorted_by_time(format_, samples) -> None:
    everything = pa.concat_tables(samples)
    if len(everything) == 0:
        return
    back = decode(encode(format_, *samples))
    moments = back.column("time").to_pylist()
    assert moments == sorted(moments)
    order = pc.array_sort_indices(everything.column("time").cast("int64").combine_chunks())
    assert canonical(back) == canonical(everything.take(order))


@pytest.mark.parametrize("format_", READABLE)
@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf, -0.0, 5e-324, 1e308, 0.1 + 0.2])
def test_every_kind_of_number_survives(format_, value) -> None:
    back = decode(encode(format_, losses(value))).column("value")[0].as_py()
    assert repr(back) == repr(value)


@pytest.mark.parametrize("format_", READABLE)
@pytest.mark.parametrize(
    "text", ["", " ", "a,b", 'say "x"', "two\nlines", "cr\rlf\r\n", "\t", "\x00", "\x85", "\u2028",
             "NULL", "null", "NaN", "nan", "true", "1", "ünï", "🐋", "\ufeff", "{}", "PAR1"],
)  # fmt: skip
def test_every_kind_of_text_survives(format_, text) -> None:
    table = to_table([{"time": EPOCH, "host": text, "kind": "node", "gap": text}])
    back = decode(encode(format_, table))
    assert back.column("host").to_pylist() == [text]
    assert back.column("gap").to_pylist() == [text]


@pytest.mark.parametrize("format_", READABLE)
@pytest.mark.parametrize(
    "moment",
    [
        datetime(1969, 12, 31, 23, 59, 59, 999_999, tzinfo=UTC),
        datetime(2026, 1, 31, 12, 0, 0, 1, tzinfo=UTC),
        datetime(2038, 1, 19, 3, 14, 8, tzinfo=UTC),
        datetime(9999, 12, 31, 23, 59, 59, 999_999, tzinfo=UTC),
        pytest.param(datetime(1, 1, 1, tzinfo=UTC), id="the zero time that Docker reports"),
        pytest.param(EPOCH.astimezone(timezone(timedelta(hours=5.5))), id="in another zone"),
    ],
)
def test_every_moment_survives_to_the_microsecond(format_, moment) -> None:
    table = to_table([{"time": moment, "host": "h", "kind": "container", "started_at": moment}])
    back = decode(encode(format_, table))
    assert [back.column(name).to_pylist() for name in ("time", "started_at")] == [[moment]] * 2


@pytest.mark.parametrize("format_", BINARY)
def test_binary_formats_carry_the_version_and_what_columns_mean(format_) -> None:
    data = encode(format_, losses(1.0))
    schema = (
        pq.read_schema(io.BytesIO(data)) if format_ is PARQUET else pa.ipc.open_stream(data).schema
    )
    assert schema.metadata[VERSION_KEY] == VERSION.encode()
    assert schema.field("cpu_seconds").metadata[b"unit"] == b"s"
    assert len(decode(encode(format_, arrow_schema().empty_table()))) == 0


@pytest.mark.parametrize("format_", [*READABLE, PROMETHEUS])
def test_a_writer_writes_nothing_before_the_first_sample_and_leaves_the_stream_open(
    format_,
) -> None:
    assert encode(format_) == b""
    out = io.BytesIO()
    target = format_.writer(out)
    target.write(losses(1.0))
    target.close()
    assert not out.closed


def test_many_samples_share_a_row_group() -> None:
    data = encode(PARQUET, *(losses(float(n)) for n in range(50)))
    assert pq.ParquetFile(io.BytesIO(data)).num_row_groups == 1


def in_row_groups(table: pa.Table, rows: int) -> list[pa.Table]:
    """What is read of a Parquet file with so many rows in each row group."""
    out = io.BytesIO()
    pq.write_table(table, out, row_group_size=rows)
    return list(read(io.BytesIO(out.getvalue()), "f").tables)


def test_row_groups_that_follow_each_other_are_read_one_by_one() -> None:
    table = losses(*map(float, range(20)))
    parts = in_row_groups(table, 6)
    assert [part.num_rows for part in parts] == [6, 6, 6, 2]
    assert canonical(pa.concat_tables(parts)) == canonical(table)
    later_first = pa.concat_tables([table.slice(10), table.slice(0, 10)])
    (whole,) = in_row_groups(later_first, 5)
    assert whole.column("time").to_pylist() == table.column("time").to_pylist()


@pytest.mark.parametrize(
    ("format_", "samples", "values"),
    [
        (ARROW, [losses(1.0), losses(2.0, 3.0), losses(4.0)], [[1.0], [2.0, 3.0], [4.0]]),
        (ARROW, [pa.concat_tables([losses(1.0), losses(2.0)])], [[1.0, 2.0]]),  # several chunks
        *((whole, [losses(1.0), losses(2.0)], [[1.0, 2.0]]) for whole in (PARQUET, JSONL, CSV)),
    ],
)
def test_an_arrow_stream_gives_a_table_a_sample_and_others_all_at_once(
    format_, samples, values
) -> None:
    recording = read(io.BytesIO(encode(format_, *samples)), "input")
    assert recording.streaming is (format_ is ARROW)
    assert [table.column("value").to_pylist() for table in recording.tables] == values


def test_a_sample_of_an_arrow_stream_is_read_before_the_next_is_written() -> None:
    reading, writing = os.pipe()
    with os.fdopen(reading, "rb", buffering=0) as source, os.fdopen(writing, "wb") as sink:
        target = ARROW.writer(sink)
        target.write(losses(1.0))
        incoming = read(source, "-").tables
        assert next(incoming).column("value").to_pylist() == [1.0]
        target.write(losses(2.0))
        assert next(incoming).column("value").to_pylist() == [2.0]
        target.close()
        sink.close()
        assert list(incoming) == []


class _Dribble(io.RawIOBase):
    """A pipe that hands over a byte at a time."""

    def __init__(self, data: bytes) -> None:
        self._data = io.BytesIO(data)

    def readable(self) -> bool:
        return True

    def read(self, size: int = -1) -> bytes:
        return self._data.read(1 if size > 0 else size)


@pytest.mark.parametrize("format_", READABLE)
def test_short_reads_of_a_pipe_do_not_matter(format_) -> None:
    table = losses(1.0, 2.0)
    back = read_table(_Dribble(encode(format_, table)), "-")  # type: ignore[arg-type]
    assert canonical(back) == canonical(table)


def test_numbers_that_json_has_no_word_for_are_strings() -> None:
    text = encode(JSONL, losses(math.nan, math.inf, -math.inf)).decode()
    values = [line.split('"value": ')[1].split(",")[0] for line in text.splitlines()]
    assert values == ['"NaN"', '"Infinity"', '"-Infinity"']


@pytest.mark.parametrize("word", ["NaN", "nan", "Infinity", "-Infinity", "inf", "-inf"])
def test_numbers_that_csv_has_no_word_for_are_read_in_any_spelling(word) -> None:
    data = f"time,host,kind,value\n2026-01-31T12:00:00Z,h,progress,{word}\n".encode()
    back = decode(data).column("value")[0].as_py()
    assert repr(back) == repr(float(word))
