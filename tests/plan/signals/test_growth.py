"""Growth and CPU use, worked by hand."""

import math

import pytest
from helpers.histories import history

from dltools.notation.times import MICRO
from dltools.observations.host_samples import DeviceUse
from dltools.plan.signals.container_history import ContainerHistory
from dltools.plan.signals.growth import Growth, MeanUse, cpu_use, early_growth, growth

CPUS = 2.0
INTERVAL_S = 10.0
NOW_S = 20.0


def grown(job: ContainerHistory, *, signed: bool = False) -> Growth:
    return growth(job, round(NOW_S * MICRO), INTERVAL_S, CPUS, signed=signed)


def used(job: ContainerHistory, cpus: float = CPUS) -> MeanUse:
    return cpu_use(job, round(NOW_S * MICRO), round(INTERVAL_S * MICRO), cpus)


# Growth: the windows are (0, 10] and (10, 20]


def test_growth_is_the_change_of_the_means_per_second_and_share_of_the_host() -> None:
    found = grown(history({"loss": [(2, 4), (8, 2), (12, 1.5), (18, 0.5)]}))
    # E = 3/4 and 1/4 of the peak; P = 0.5 / 10 s; R = 5 s / 10 s / 2 CPUs; G = P / R
    assert found == Growth("loss", 0.05, 0.25, 0.2, "")


def test_a_window_holds_its_end_and_not_its_beginning() -> None:
    found = grown(history({"loss": [(0, 8), (10, 4), (20, 2)]}))
    # The 8 at 0 s is in neither window, but it is the peak: 4/8 and 2/8.
    assert found.progress == pytest.approx((0.5 - 0.25) / 10)


def test_a_point_a_microsecond_after_now_is_in_no_window() -> None:
    found = grown(history({"loss": [(5, 4), (20, 2), (20.000_001, 100)]}))
    assert found.progress == pytest.approx((4 - 2) / 100 / 10)  # the peak is what was seen so far


@pytest.mark.parametrize("points", [[], [(15, 1)], [(5, 1)], [(0, 1), (15, 1)], [(5, 1), (25, 1)]])
def test_growth_is_unknown_without_points_in_both_windows(points) -> None:
    found = grown(history({"loss": points}))
    word = "loss" if points else "metric"
    note = f"no {word} in two intervals of 10 s yet"
    assert found == Growth("loss" if points else "", None, None, None, note)


def test_the_best_metric_with_points_in_both_windows_is_used() -> None:
    both = [(5.0, 2.0), (15.0, 1.0)]
    assert grown(history({"loss": both, "val_loss": both})).metric == "val_loss"
    assert grown(history({"loss": both, "val_loss": both[:1]})).metric == "loss"


def test_a_metric_that_stands_still_has_grown_by_nothing() -> None:
    assert grown(history({"loss": [(5, 2), (15, 2)]})) == Growth("loss", 0.0, 0.25, 0.0, "")


def test_signed_growth_counts_only_change_for_the_better() -> None:
    falls, rises = [(5.0, 2.0), (15.0, 1.0)], [(5.0, 1.0), (15.0, 2.0)]
    up, down = [(0.0, 1.9), *rises], [(0.0, 1.1), *falls]
    for metric, better, worse in (("loss", falls, up), ("accuracy", rises, down)):
        assert grown(history({metric: better}), signed=True).efficiency == pytest.approx(0.2)
        assert grown(history({metric: worse}), signed=True).efficiency == 0.0
        assert grown(history({metric: worse})).efficiency == pytest.approx(0.2)


@pytest.mark.parametrize(
    ("first", "now", "efficiency"),
    [
        (1.0, 2.0, None),  # worse than at first, and never better
        (1.0, 1.04, 0.0),  # by no more than a twentieth
        (1.06, 2.0, 0.0),  # it has been better by more than a twentieth
        (1.05, 2.0, None),
    ],
)
def test_a_warm_up_says_nothing_when_signed(first, now, efficiency) -> None:
    points = {"loss": [(0.0, first), (5.0, 1.0), (15.0, now)]}
    found = grown(history(points), signed=True)
    assert found.efficiency == efficiency
    assert ("warm-up" in found.note) is (efficiency is None)
    assert (grown(history(points)).efficiency or 0.0) > 0.0  # any change counts


