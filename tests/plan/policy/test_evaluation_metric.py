"""Which metric a job is judged by."""

from __future__ import annotations

from helpers.histories import history

from dltools.plan.policy.evaluation_metric import candidates, metric_of, objective


def test_candidates_are_validation_losses_first() -> None:
    names = ("accuracy", "aux_loss", "grad_norm", "loss", "val_accuracy", "val_loss")
    job = history({name: [(1.0, 1.0)] for name in names})
    assert candidates(job) == [
        "val_loss", "val_accuracy", "loss", "aux_loss", "accuracy", "grad_norm",
    ]  # fmt: skip


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
