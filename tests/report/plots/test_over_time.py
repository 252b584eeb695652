"""What is drawn over time: errors of metrics, worked by hand, and limits where there are some."""

import math

import pytest
from helpers.observed_rows import container, node
from hypothesis import given
from hypothesis import strategies as st

from dltools.observations.container_records import Series, SeriesPoint
from dltools.observations.table import to_table
from dltools.report.observed_run import observed_run
from dltools.report.plots.over_time import relative_error


def series(*values: float) -> Series:
    return [SeriesPoint(float(at), value) for at, value in enumerate(values)]


def errors(metric: str, *values: float) -> list[float]:
    return [value for _, value in relative_error(series(*values), metric)]


@pytest.mark.parametrize(
    ("metric", "values", "expected"),
    [
        ("loss", (2.0, 1.0, 0.02, 4.0), [1, 0.5, 0.01, 2]),
        ("val_accuracy", (0.1, 0.55, 0.91, 1.0), [1, 0.5, 0.1, 0.001]),
        ("reward", (-10.0, 0.0, 10.0), [1, 11 / 21, 1 / 21]),
    ],
)
def test_an_error_is_a_loss_or_what_a_score_lacks(metric, values, expected) -> None:
    assert errors(metric, *values) == pytest.approx(expected)


def test_a_negative_loss_and_one_that_stands_still() -> None:
    assert errors("loss", 1.0, -1.0) == pytest.approx([1, 0.1 / 2.1])
    assert errors("loss", 0.0, 0.0) == [1, 1]
    assert errors("loss", 2e-311, 1.0) == [0.001, 1]


@given(
    st.sampled_from(["loss", "val_accuracy", "reward"]),
    st.lists(st.floats(-1e6, 1e6), min_size=2, max_size=50),
)
def test_errors_are_positive_and_finite(metric, values) -> None:
    assert all(0 < error < math.inf for error in errors(metric, *values))


def test_a_limit_is_known_only_while_there_is_one() -> None:
    quotas = [2.0, 0.5, 0.5, 2.0]
    rows = []
    for at, quota in enumerate(quotas):
        rows += [node(at), container(at, "a", 1.0 * at, cpu_limit_cores=quota)]
        rows += [container(at, "b", 1.0 * at, cpu_weight=10.0 if at == 3 else 1024.0)]
    lines = observed_run([to_table(rows)], "run", "file").timelines
    shown = {
        name: [None if math.isnan(cores) else round(cores, 2) for _, cores in line.bound]
        for name, line in lines.items()
    }
    assert shown == {"a": [None, 0.5, 0.5, None], "b": [None, None, None, 0.02]}
