"""The formats by name and first bytes, schema versions, and tables that others have rewritten."""

import io
import json
import math
import re
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any

import pyarrow as pa
import pytest
from helpers.encoding import (
    EPOCH,
    READABLE,
    as_arrow_stream,
    as_parquet,
    canonical,
    decode,
    encode,
    losses,
    narrow,
)

from dltools.errors import DataError
from dltools.observations.formats.arrow import FORMAT as ARROW
from dltools.observations.formats.parquet import FORMAT as PARQUET
from dltools.observations.formats.registry import NAMES as FORMAT_NAMES
from dltools.observations.formats.registry import formats, get_format, read_table
from dltools.observations.schema import NAMES, REQUIRED, VERSION, VERSION_KEY, arrow_schema
from dltools.observations.table import conform, to_table


def test_formats_have_the_names_that_the_registry_gives_them() -> None:
    assert tuple(formats()) == FORMAT_NAMES
    assert [format_.name for format_ in formats().values()] == list(FORMAT_NAMES)
    assert get_format("prom").title == "Prometheus text"
    suffixes = [suffix for format_ in formats().values() for suffix in format_.suffixes]
    assert len(set(suffixes)) == len(suffixes)


TABLE = losses(0.5, 0.25, 0.125)
ENCODERS = [as_parquet, as_arrow_stream]
Encoder = Callable[[pa.Table], bytes]


@pytest.fixture(params=ENCODERS, ids=lambda encoder: encoder.__name__)
def encoder(request: pytest.FixtureRequest) -> Encoder:
    """Each binary encoding that another tool may have used."""
    return request.param


def _with(name: str, values: Any, table: pa.Table = TABLE) -> pa.Table:
    return table.set_column(table.schema.get_field_index(name), name, values)


def _version(version: str, table: pa.Table = TABLE) -> pa.Table:
    return table.replace_schema_metadata({VERSION_KEY: version.encode()})


@pytest.mark.parametrize("written", READABLE)
@pytest.mark.parametrize("name", ["x.parquet", "x.csv", "x.jsonl", "-", "x.arrow.gz"])
def test_the_bytes_and_not_the_name_tell_the_format(written, name) -> None:
    table = read_table(io.BytesIO(encode(written, TABLE)), name)
    assert canonical(table) == canonical(TABLE)


def test_csv_is_recognised_with_and_without_quotes_and_byte_order_mark() -> None:
    row = b"2026-01-31T12:00:00Z,h,node\n"
    for header in (
        b"time,host,kind\n",
        b'"time","host","kind"\n',
        b"\xef\xbb\xbftime,host,kind\n",
        b"time,host,kind\r\n",
    ):
        assert decode(header + row).column("host").to_pylist() == ["h"]
        assert len(decode(header)) == 0


def test_unknown_columns_of_csv_and_json_lines_are_dropped() -> None:
    for data in (
        b"time,host,kind,later\n2026-01-31T12:00:00Z,h,node,x\n",
        b'{"time":"2026-01-31T12:00:00Z","host":"h","kind":"node","later":{"x":[1]}}\n',
    ):
        assert decode(data).column_names == list(NAMES)


def test_a_time_of_another_offset_is_read_as_the_same_moment() -> None:
    for data in (
        b"time,host,kind\n2026-01-31T14:00:00.250001+02:00,h,node\n",
        b'{"time":"2026-01-31T14:00:00.250001+02:00","host":"h","kind":"node"}\n',
    ):
        assert decode(data).column("time").to_pylist() == [EPOCH]


@pytest.mark.parametrize("version", ["1", "1.0", "1.7", "1.10", "1.2.3"])
def test_a_newer_minor_version_is_read_less_its_new_columns(encoder, version) -> None:
    newer = _version(version, TABLE.append_column("later", pa.array([{"deep": [1]}] * 3)))
    assert canonical(decode(encoder(newer))) == canonical(TABLE)


@pytest.mark.parametrize("version", ["2.0", "0.9", "10.0", "11.0"])
def test_another_major_version_is_refused_and_both_are_named(encoder, version) -> None:
    with pytest.raises(DataError) as refused:
        decode(encoder(_version(version)))
    assert re.search(rf"version '?{version}\b", str(refused.value))
    assert re.search(rf"version '?{VERSION}\b", str(refused.value))