NOT_FINITE = [math.nan, math.inf, -math.inf]


@pytest.mark.parametrize("value", NOT_FINITE)
def test_growth_is_unknown_while_one_or_two_reports_are_not_finite(value) -> None:
    for points in ([(5, 2), (15, value)], [(5, 2), (12, value), (15, value)]):
        found = grown(history({"loss": points}))
        assert found == Growth("loss", None, 0.25, None, "loss is not finite now")
    found = grown(history({"loss": [(5, value), (15, 2)]}))
    assert found == Growth("loss", None, 0.25, None, "loss was not finite before")


@pytest.mark.parametrize("value", NOT_FINITE)
def test_a_job_has_diverged_after_three_reports_that_are_not_finite(value) -> None:
    for points in (
        [(5, 2), (12, value), (14, value), (16, value)],
        [(1, 2), (2, value), (5, value), (15, value)],
        [(5, 2), (12, 1), (13, value), (14, value), (15, value)],  # at once
    ):
        found = grown(history({"loss": points}))
        assert found == Growth("loss", 0.0, 0.25, 0.0, "loss is no longer finite: diverged")
    found = grown(history({"loss": [*points, (16, 1)]}))
    assert found.efficiency == pytest.approx((1 - 0.5) / 10 / 0.25)  # and is back


def test_a_job_has_not_diverged_while_its_training_loss_is_finite() -> None:
    lost = [(1.0, 0.5), *((second, math.nan) for second in (5.0, 15.0, 16.0))]
    falls, nan = [(5.0, 2.0), (15.0, 1.0)], [(5.0, 2.0), *lost[1:]]
    found = grown(history({"val_accuracy": lost, "loss": falls}))
    assert (found.metric, found.efficiency) == ("loss", pytest.approx(0.2))
    found = grown(history({"val_accuracy": lost, "loss": nan, "grad_norm": falls}))
    note = "val_accuracy is no longer finite: diverged"
    assert found == Growth("val_accuracy", 0.0, 0.25, 0.0, note)
    found = grown(history({"val_accuracy": lost, "aux_loss": nan, "kl_loss": falls}))
    assert found.metric == "kl_loss"  # not every part of a loss of which no whole is reported
    assert grown(history({"val_accuracy": falls, "loss": nan})).metric == "val_accuracy"
    assert grown(history({"val_accuracy": lost, "f1": falls})).metric == "f1"  # no loss at all


def test_a_metric_that_has_never_been_finite_judges_nobody() -> None:
    nan, falls = [(5.0, math.nan), (15.0, math.nan)], [(5.0, 2.0), (15.0, 1.0)]
    assert grown(history({"val_accuracy": nan, "loss": falls})) == grown(history({"loss": falls}))
    found = grown(history({"val_accuracy": [*nan, (16.0, math.nan)]}))
    assert found == Growth("", None, 0.25, None, "val_accuracy has never been finite")


# What fluctuates


def wave(base: float, rise: float, many: int = 3) -> list[tuple[float, float]]:
    """Values that go up and down by 1 about a line, `many` in each of the two intervals."""
    step = 10.0 / many
    return [((k + 0.5) * step, base + rise * k + (-1) ** k) for k in range(2 * many)]


@pytest.mark.parametrize("names", [("loss_d", "loss_g"), ("d_loss", "g_loss"),
                                   ("disc_loss", "gen_loss"), ("errd", "errg"),
                                   ("critic_loss", "generator_loss")])  # fmt: skip
def test_an_adversarial_pair_that_is_flat_says_nothing(names) -> None:
    flat = [(second, 0.7) for second in (2.0, 5.0, 8.0, 12.0, 15.0, 18.0)]
    note = "is flat, which does not show whether an adversarial network learns"
    for points in (flat, wave(9.0, 0.0)):
        found = grown(history(dict.fromkeys((*names, "d_x", "rec_loss"), points)))
        assert found == Growth(names[1], None, 0.25, None, f"{names[1]} {note}")
    assert grown(history({names[0]: flat})).efficiency == 0.0  # alone it is any loss
    moving = {names[0]: flat, names[1]: [(second, 4.0 - second / 10) for second, _ in flat]}
    assert grown(history(moving)).metric == names[1]


