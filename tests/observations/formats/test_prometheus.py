"""Prometheus text, checked by a strict reader of the exposition format."""

import math
import re
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

import pytest
from helpers.encoding import EPOCH
from helpers.examples import examples
from helpers.strategies import rows, texts
from hypothesis import given
from hypothesis import strategies as st

from dltools.observations.formats.prometheus import prometheus_name, prometheus_text
from dltools.observations.schema import COLUMNS, Instrument, Kind

_NAME = r"[a-zA-Z_:][a-zA-Z0-9_:]*"
_LABEL = re.compile(r'([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\\n]|\\["\\n])*)"(,|$)')
_SAMPLE = re.compile(rf"({_NAME})(?:\{{(.*)\}})? (\S+)", re.DOTALL)
_FLOAT = re.compile(r"[-+]?(?:\d+(?:\.\d*)?(?:e[-+]?\d+)?|\.\d+|Inf)|NaN", re.IGNORECASE)

Labels = tuple[tuple[str, str], ...]


@dataclass
class Family:
    help: str
    type: str = ""
    series: dict[Labels, str] = field(default_factory=dict)


def parse(text: str) -> dict[str, Family]:
    """Read exposition text as strictly as its grammar is written."""
    families: dict[str, Family] = {}
    assert text == "" or text.endswith("\n")
    for line in text.split("\n")[:-1]:
        if match := re.fullmatch(rf"# HELP ({_NAME}) (.+)", line):
            assert match[1] not in families, f"{match[1]} comes twice"
            families[match[1]] = Family(match[2])
        elif match := re.fullmatch(rf"# TYPE ({_NAME}) (counter|gauge)", line):
            assert list(families)[-1] == match[1], "TYPE follows its own HELP"
            assert families[match[1]].type == ""
            families[match[1]].type = match[2]
        else:
            match = _SAMPLE.fullmatch(line)
            assert match, line
            name, labels, value = match.groups()
            assert list(families)[-1] == name, "samples follow their own TYPE"
            assert families[name].type
            assert _FLOAT.fullmatch(value), value
            key = _labels(labels or "")
            assert key not in families[name].series, f"{line} comes twice"
            families[name].series[key] = value
    return families


def _labels(text: str) -> Labels:
    found, place = [], 0
    while place < len(text):
        match = _LABEL.match(text, place)
        assert match, text
        value = re.sub(r"\\(.)", lambda m: {"n": "\n"}.get(m[1], m[1]), match[2])
        found.append((match[1], value))
        place = match.end()
    assert len({name for name, _ in found}) == len(found)
    return tuple(found)


def _row(kind: Kind, **cells: Any) -> dict[str, Any]:
    return {"time": EPOCH, "host": "node-1", "kind": kind.value, **cells}


def _only(text: str) -> tuple[Labels, str]:
    (family,) = parse(text).values()
    ((labels, value),) = family.series.items()
    return labels, value


@examples(100)
@given(found=st.lists(rows(), max_size=8))
def test_any_rows_give_valid_text(found) -> None:
    families = parse(prometheus_text(found))
    expected = {
        prometheus_name(column, Kind(row["kind"]))
        for row in found
        for column in COLUMNS
        if column.instrument is not Instrument.ATTRIBUTE
        and row["kind"] != Kind.EVENT
        and row.get(column.name) is not None
    }
    assert set(families) == expected


@examples(50)
@given(found=st.lists(rows(), max_size=8))
def test_the_text_does_not_depend_on_the_order_of_series(found) -> None:
    distinct = [{**row, "host": f"h{n}"} for n, row in enumerate(found)]
    assert prometheus_text(distinct) == prometheus_text(distinct[::-1])


def test_the_text_is_as_the_textfile_collector_wants_it() -> None:
    rows_ = [
        _row(Kind.NODE, cpu_count=8.0),
        _row(Kind.CONTAINER, container_id="c1", container_name="job", cpu_seconds=12.5),
        _row(Kind.CONTAINER, container_id="c2", container_name="web", cpu_seconds=3.0),
    ]
    assert prometheus_text(rows_) == (
        "# HELP dltools_container_cpu_seconds_total"
        " CPU time used by the container, or by everything on the host.\n"
        "# TYPE dltools_container_cpu_seconds_total counter\n"
        'dltools_container_cpu_seconds_total{host="node-1",container_id="c1",container_name="job"}'
        " 12.5\n"
        'dltools_container_cpu_seconds_total{host="node-1",container_id="c2",container_name="web"}'
        " 3.0\n"
        "# HELP dltools_node_cpu_count"
        " CPUs that containers can really use: online, in the cpuset, under the parents' quota.\n"
        "# TYPE dltools_node_cpu_count gauge\n"
        'dltools_node_cpu_count{host="node-1"} 8.0\n'
    )


def test_counters_are_counters_and_end_in_total() -> None:
    measured = [column for column in COLUMNS if column.instrument is not Instrument.ATTRIBUTE]
    filled = [
        _row(kind, **{column.name: 1 for column in measured if kind in column.kinds})
        for kind in Kind
    ]
    families = parse(prometheus_text(filled))
    counters = {name for name, family in families.items() if family.type == "counter"}
    assert counters == {name for name in families if name.endswith("_total")}
    assert len(families) == sum(len(column.kinds) for column in measured)


def test_the_newest_value_of_a_series_wins() -> None:
    older = _row(Kind.PROGRESS, container_id="c", metric="loss", value=0.9)
    newer = {**older, "time": EPOCH + timedelta(seconds=1), "value": 0.5}
    assert _only(prometheus_text([older, newer]))[1] == "0.5"


@pytest.mark.parametrize(
    ("value", "written"),
    [(math.nan, "NaN"), (math.inf, "+Inf"), (0.0, "0.0"), (1e300, "1e+300"), (5e-324, "5e-324")],
)
def test_reals_are_written_exactly(value, written) -> None:
    row = _row(Kind.PROGRESS, metric="loss", value=value)
    assert _only(prometheus_text([row]))[1] == written


def test_integers_are_written_whole() -> None:
    row = _row(Kind.CONTAINER, memory_usage_bytes=2**63 - 1)
    assert _only(prometheus_text([row]))[1] == "9223372036854775807"


@pytest.mark.parametrize(
    ("name", "written"),
    [
        ('say "x"', r"say \"x\""),
        ("two\nlines", r"two\nlines"),
        ("back\\slash", r"back\\slash"),
        ("größe 🐋", "größe 🐋"),
    ],
)
def test_labels_are_escaped(name, written) -> None:
    text = prometheus_text([_row(Kind.CONTAINER, container_name=name, cpu_seconds=1.0)])
    assert f'container_name="{written}"}} 1.0\n' in text


@examples(100)
@given(name=texts)
def test_any_label_is_read_back(name) -> None:
    text = prometheus_text([_row(Kind.CONTAINER, container_name=name, cpu_seconds=1.0)])
    assert _only(text)[0] == (("host", "node-1"), ("container_name", name))


def test_absent_labels_are_left_out() -> None:
    row = _row(Kind.GPU, container_id="c", gpu_uuid="GPU-1", gpu_sm_ratio=0.5)
    labels, _ = _only(prometheus_text([row]))
    assert labels == (("host", "node-1"), ("container_id", "c"), ("gpu_uuid", "GPU-1"))


def test_a_kind_of_a_later_version_has_no_series() -> None:
    row = {"time": EPOCH, "host": "h", "kind": "volume", "cpu_seconds": 1.0}
    assert prometheus_text([row]) == ""
