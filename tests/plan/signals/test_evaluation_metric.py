"""Which metric a job is judged by."""

import json
import math

import pytest
from helpers.histories import history
from helpers.observed_rows import container, decisions_of, node, planner_of, point

from dltools.observations.table import Row
from dltools.plan.policy import registry
from dltools.plan.realisation.options import Mode
from dltools.plan.signals.evaluation_metric import candidates, has_diverged, metric_of, objective


def test_candidates_are_validation_losses_first() -> None:
    order = ["val_loss", "val_accuracy", "loss", "aux_loss", "accuracy", "grad_norm"]
    assert candidates(history({name: [(1.0, 1.0)] for name in sorted(order)})) == order


def test_a_loss_that_is_always_0_comes_last() -> None:
    job = history({"policy_loss": [(1.0, 0.0), (2.0, 0.0)], "kl": [(1.0, 0.1)]})
    assert candidates(job) == ["kl", "policy_loss"]
    job.add_points("policy_loss", ([3_000_000], [0.5], [None]))
    assert candidates(job) == ["policy_loss", "kl"]


def test_a_metric_that_was_never_finite_is_no_candidate() -> None:
    job = history({"val_loss": [(1.0, math.nan)], "loss": [(1.0, 0.5)]})
    assert candidates(job) == ["loss"]
    job.add_points("val_loss", ([2_000_000], [0.5], [None]))
    assert candidates(job) == ["val_loss", "loss"]
    labels = {"dltools.metric": "f1"}
    assert candidates(history({"f1": [(1, math.inf)], "loss": [(1, 1)]}, labels=labels)) == ["loss"]


def test_the_metric_of_a_job_is_not_one_that_is_lost_while_its_loss_is_finite() -> None:
    lost = [(0.0, 1.0), *((second, math.nan) for second in (1.0, 2.0, 3.0))]
    assert metric_of(history({"val_loss": lost[:3], "loss": [(1, 1)]})) == "val_loss"
    assert metric_of(history({"val_loss": lost, "loss": [(1, 1)]})) == "loss"
    diverged = history({"val_loss": lost, "loss": lost, "grad_norm": [(1, 1)]})
    assert metric_of(diverged) == "val_loss"
    assert has_diverged(diverged, "val_loss")
    assert metric_of(history({"val_loss": [(1, math.nan)], "kl": [(1, math.nan)]})) == "val_loss"


def test_the_label_s_metric_is_the_only_candidate_once_it_is_reported() -> None:
    labels = {"dltools.metric": "accuracy"}
    points = {"val_loss": [(1.0, 1.0)], "loss": [(1.0, 1.0)]}
    assert candidates(history(points, labels=labels)) == ["val_loss", "loss"]
    assert candidates(history({**points, "accuracy": [(1.0, 0.5)]}, labels=labels)) == ["accuracy"]
    assert candidates(history()) == []


def test_the_metric_of_a_job_is_its_target_s_where_it_reports_that() -> None:
    labels = {"dltools.metric": "f1", "dltools.target": "0.9"}
    assert metric_of(history({"loss": [(1, 1)]}, labels=labels)) == "loss"
    assert metric_of(history({"loss": [(1, 1)], "f1": [(1, 0.5)]}, labels=labels)) == "f1"
    assert metric_of(history(labels=labels)) is None


def test_the_objective_is_the_label_s_or_the_name_s() -> None:
    assert objective(history(), "loss") == "min"
    assert objective(history(), "accuracy") == "max"
    assert objective(history(labels={"dltools.objective": " MAX "}), "loss") == "max"
    assert objective(history(labels={"dltools.objective": "more"}), "loss") == "min"


# A label that names a metric which never appears


def rows(metric: str, **more: str) -> list[Row]:
    """Two equal jobs that learn, one CPU each; b's labels name this metric, a has none."""
    found: list[Row] = []
    for number in range(12):
        found.append(node(10 * number))
        for name, labels in (("a", {}), ("b", {"dltools.metric": metric, **more})):
            text = json.dumps(labels)
            found.append(container(10 * number, name, 10 * number, labels=text, thread_count=2))
            found.append(point(10 * number, name, 0.9**number, step=number))
    return found


@pytest.mark.parametrize("labels", [{}, {"dltools.target": "0.01"}], ids=["metric", "target"])
@pytest.mark.parametrize("name", ["flowcon", "slaq", "srtf", "tradl"])
def test_a_metric_that_never_appears_gains_nothing(name, labels) -> None:
    policy = registry.get(name, [])
    found = decisions_of(planner_of(rows("nosuch", **labels), policy, Mode.WEIGHT, itval=10))
    a, b = found["a"].allocation, found["b"].allocation
    assert (b.share or 0) <= (a.share or 0)
    assert b.unlimited == a.unlimited
    assert b.rank >= a.rank


def test_a_job_with_a_misspelt_metric_is_judged_by_what_it_reports() -> None:
    found = decisions_of(planner_of(rows("nosuch"), mode=Mode.WEIGHT, itval=10))
    assert found["b"].allocation.signal == found["a"].allocation.signal
    assert "of loss" in found["b"].allocation.signal