def test_another_major_version_is_refused_before_its_columns_are_missed(encoder) -> None:
    renamed = _version("2.0", pa.table({"timestamp": [1]}))
    for table in (renamed, _version("2.0").slice(0, 0)):  # also where there are no batches
        with pytest.raises(DataError, match=r"schema version .?2\.0"):
            decode(encoder(table))


def test_another_major_version_is_refused_in_json_lines() -> None:
    row = '{"dltools.schema":"%s","time":"2026-01-31T12:00:00Z","host":"h","kind":"node"}'
    assert len(decode((row % "1.9").encode())) == 1
    with pytest.raises(DataError, match=rf"version .?2\.0.*version .?{VERSION}"):
        decode((row % "2.0").encode())


def test_a_version_that_is_no_text_is_refused() -> None:
    with pytest.raises(DataError, match="schema version"):
        conform(TABLE.replace_schema_metadata({VERSION_KEY: b"\xff\xfe"}), "input")


@pytest.mark.parametrize(
    "version",
    ["", "x", "2\n0", "\r", "\x1b[2J", "\x00", "\x85", "9" * 10_000],
    ids=["empty", "x", "newline", "return", "escape", "NUL", "NEL", "long"],
)
def test_a_hostile_version_is_named_in_one_short_printable_line(version) -> None:
    row = {"dltools.schema": version, "time": "2026-01-31T12:00:00Z", "host": "h", "kind": "node"}
    for data in (as_parquet(_version(version)), json.dumps(row).encode()):
        with pytest.raises(DataError, match="schema version") as refused:
            decode(data)
        assert str(refused.value).isprintable()
        assert len(str(refused.value)) < 300


@pytest.mark.parametrize("column", REQUIRED)
def test_a_table_without_a_required_column_is_refused(encoder, column) -> None:
    with pytest.raises(DataError, match=f"not dltools observations: no column {column}$"):
        decode(encoder(TABLE.drop_columns([column])))


HOSTS, MOMENTS = pa.array(["node-1"] * 3), TABLE["time"].to_pylist()
SHORT, KOLKATA = pa.dictionary(pa.int8(), pa.string()), pa.timestamp("us", "Asia/Kolkata")
NANOS = pa.timestamp("ns", "UTC")


@pytest.mark.parametrize(
    "table",
    [
        pytest.param(TABLE.replace_schema_metadata(None), id="no metadata"),
        pytest.param(narrow(TABLE), id="columns that are missing"),
        pytest.param(TABLE.select(NAMES[::-1]), id="columns in another order"),
        pytest.param(_with("host", HOSTS), id="plain strings"),
        pytest.param(_with("host", HOSTS.cast(pa.large_string())), id="large strings"),
        pytest.param(_with("host", HOSTS.cast(pa.string_view())), id="string views"),
        pytest.param(_with("host", HOSTS.dictionary_encode().cast(SHORT)), id="other dictionary"),
        pytest.param(_with("time", TABLE["time"].cast(NANOS)), id="nanoseconds"),
        pytest.param(_with("time", TABLE["time"].cast(KOLKATA)), id="another zone"),
        pytest.param(_with("time", pa.array(map(datetime.isoformat, MOMENTS))), id="times as text"),
        pytest.param(_with("step", TABLE["step"].cast(pa.int32())), id="32 bits"),
        pytest.param(_with("step", TABLE["step"].cast(pa.uint64())), id="unsigned"),
        pytest.param(_with("step", TABLE["step"].cast(pa.float64())), id="whole numbers as reals"),
        pytest.param(_with("cpu_seconds", pa.nulls(3)), id="an untyped column of nulls"),
    ],
)
def test_a_table_that_fits_is_read_and_values_of_a_near_type_are_cast(encoder, table) -> None:
    back = decode(encoder(table))
    assert back.schema.equals(arrow_schema(), check_metadata=True)
    assert canonical(back) == canonical(TABLE)


def test_seconds_are_cast_to_microseconds(encoder) -> None:
    whole = EPOCH.replace(microsecond=0)
    table = losses(1.0, start=whole)
    coarse = _with("time", table["time"].cast(pa.timestamp("s", "UTC")), table)
    assert decode(encoder(coarse)).column("time").to_pylist() == [whole]


