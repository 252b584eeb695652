"""A label that names a metric which never appears gains its job nothing."""

from __future__ import annotations

import json

import pytest
from helpers.observing import container, fold, node, point, verdicts

from dltools.observations.table import Row
from dltools.plan.policy import registry
from dltools.plan.realisation.mode import Mode

TARGET = "dltools.target"


def rows(metric: str, **more: str) -> list[Row]:
    """Two jobs alike that learn, one CPU each; b's labels name this metric, a has none."""
    made: list[Row] = []
    for tick in range(12):
        made.append(node(10 * tick))
        for name, labels in (("a", {}), ("b", {"dltools.metric": metric, **more})):
            text = json.dumps(labels)
            made.append(container(10 * tick, name, 10 * tick, labels=text, thread_count=2))
            made.append(point(10 * tick, name, 0.9**tick, step=tick))
    return made


@pytest.mark.parametrize("labels", [{}, {TARGET: "0.01"}], ids=["metric", "target"])
@pytest.mark.parametrize("name", ["flowcon", "slaq", "srtf", "tradl"])
def test_a_metric_that_never_appears_gains_nothing(name: str, labels: dict[str, str]) -> None:
    policy = registry.get(name, [])
    found = verdicts(fold(rows("nosuch", **labels), policy, Mode.WEIGHT, itval=10))
    a, b = found["a"].allocation, found["b"].allocation
    assert (b.share or 0) <= (a.share or 0)
    assert (b.unlimited, b.rank) == (a.unlimited, a.rank)


def test_it_is_judged_by_what_it_does_report() -> None:
    found = verdicts(fold(rows("nosuch"), mode=Mode.WEIGHT, itval=10))
    assert found["b"].allocation.signal == found["a"].allocation.signal
    assert "of loss" in found["b"].allocation.signal
