"""The one table of columns, and what is derived from it."""

import re
from collections.abc import Callable

import pytest

from dltools.observations import schema
from dltools.observations.formats.prometheus import prometheus_name
from dltools.observations.schema import (
    COLUMNS,
    NAMES,
    REQUIRED,
    VERSION,
    VERSION_KEY,
    Column,
    Instrument,
    Kind,
    Type,
    arrow_schema,
)

SUFFIXES = {
    "s": ("_seconds",), "By": ("_bytes",), "W": ("_watts",), "J": ("_joules",),
    "1": ("_ratio", "_weight", "value"), "{cpu}": ("_count", "_cores"), "{gpu}": ("_count",),
    "{thread}": ("_count",), "{epoch}": ("_count",), "{step}": ("_count",),
}  # fmt: skip
"""How a name ends that holds a value of a unit."""

SERIES = [
    (column, kind)
    for column in COLUMNS
    if column.instrument is not Instrument.ATTRIBUTE
    for kind in column.kinds
]


ENDS = tuple(end for ends in SUFFIXES.values() for end in ends)
SCALED = {
    "ms", "us", "ns", "millis", "micros", "nanos", "minutes", "hours", "percent",
    "kb", "mb", "gb", "kib", "mib", "gib", "milliwatts", "millijoules",
}  # fmt: skip
RULES: dict[str, Callable[[Column], object]] = {
    "a name is in snake case": lambda c: re.fullmatch(r"[a-z][a-z0-9]*(_[a-z0-9]+)*", c.name),
    "a name ends in its unit": lambda c: not c.unit or c.name.endswith(SUFFIXES[c.unit]),
    "a name without a unit ends in none": lambda c: c.unit or not c.name.endswith(ENDS),
    "units are base units": lambda c: not SCALED & set(c.name.split("_")),
    "no name says total": lambda c: not c.name.endswith("_total"),
    "help is a sentence": lambda c: re.fullmatch(r"([A-Z]|running|start)[^\n]*\.", c.help),
    "help is short": lambda c: len(c.help) <= 90,
    "bytes are whole": lambda c: c.unit != "By" or c.type is Type.INT,
    "measures are real": lambda c: c.unit not in ("s", "W", "J", "1") or c.type is Type.FLOAT,
    "an attribute has no unit": lambda c: bool(c.unit) is _is_measured(c),
    "a time or a word is an attribute": lambda c: (
        c.type not in (Type.TIME, Type.NAME) or not _is_measured(c)
    ),
    "kinds are named once and in order": lambda c: (
        c.kinds and [kind for kind in Kind if kind in c.kinds] == list(c.kinds)
    ),
}


def _is_measured(column: Column) -> bool:
    return column.instrument is not Instrument.ATTRIBUTE


@pytest.mark.parametrize("rule", RULES)
def test_columns_are_as_they_should_be(rule) -> None:
    assert [column.name for column in COLUMNS if not RULES[rule](column)] == []


def test_counters_are_totals() -> None:
    counters = [column for column in COLUMNS if column.instrument is Instrument.COUNTER]
    assert counters
    assert {column.unit for column in counters} <= {"s", "By", "J"}


def test_names_are_unique_and_those_that_are_required_come_first() -> None:
    assert len(set(NAMES)) == len(NAMES) == len(COLUMNS)
    assert NAMES[: len(REQUIRED)] == REQUIRED
    assert all(column.kinds == tuple(Kind) for column in COLUMNS[: len(REQUIRED)])
    own = {column.kinds[0] for column in COLUMNS if len(column.kinds) == 1}
    assert own == set(Kind)  # every kind has columns of its own


def test_the_arrow_schema_has_the_columns_in_order_and_what_they_mean() -> None:
    assert tuple(arrow_schema().names) == NAMES
    assert VERSION_KEY == b"dltools.schema"
    assert arrow_schema().metadata == {VERSION_KEY: VERSION.encode()}
    assert [field.name for field in arrow_schema() if not field.nullable] == list(REQUIRED)
    assert [field.metadata for field in arrow_schema()] == [
        {
            b"unit": column.unit.encode(),
            b"instrument": column.instrument.value.encode(),
            b"help": column.help.encode(),
        }
        for column in COLUMNS
    ]


def test_prometheus_names_are_unique_say_the_kind_once_and_end_counters_in_total() -> None:
    found = [prometheus_name(column, kind) for column, kind in SERIES]
    assert len(set(found)) == len(found)
    assert all(re.fullmatch(r"dltools(_[a-z0-9]+)+", name) for name in found)
    for column, kind in SERIES:
        name = prometheus_name(column, kind)
        assert name.startswith(f"dltools_{kind}_")
        assert name.split("_").count(kind) == 1
        assert name.endswith("_total") is (column.instrument is Instrument.COUNTER)


@pytest.mark.parametrize(
    ("column", "kind", "name"),
    [
        ("cpu_seconds", Kind.CONTAINER, "dltools_container_cpu_seconds_total"),
        ("gpu_utilization_ratio", Kind.GPU, "dltools_gpu_utilization_ratio"),
        ("value", Kind.PROGRESS, "dltools_progress_value"),
    ],
)
def test_prometheus_names(column, kind, name) -> None:
    found = next(one for one in schema.COLUMNS if one.name == column)
    assert prometheus_name(found, kind) == name