@pytest.mark.parametrize(
    ("column", "values"),
    [
        pytest.param("time", pa.array([[1]] * 3), id="lists of times"),
        pytest.param("time", pa.array(["noon"] * 3), id="words for times"),
        pytest.param("time", pa.array([2**50] * 3, pa.timestamp("s", "UTC")), id="times too late"),
        pytest.param("host", pa.array([["h"]] * 3), id="lists of names"),
        pytest.param("host", pa.array([b"\xff"] * 3), id="bytes that are no UTF-8"),
        pytest.param("value", pa.array(["low", "high", "?"]), id="words for reals"),
        pytest.param("value", pa.array([2**62 + 1] * 3), id="integers that no real holds"),
        pytest.param("value", pa.array([[1.0]] * 3), id="lists of reals"),
        pytest.param("value", TABLE["time"], id="times for reals"),
        pytest.param("step", pa.array([1.5] * 3), id="fractions for integers"),
        pytest.param("step", pa.array([math.nan] * 3), id="NaN for integers"),
        pytest.param("step", pa.array([2**64 - 1] * 3, pa.uint64()), id="integers too large"),
    ],
)
def test_values_of_a_wrong_type_are_refused_by_their_column(encoder, column, values) -> None:
    with pytest.raises(DataError, match=f"^input: column {column}"):
        decode(encoder(_with(column, values)))


@pytest.mark.parametrize("column", REQUIRED)
def test_a_null_in_a_required_column_is_refused(encoder, column) -> None:
    values = TABLE[column].cast(pa.string()) if column != "time" else TABLE[column]
    holed = pa.array([values[0].as_py(), None, values[2].as_py()], values.type)
    with pytest.raises(DataError, match=f"^input: column {column} has empty values"):
        decode(encoder(_with(column, holed)))


@pytest.mark.parametrize("encoder", [as_arrow_stream], ids=lambda e: e.__name__)
def test_a_null_inside_a_dictionary_is_a_null_too(encoder) -> None:
    holed = pa.DictionaryArray.from_arrays(pa.array([0, 1, 0], pa.int32()), pa.array(["h", None]))
    with pytest.raises(DataError, match=r"^input: column host has empty values"):
        decode(encoder(_with("host", holed)))


@pytest.mark.parametrize("column", REQUIRED)
def test_an_empty_required_cell_is_refused_in_csv(column) -> None:
    cells = {"time": "2026-01-31T12:00:00Z", "host": "h", "kind": "node", column: ""}
    with pytest.raises(DataError, match=rf"column {column} has empty values"):
        decode(f"time,host,kind\n{','.join(cells.values())}\n".encode())


def test_unsorted_rows_are_sorted_by_time_and_ties_keep_their_order(encoder) -> None:
    times = [EPOCH + timedelta(seconds=s) for s in (3, 1, 2, 1, 0)]
    hosts, kinds = [f"h{n}" for n in range(5)], ["node"] * 5
    moments = pa.array(times, pa.timestamp("us", "UTC"))
    table = pa.table({"time": moments, "host": hosts, "kind": kinds})
    assert decode(encoder(table)).column("host").to_pylist() == ["h4", "h1", "h3", "h2", "h0"]


def test_unsorted_json_lines_and_csv_are_sorted() -> None:
    rows = [("2026-01-31T12:00:01Z", "b"), ("2026-01-31T12:00:00Z", "a")]
    csv = "time,host,kind\n" + "".join(f"{time},{host},node\n" for time, host in rows)
    lines = "".join(f'{{"time":"{t}","host":"{h}","kind":"node"}}\n' for t, h in rows)
    for data in (csv, lines):
        assert decode(data.encode()).column("host").to_pylist() == ["a", "b"]


def test_batches_of_a_stream_are_sorted_across_batches() -> None:
    later, earlier = losses(2.0, start=EPOCH + timedelta(hours=1)), losses(1.0)
    data = encode(ARROW, later, earlier)
    assert decode(data).column("value").to_pylist() == [1.0, 2.0]


def test_a_kind_of_a_later_version_is_read() -> None:
    table = to_table([{"time": EPOCH, "host": "h", "kind": "volume"}])
    assert decode(encode(PARQUET, table)).column("kind").to_pylist() == ["volume"]