@pytest.mark.parametrize("measure", ["fid", "inception_score", "is", "kid", "val_fid"])
def test_an_adversarial_pair_is_judged_by_what_measures_its_samples(measure) -> None:
    pair = dict.fromkeys(("loss_d", "loss_g"), wave(9.0, 0.0))
    found = grown(history({**pair, measure: [(2.0, 40.0), (12.0, 20.0)]}))
    assert (found.metric, found.efficiency) == (measure, pytest.approx(0.5 / 10 / 0.25))
    found = grown(history({**pair, measure: [(2.0, 40.0), (12.0, 40.0)]}))
    assert (found.metric, found.efficiency) == (measure, 0.0)
    found = grown(history({**pair, measure: [(2.0, 40.0)]}))  # not in both intervals
    assert (found.metric, found.efficiency) == ("loss_g", None)


def test_a_reward_counts_where_it_changes_by_more_than_it_fluctuates() -> None:
    """Ten values of 9 or 11 in each interval: a spread of 1.054, so 3 standard errors are 1.414."""
    note = "reward is flat or fluctuates, which does not show whether an agent learns"
    found = grown(history({"reward": wave(10.0, 0.0, 10), "loss": [(5, 2), (15, 1)]}))
    assert found == Growth("reward", None, 0.25, None, note)  # its loss says even less
    for rise, is_growth in ((0.12, False), (0.2, True)):
        found = grown(history({"reward": wave(10.0, rise, 10)}))
        assert (found.efficiency is not None) is is_growth
        assert found.metric == "reward"


def test_a_reward_takes_three_values_in_each_interval() -> None:
    found = grown(history({"reward": [(2, 1), (3, 1), (11, 9), (12, 9), (13, 9)]}))
    assert found.efficiency is None
    found = grown(history({"reward": [(2, 1), (3, 1), (4, 1), (11, 9), (12, 9), (13, 9)]}))
    assert found.efficiency == pytest.approx((1 - 1 / 9) / 10 / 0.25)


def test_a_value_that_is_not_finite_is_passed_over() -> None:
    found = grown(history({"loss": [(4, 4), (8, math.nan), (12, math.inf), (16, 2)]}))
    assert found.progress == pytest.approx((1 - 0.5) / 10)


def test_a_metric_that_is_always_zero_has_no_peak() -> None:
    assert grown(history({"loss": [(5, 0), (15, 0)]})).efficiency == 0.0


def test_growth_per_cpu_is_unknown_for_an_idle_job() -> None:
    points = {"loss": [(5.0, 2.0), (15.0, 1.0)]}
    idle = grown(history(points, [(0, 0), (10, 5), (20, 5)]))
    assert idle == Growth("loss", 0.05, 0.0, None, "no CPU used")
    assert grown(history(points, [])) == Growth("loss", 0.05, None, None, "no CPU sample")


# CPU shares


@pytest.mark.parametrize(
    ("samples", "started_s", "share", "note"),
    [
        # Those that bracket the interval count, and those at its ends.
        ([(0, 0), (9, 3), (19.5, 13.5), (21, 100)], None, pytest.approx(10.5 / 10.5 / 2), ""),
        ([(0, 0), (10, 1), (20, 11)], None, 0.5, ""),
        ([(16, 1), (20, 3)], None, 0.25, "CPU over 4 s"),
        ([(10.5, 0), (20, 9.5)], None, 0.5, ""),  # early by a twentieth
        ([(10.6, 0), (20, 9.4)], None, 0.5, "CPU over 9.4 s"),
        ([(20, 8)], 4, 0.25, "CPU averaged since its start"),
        ([(20, 8)], None, None, "no CPU sample"),
        ([(20, 8)], 20, None, "no CPU sample"),
        ([], None, None, "no CPU sample"),
        ([(25, 1)], None, None, "no CPU sample"),
    ],
)
def test_the_use_of_cpu_in_an_interval(samples, started_s, share, note) -> None:
    job = history(samples=samples, started_s=started_s)
    assert used(job) == MeanUse(share, note)


