"""What pictures are made of: thinned series, stretches of classes, cells of tables."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dltools.report.cells import cells, markdown
from dltools.report.looks import changes, look, stretches, thinned
from dltools.report.page import page


@given(st.lists(st.floats(-1e6, 1e6), max_size=300), st.integers(1, 50))
def test_thinned_series_keep_their_span_and_mean(values: list[float], most: int) -> None:
    series = [(float(time), value) for time, value in enumerate(values)]
    found = thinned(series, most)
    assert len(found) <= most or len(series) <= most
    if series:
        assert found[-1][0] == series[-1][0]
        assert min(values) - 1e-6 <= min(v for _, v in found)
        assert max(v for _, v in found) <= max(values) + 1e-6


def test_steps_keep_what_changes() -> None:
    series = [(0.0, 1.0), (1.0, 1.0), (2.0, 2.0), (3.0, 2.0), (4.0, 2.0)]
    assert changes(series) == [(0.0, 1.0), (2.0, 2.0), (4.0, 2.0)]


@pytest.mark.parametrize(
    ("classes", "expected"),
    [
        ([], [(5, 20, "")]),
        ([(5, "NL"), (10, "CL")], [(5, 10, "NL"), (10, 20, "CL")]),
        ([(7, "NL")], [(5, 7, ""), (7, 20, "NL")]),
        ([(0, "NL"), (30, "CL")], [(5, 20, "NL")]),
    ],
)
def test_stretches_of_classes_fill_a_jobs_life(
    classes: list[tuple[float, str]], expected: list[tuple[float, float, str]]
) -> None:
    assert stretches(classes, 5, 20) == expected


def test_classes_that_nobody_knows_look_different() -> None:
    used: dict[str, tuple[str, str]] = {}
    looks = [look(name, used) for name in ("one", "two", "three", "NL", "one")]
    assert len(set(looks[:3])) == 3
    assert looks[0] == looks[4]


def test_cells_show_ratios_and_leave_out_what_is_empty() -> None:
    rows = [
        {"run": "a|b", "makespan": 10.0, "makespan_ratio": 1.0, "satisfied": None},
        {"run": "c", "makespan": None, "makespan_ratio": None, "satisfied": None},
    ]
    found = cells(rows)
    assert (found.headers, found.rows) == (
        ("RUN", "MAKESPAN"), (("a|b", "10.0 s (1.00)"), ("c", "-")),
    )  # fmt: skip
    assert markdown(found).splitlines()[2] == "| a\\|b | 10.0 s (1.00) |"


def test_a_page_escapes_what_it_is_told() -> None:
    table = cells([{"run": "<script>alert(1)</script>", "makespan": 1.0}])
    text = page('"<b>', [("<i>", table)], [], "<u>")
    for tag in ("<script>", "<b>", "<i>", "<u>"):
        assert tag not in text
