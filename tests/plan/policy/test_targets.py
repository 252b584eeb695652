"""Targets that labels give."""

from __future__ import annotations

import pytest

from dltools.plan.policy.targets import parse


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("0.2", 0.2), ("200ms", 0.2), ("200 MS", 0.2), ("2s", 2.0), (".5", 0.5), ("2e-1", 0.2)],
)
def test_response_times_have_a_unit_or_are_seconds(text: str, seconds: float) -> None:
    assert parse({"dltools.qoe": text}).qoe_s == pytest.approx(seconds)


@pytest.mark.parametrize("text", ["", "x", "-1", "0", "nan", "inf", "1h", "200us"])
def test_other_response_times_are_no_target(text: str) -> None:
    assert parse({"dltools.qoe": text}).qoe_s is None