def test_there_is_no_share_without_cpus() -> None:
    assert used(history(), cpus=0) == MeanUse(None, "no CPU sample")


# Before two intervals are over


def early(points: list[tuple[float, float]], now_s: float = 20.0) -> Growth | None:
    return early_growth(history({"loss": points}), round(now_s * MICRO), 10.0, 2.0)


def test_early_growth_is_between_the_halves_of_the_first_reports() -> None:
    # From 4 at 1 s to 3 at 3 s, of a peak of 4: a quarter in 2 s; a quarter of the host's CPUs.
    found = early([(1, 4.0), (3, 3.0)], 4.0)
    assert found is not None
    assert found.is_early
    assert (found.progress, found.use) == (0.125, 0.25)
    assert found.efficiency == pytest.approx(0.5)


def test_of_an_odd_number_of_first_reports_the_middle_one_does_not_count() -> None:
    assert early([(1, 4.0), (2, 99.0), (3, 3.0)], 4.0) != early([(1, 4.0), (3, 3.0)], 4.0)  # peak
    found = early([(1, 4.0), (2, 0.0), (3, 3.0)], 4.0)
    assert found is not None
    assert found.progress == 0.125


@pytest.mark.parametrize(
    "points", [[], [(1.0, 4.0)], [(1.0, math.nan), (2.0, math.nan)], [(-1.0, 4.0), (19.0, 3.0)]]
)
def test_early_growth_takes_two_finite_reports_in_the_last_two_intervals(points) -> None:
    assert early(points) is None


# On GPUs


def on_gpu(points: list[tuple[float, float]], uses: list[tuple[float, float]]) -> ContainerHistory:
    """A job with losses (second, value) and samples of its use of one GPU (second, share)."""
    job = history({})
    times = [round(second * MICRO) for second, _ in uses]
    job.note_devices(times, [{"GPU-1": DeviceUse(share)} for _, share in uses])
    at, values = [round(second * MICRO) for second, _ in points], [value for _, value in points]
    job.add_points("loss", (at, values, [None] * len(points)), curves=True)
    return job


def test_growth_counts_gpu_seconds_once_a_job_uses_a_gpu() -> None:
    """P = (3/4 - 1/4) / 10 s; 8 GPU seconds in the last 10 s: G = 0.05 / 0.8, whatever its CPUs."""
    points: list[tuple[float, float]] = [(2, 4), (8, 2), (12, 1), (18, 1)]
    found = grown(on_gpu(points, [(0, 0.8), (10, 0.8), (20, 0.8)]))
    assert (found.progress, found.per) == (pytest.approx(0.05), " per GPU second")
    assert found.use == pytest.approx(0.8)
    assert found.efficiency == pytest.approx(0.05 / 0.8)


def test_a_window_with_both_units_tells_nothing() -> None:
    """Until 5 s after the begin of the two intervals the job computed on CPUs alone."""
    points: list[tuple[float, float]] = [(6, 4), (8, 3), (12, 2), (18, 1)]
    found = grown(on_gpu(points, [(0, 0.0), (5, 0.9), (10, 0.9), (20, 0.9)]))
    assert (found.efficiency, found.note) == (None, "on a GPU for less than two intervals")
    early = early_growth(on_gpu(points, [(5, 0.9), (20, 0.9)]), 20 * MICRO, 30.0, CPUS)
    assert early is not None
    assert early.use == pytest.approx(0.9)
    late = on_gpu(points, [(7.5, 0.9), (20, 0.9)])
    assert early_growth(late, 20 * MICRO, 30.0, CPUS) is None


def test_a_gpu_that_stood_still_says_nothing_of_efficiency() -> None:
    found = grown(on_gpu([(5, 4), (15, 1)], [(0, 0.9), (10, 0.0), (20, 0.0)]))
    assert (found.efficiency, found.note) == (None, "no GPU used")
