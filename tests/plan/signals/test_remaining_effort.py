"""What a job still needs, worked by hand."""

import math

import pytest
from helpers.histories import history

from dltools.plan.signals.container_history import ContainerHistory
from dltools.plan.signals.effort import EpochCost
from dltools.plan.signals.remaining_effort import length_left, refit, remaining, to_target


def test_epochs_say_what_is_left() -> None:
    job = history(samples=[(0, 0), (20, 30)], labels={"dltools.epochs": "10", "dltools.steps": "7"})
    job.progress.epoch, job.progress.step = 4, 1
    found = remaining(job)
    assert (found.seconds, found.note) == (45.0, "epoch 4 of 10: 45 CPU s left")
    job.progress.epoch = None
    assert remaining(job).seconds == 180.0  # by its steps
    job.progress.step = 9
    assert remaining(job).seconds is None  # the label is wrong


def test_a_job_that_runs_on_after_its_last_epoch_has_an_unknown_length() -> None:
    job = history(samples=[(0, 0), (20, 30)])
    job.progress.note_counts(3, None)
    job.progress.epoch, job.progress.epoch_cost = 3, EpochCost(3.0, 18.0, 1.0, (6.0, 6.0))
    assert length_left(job) == 0.0  # it saves its model, it may be
    job.use.samples = [(0, 0), (20, 31)]  # more than two epochs since
    assert length_left(job) is None
    assert remaining(job).seconds is None


def test_what_a_job_says_itself_tells_what_is_left_where_no_label_does() -> None:
    job = history(samples=[(0, 0), (20, 30)])
    job.progress.step = 10
    job.progress.note_counts(None, 40)
    assert remaining(job).note == "step 10 of 40: 90 CPU s left"
    job.progress.epoch = 4
    job.progress.note_counts(10, None)
    assert remaining(job).note == "epoch 4 of 10: 45 CPU s left"
    labelled = history(samples=[(0, 0), (20, 30)], labels={"dltools.epochs": "5"})
    labelled.progress.epoch = 4
    labelled.progress.note_counts(10, None)
    assert remaining(labelled).note == "epoch 4 of 5: 7.5 CPU s left"


def test_what_a_step_costs_is_forgotten_where_epochs_count() -> None:
    job = history(samples=[(0, 0), (20, 30)])
    job.progress.note_counts(None, 40)
    job.progress.note_positions([(2_000_000, 1, None), (10_000_000, 5, None)], job.use)
    assert job.progress.epoch_cost is not None
    job.progress.note_counts(None, 50)
    assert job.progress.epoch_cost is not None
    job.progress.note_counts(10, None)
    assert job.progress.epoch_cost is None


LABELS = {"dltools.metric": "loss", "dltools.target": "1"}


def test_a_target_says_more_than_the_epochs_that_the_job_says() -> None:
    job = history({"loss": [(2, 14), (4, 13)]}, labels=LABELS)
    job.progress.epoch = 4
    job.progress.note_counts(10, None)
    assert remaining(job).note == "1 in 4 CPU s by its slope"


def test_two_points_give_a_slope_to_the_target() -> None:
    # Half a core: 1 CPU second at 2 s, 2 at 4 s, 10 when last seen; the loss falls by 1 a second.
    job = history({"loss": [(2, 14), (4, 13)]}, labels=LABELS)
    found = remaining(job)
    # From 13 to 1 takes 12 CPU seconds, of which 8 have been had since the last point.
    assert (found.seconds, found.note) == (4.0, "1 in 4 CPU s by its slope")
    assert to_target(job, 12.0).seconds == 0.0


@pytest.mark.parametrize("values", [[3], [3, 3], [3, 4]])
def test_no_slope_towards_the_target_tells_nothing(values) -> None:
    job = history({"loss": [(2.0 * n, value) for n, value in enumerate(values, 1)]}, labels=LABELS)
    assert (remaining(job).seconds, remaining(job).note) == (None, "too few points to predict")


def test_a_metric_that_was_never_reported_has_nothing_left_to_tell() -> None:
    found = to_target(history(labels=LABELS), 1.0)
    assert (found.seconds, found.note) == (None, "no loss yet")


def falling() -> ContainerHistory:
    """A line: the loss falls from 10 by 1 every CPU second, for 5 of them, with 1 more since."""
    points = {"loss": [(n / 10, 10 - n / 20) for n in range(1, 101)]}
    job = history(points, [(0, 0), (12, 6)], LABELS)
    refit([job])
    return job


def test_a_curve_gives_the_cpu_seconds_to_a_target() -> None:
    # By a line 0.1 CPU seconds beyond the last point, and 1 has been had since then.
    assert to_target(falling(), 4.9).seconds == 0.0
    further = to_target(falling(), 3.0)
    assert further.seconds == pytest.approx(1.0, abs=0.5)
    assert further.note.startswith("loss 3 in ")


def test_a_flat_curve_never_meets_a_target_and_has_converged() -> None:
    points = {"loss": [(n / 10, 2.0) for n in range(1, 101)]}
    job = history(points, labels=LABELS)
    refit([job])
    assert remaining(job).seconds == math.inf
    job.label({})
    found = remaining(job)
    assert (found.seconds, found.converged) == (math.inf, True)
    assert found.note == "loss has converged, but the job runs on"


def test_without_a_target_the_end_of_the_curve_is_what_is_left() -> None:
    # 2 exp(-w / 20) + 1 in CPU seconds: 98 % of the way from where it is known lies far beyond.
    points = {"loss": [(n / 10, 1 + 2 * math.exp(-n / 400)) for n in range(1, 401)]}
    job = history(points, [(0, 0), (40, 20)])
    refit([job])
    found = remaining(job)
    assert found.seconds is not None and found.seconds > 0
    assert not found.converged


def test_without_points_nothing_is_known_of_the_end() -> None:
    assert remaining(history()).note == "too few points to predict"
    assert remaining(history({"loss": [(1, 1), (2, 0.5)]})).seconds is None
