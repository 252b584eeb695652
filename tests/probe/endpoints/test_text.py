"""Prometheus text as numbers, and quantiles of histograms."""

from __future__ import annotations

import math

import pytest

from dltools.probe.endpoints.window import parse_metrics, quantile


def test_broken_lines_harm_no_others() -> None:
    models = "".join(f'nv_inference_request_success{{model="{name}"}} 1\n' for name in "ab")
    text = "garbage {{{\n# HELP x y\n" + models + 'x{y="} 3\n\0\n'
    assert parse_metrics(text).values["nv_inference_request_success"] == 2


def test_a_number_of_hundreds_of_digits_is_left_out() -> None:
    """Found by fuzzing: it stopped the probe."""
    assert parse_metrics(f"a {'9' * 400}\nb 1\n").values == {"b": 1.0}


def test_a_label_may_hold_a_dict() -> None:
    text = "tgi_x{method=\"{'method': 'prefill'}\"} 3\n"
    assert parse_metrics(text).values == {"tgi_x": 3.0}


def test_nan_quantiles_are_left_out() -> None:
    assert parse_metrics('a{quantile="0.5"} NaN\na_sum 1\n').values == {"a_sum": 1.0}


@pytest.mark.parametrize(
    ("share", "before", "after", "expected"),
    [
        (0.5, {}, {1.0: 10, math.inf: 10}, 0.5),
        (0.5, {}, {1.0: 0, 2.0: 10, math.inf: 10}, 1.5),
        (0.99, {}, {1.0: 5, math.inf: 10}, 1.0),
        (0.5, {1.0: 10, math.inf: 10}, {1.0: 10, math.inf: 10}, None),
        (0.5, {}, {}, None),
        (0.5, {}, {math.inf: 10}, None),
    ],
)
def test_quantiles_are_linear_within_a_bucket(
    share: float, before: dict[float, float], after: dict[float, float], expected: float | None
) -> None:
    rises = {bound: count - before.get(bound, 0) for bound, count in after.items()}
    assert quantile(share, rises) == expected


def test_infinity_is_no_count() -> None:
    assert parse_metrics("ts_inference_requests_total +Inf\n").values == {}


def test_a_histogram_without_its_last_bucket_has_no_quantile() -> None:
    assert quantile(0.99, {1.0: 5, 2.0: 10}) is None
