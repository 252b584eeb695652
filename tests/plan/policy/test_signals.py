"""What policies read off a job, worked by hand: windows, growth, CPU shares, what is left to do."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import pytest

from dltools.plan.policy.container_history import MICRO, ContainerHistory
from dltools.plan.policy.signals import (
    Growth,
    candidates,
    cpu_share,
    growth,
    metric_of,
    objective,
    refit,
    remaining,
    to_target,
)

Points = Mapping[str, Sequence[tuple[float, float]]]

CPUS = 2.0
INTERVAL_S = 10.0
NOW_S = 20.0
EVEN = [(0.0, 0.0), (10.0, 5.0), (20.0, 10.0)]
"""Half a core all the time: a quarter of the host."""


def made(
    points: Points | None = None,
    samples: Sequence[tuple[float, float]] = EVEN,
    labels: Mapping[str, str] | None = None,
    started_s: float | None = None,
) -> ContainerHistory:
    """A job with points (second, value) and counter samples (second, CPU seconds)."""
    job = ContainerHistory("c" * 64, "job", "host", arrived=0)
    job.started = None if started_s is None else round(started_s * MICRO)
    job.label(labels or {})
    for second, cpu_seconds in samples:
        job.add_sample(round(second * MICRO), cpu_seconds)
    for metric, pairs in (points or {}).items():
        times = [round(second * MICRO) for second, _ in pairs]
        values = [value for _, value in pairs]
        job.add_points(metric, times, values, [None] * len(pairs), curves=True)
    return job


def grown(job: ContainerHistory, *, signed: bool = False) -> Growth:
    return growth(job, round(NOW_S * MICRO), INTERVAL_S, CPUS, signed=signed)


def used(job: ContainerHistory, now_s: float = NOW_S, cpus: float = CPUS) -> object:
    return cpu_share(job, round(now_s * MICRO), round(INTERVAL_S * MICRO), cpus)


# Growth: the windows are (0, 10] and (10, 20]


def test_growth_is_the_change_of_the_means_per_second_and_share_of_the_host() -> None:
    found = grown(made({"loss": [(2, 4), (8, 2), (12, 1.5), (18, 0.5)]}))
    # E = 3/4 and 1/4 of the peak; P = 0.5 / 10 s; R = 5 s / 10 s / 2 CPUs; G = P / R
    assert found == Growth("loss", 0.05, 0.25, 0.2, "")


def test_a_window_holds_its_end_and_not_its_beginning() -> None:
    found = grown(made({"loss": [(0, 8), (10, 4), (20, 2)]}))
    # The 8 at 0 s is in neither window, but it is the peak: 4/8 and 2/8.
    assert found.progress == pytest.approx((0.5 - 0.25) / 10)


def test_a_point_a_microsecond_after_now_is_in_no_window() -> None:
    found = grown(made({"loss": [(5, 4), (20, 2), (20.000_001, 100)]}))
    assert found.progress == pytest.approx((4 - 2) / 100 / 10)  # the peak is what was seen so far


@pytest.mark.parametrize("points", [[], [(15, 1)], [(5, 1)], [(0, 1), (15, 1)], [(5, 1), (25, 1)]])
def test_growth_is_unknown_without_points_in_both_windows(
    points: list[tuple[float, float]],
) -> None:
    found = grown(made({"loss": points}))
    word = "loss" if points else "metric"
    note = f"no {word} in two intervals of 10 s yet"
    assert found == Growth("loss" if points else "", None, None, None, note)


def test_the_best_metric_with_points_in_both_windows_is_used() -> None:
    both = [(5.0, 2.0), (15.0, 1.0)]
    assert grown(made({"loss": both, "val_loss": both})).metric == "val_loss"
    assert grown(made({"loss": both, "val_loss": both[:1]})).metric == "loss"


def test_a_metric_that_stands_still_has_grown_by_nothing() -> None:
    assert grown(made({"loss": [(5, 2), (15, 2)]})) == Growth("loss", 0.0, 0.25, 0.0, "")


def test_signed_growth_counts_only_change_for_the_better() -> None:
    falls, rises = [(5.0, 2.0), (15.0, 1.0)], [(5.0, 1.0), (15.0, 2.0)]
    for metric, better, worse in (("loss", falls, rises), ("accuracy", rises, falls)):
        assert grown(made({metric: better}), signed=True).efficiency == pytest.approx(0.2)
        assert grown(made({metric: worse}), signed=True).efficiency == 0.0
        assert grown(made({metric: worse})).efficiency == pytest.approx(0.2)


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_a_job_without_finite_values_has_diverged(value: float) -> None:
    found = grown(made({"loss": [(5, 2), (15, value)]}))
    assert found == Growth("loss", 0.0, 0.25, 0.0, "loss is no longer finite: diverged")
    found = grown(made({"loss": [(5, value), (15, 2)]}))
    assert found == Growth("loss", None, 0.25, None, "loss was not finite before")


def test_a_value_that_is_not_finite_is_passed_over() -> None:
    found = grown(made({"loss": [(4, 4), (8, math.nan), (12, math.inf), (16, 2)]}))
    assert found.progress == pytest.approx((1 - 0.5) / 10)


def test_a_metric_that_is_always_zero_has_no_peak() -> None:
    assert grown(made({"loss": [(5, 0), (15, 0)]})).efficiency == 0.0


def test_growth_per_cpu_is_unknown_for_an_idle_job() -> None:
    points = {"loss": [(5.0, 2.0), (15.0, 1.0)]}
    idle = grown(made(points, [(0, 0), (10, 5), (20, 5)]))
    assert idle == Growth("loss", 0.05, 0.0, None, "no CPU used")
    assert grown(made(points, [])) == Growth("loss", 0.05, None, None, "no CPU sample")


# CPU shares


def test_the_samples_that_bracket_the_interval_count() -> None:
    samples = [(0.0, 0.0), (9.0, 3.0), (19.5, 13.5), (21.0, 100.0)]
    assert used(made(samples=samples)) == (pytest.approx(10.5 / 10.5 / 2), "")


def test_samples_at_the_ends_of_the_interval_count() -> None:
    assert used(made(samples=[(0, 0), (10, 1), (20, 11)])) == (0.5, "")


def test_a_job_younger_than_the_interval_says_over_how_long() -> None:
    assert used(made(samples=[(16, 1), (20, 3)])) == (0.25, "CPU over 4 s")


def test_a_sample_that_is_early_by_a_twentieth_is_no_short_interval() -> None:
    assert used(made(samples=[(10.5, 0), (20, 9.5)])) == (0.5, "")
    assert used(made(samples=[(10.6, 0), (20, 9.4)])) == (0.5, "CPU over 9.4 s")


def test_one_sample_is_averaged_since_the_start() -> None:
    averaged = made(samples=[(20, 8)], started_s=4)
    assert used(averaged) == (0.25, "CPU averaged since its start")
    for unknown in (made(samples=[(20, 8)]), made(samples=[(20, 8)], started_s=20)):
        assert used(unknown) == (None, "no CPU sample")


def test_there_is_no_share_without_samples_or_cpus() -> None:
    assert used(made(samples=[])) == (None, "no CPU sample")
    assert used(made(samples=[(25, 1)])) == (None, "no CPU sample")
    assert used(made(), cpus=0) == (None, "no CPU sample")


# Metrics


def test_candidates_are_validation_losses_first() -> None:
    names = ("accuracy", "aux_loss", "grad_norm", "loss", "val_accuracy", "val_loss")
    job = made({name: [(1.0, 1.0)] for name in names})
    assert candidates(job) == [
        "val_loss", "val_accuracy", "loss", "aux_loss", "accuracy", "grad_norm",
    ]  # fmt: skip


def test_the_label_s_metric_is_the_only_candidate_once_it_is_reported() -> None:
    labels = {"dltools.metric": "accuracy"}
    points = {"val_loss": [(1.0, 1.0)], "loss": [(1.0, 1.0)]}
    assert candidates(made(points, labels=labels)) == ["val_loss", "loss"]
    assert candidates(made({**points, "accuracy": [(1.0, 0.5)]}, labels=labels)) == ["accuracy"]
    assert candidates(made()) == []


def test_the_metric_of_a_job_is_its_target_s_where_it_reports_that() -> None:
    labels = {"dltools.metric": "f1", "dltools.target": "0.9"}
    assert metric_of(made({"loss": [(1, 1)]}, labels=labels)) == "loss"
    assert metric_of(made({"loss": [(1, 1)], "f1": [(1, 0.5)]}, labels=labels)) == "f1"
    assert metric_of(made(labels=labels)) is None


def test_the_objective_is_the_label_s_or_the_name_s() -> None:
    assert objective(made(), "loss") == "min"
    assert objective(made(), "accuracy") == "max"
    assert objective(made(labels={"dltools.objective": " MAX "}), "loss") == "max"
    assert objective(made(labels={"dltools.objective": "more"}), "loss") == "min"


# What is left to do


def test_epochs_say_what_is_left() -> None:
    job = made(samples=[(0, 0), (20, 30)], labels={"dltools.epochs": "10", "dltools.steps": "7"})
    job.epoch, job.step = 4, 1
    found = remaining(job)
    assert (found.seconds, found.note) == (45.0, "epoch 4 of 10: 45 CPU s left")
    job.epoch = None
    assert remaining(job).seconds == 180.0  # by its steps
    job.step = 9
    assert remaining(job).seconds == 0.0  # never less than nothing


LABELS = {"dltools.metric": "loss", "dltools.target": "1"}


def test_two_points_give_a_slope_to_the_target() -> None:
    # Half a core: 1 CPU second at 2 s, 2 at 4 s, 10 when last seen; the loss falls by 1 a second.
    job = made({"loss": [(2, 14), (4, 13)]}, labels=LABELS)
    found = remaining(job)
    # From 13 to 1 takes 12 CPU seconds, of which 8 have been had since the last point.
    assert (found.seconds, found.note) == (4.0, "1 in 4 CPU s by its slope")
    assert to_target(job, 12.0).seconds == 0.0


@pytest.mark.parametrize("values", [[3], [3, 3], [3, 4]])
def test_no_slope_towards_the_target_tells_nothing(values: list[float]) -> None:
    job = made({"loss": [(2.0 * n, value) for n, value in enumerate(values, 1)]}, labels=LABELS)
    assert (remaining(job).seconds, remaining(job).note) == (None, "too few points to predict")


def test_a_metric_that_was_never_reported_has_nothing_left_to_tell() -> None:
    found = to_target(made(labels=LABELS), 1.0)
    assert (found.seconds, found.note) == (None, "no loss yet")


def falling(labels: Mapping[str, str] | None = None) -> ContainerHistory:
    """A line: the loss falls from 10 by 1 every CPU second, for 5 of them, with 1 more since."""
    points = {"loss": [(n / 10, 10 - n / 20) for n in range(1, 101)]}
    job = made(points, [(0, 0), (12, 6)], labels)
    refit([job])
    return job


def test_a_curve_gives_the_cpu_seconds_to_a_target() -> None:
    found = to_target(falling(LABELS), 4.9)
    assert found.seconds is not None
    # By a line 0.1 CPU seconds beyond the last point, and 1 has been had since then.
    assert found.seconds == 0.0
    further = to_target(falling(LABELS), 3.0)
    assert further.seconds is not None
    assert further.seconds == pytest.approx(1.0, abs=0.5)
    assert further.note.startswith("loss 3 in ")


def test_a_flat_curve_never_meets_a_target_and_has_converged() -> None:
    points = {"loss": [(n / 10, 2.0) for n in range(1, 101)]}
    job = made(points, labels=LABELS)
    refit([job])
    assert remaining(job).seconds == math.inf
    found = remaining(made_without_labels(job))
    assert (found.seconds, found.converged) == (math.inf, True)
    assert found.note == "loss has converged, yet it goes on"


def made_without_labels(job: ContainerHistory) -> ContainerHistory:
    """A copy of a job that has no target."""
    copy = job.clone()
    copy.label({})
    return copy


def test_without_a_target_the_end_of_the_curve_is_what_is_left() -> None:
    # 2 exp(-w / 20) + 1 in CPU seconds: 98 % of the way from where it is known lies far beyond.
    points = {"loss": [(n / 10, 1 + 2 * math.exp(-n / 400)) for n in range(1, 401)]}
    job = made(points, [(0, 0), (40, 20)])
    refit([job])
    found = remaining(job)
    assert found.seconds is not None and found.seconds > 0
    assert not found.converged


def test_without_points_nothing_is_known_of_the_end() -> None:
    assert remaining(made()).note == "too few points to predict"
    assert remaining(made({"loss": [(1, 1), (2, 0.5)]})).seconds is None
