"""GPU seconds, and what an epoch takes, worked by hand."""

import math

import pytest
from helpers.histories import history
from hypothesis import given
from hypothesis import strategies as st

from dltools.notation.times import MICRO
from dltools.observations.host_samples import DeviceUse
from dltools.plan.planner import copied
from dltools.plan.signals.container_history import ContainerHistory
from dltools.plan.signals.effort import EpochCost
from dltools.plan.signals.gpu_use import GpuUse
from dltools.plan.signals.remaining_effort import remaining

NAN = math.nan


def counted(*samples: tuple[float, dict[str, float]]) -> GpuUse:
    """Count samples: second, and the share of time in which each GPU was used."""
    found = GpuUse()
    for second, shares in samples:
        found.add(round(second * MICRO), {gpu: DeviceUse(share) for gpu, share in shares.items()})
    return found


def seconds(found: GpuUse) -> list[tuple[float, float]]:
    return [(time / MICRO, used) for time, used in found.samples]


def test_they_are_the_sum_over_gpus_of_share_times_time() -> None:
    found = counted((0, {"a": 0.5}), (2, {"a": 0.5}), (4, {"a": 0.5, "b": 0.25}), (8, {"b": 1.0}))
    # 0.5 x 2 s, then (0.5 + 0.25) x 2 s, then 1 x 4 s
    assert seconds(found) == [(0, 0), (2, 1.0), (4, 2.5), (8, 6.5)]


def test_they_count_from_the_first_known_use() -> None:
    found = counted((0, {"a": NAN}), (2, {"a": 0.04}), (4, {"a": 0.05}), (6, {"a": 1.0}))
    assert found.since == 4 * MICRO
    assert seconds(found) == [(4, 0), (6, 2.0)]


def test_a_job_whose_use_is_never_known_stays_with_cpu_seconds() -> None:
    assert counted(*((t, {"a": NAN, "b": NAN}) for t in range(9))).since is None


def test_an_unknown_use_is_the_last_known_one_of_that_gpu() -> None:
    found = counted(
        (0, {"a": 0.5, "b": NAN}),
        (2, {"a": NAN, "b": NAN}),
        (4, {"a": 0.25}),
        (6, {"a": NAN}),
        (8, {}),
        (10, {"a": NAN}),
    )
    assert seconds(found) == [(0, 0), (2, 1.0), (4, 1.5), (6, 2.0), (8, 2.0), (10, 2.0)]


# Effort


def begins_on_cpu(*, used_at: float = 5.0) -> ContainerHistory:
    """Half a CPU for 20 s; a whole GPU from a time on; a loss each two seconds."""
    job = history({}, labels={"dltools.epochs": "20"})
    times = [0.0, used_at, 10.0, 20.0]
    uses = [{"a": DeviceUse(float(t >= used_at))} for t in times]
    job.note_devices([round(t * MICRO) for t in times], uses)
    at = [round(second * MICRO) for second in range(2, 22, 2)]
    job.add_points("loss", (at, [1 / time for time in at], [None] * 10), curves=True)
    positions = [(time, None, float(epoch)) for epoch, time in enumerate(at)]
    job.progress.note_positions(positions, job.use)
    job.progress.epoch = 9.0
    return job


def test_an_effort_is_in_one_unit() -> None:
    job = history()
    assert (job.use.effort, job.use.effort_unit) == (10.0, "CPU s")
    assert job.use.effort_at(5 * MICRO) == 2.5
    job = begins_on_cpu()
    assert (job.use.effort, job.use.effort_unit) == (15.0, "GPU s")
    assert [job.use.effort_at(round(t * MICRO)) for t in (2, 5, 7.5, 20, 30)] == [0, 0, 2.5, 15, 15]
    assert job.use.attained == 10.0  # what it has had of the CPUs


def test_curves_and_epochs_hold_what_came_after_the_change_alone() -> None:
    job = begins_on_cpu()
    learning = job.progress.metrics["loss"].learning
    assert learning is not None
    assert learning.works == [1.0, 3.0, 5.0, 7.0, 9.0, 11.0, 13.0, 15.0]
    assert remaining(job).seconds == pytest.approx(2.0 * (20 - 9))
    assert remaining(job).note == "epoch 9 of 20: 22 GPU s left"


def test_what_was_learnt_in_cpu_seconds_is_forgotten_at_the_change() -> None:
    job = history({"loss": [(t, 1 / t) for t in range(1, 20)]})
    series = job.progress.metrics["loss"]
    series.fitted = 19
    assert series.learning is not None
    assert series.learning.seen == 19
    job.note_devices([20 * MICRO], [{"a": DeviceUse(0.9)}])
    assert (series.learning, series.fitted) == (None, 0)
    assert len(series.values) == 19


def test_what_epochs_cost_before_the_change_is_no_cost_after_it() -> None:
    """Four of ten epochs took some CPU seconds; how many GPU seconds ten take is not known."""
    job = history({"loss": [(5, 1.0)]}, labels={"dltools.epochs": "10"})
    job.progress.epoch = 4.0
    assert remaining(job).note == "epoch 4 of 10: 15 CPU s left"
    job.note_devices([20 * MICRO], [{"a": DeviceUse(0.9)}])
    assert (remaining(job).seconds, remaining(job).note) == (None, "epoch 4 of 10: cost unknown")


def test_a_copy_counts_on_its_own() -> None:
    job = begins_on_cpu()
    twin = copied(job)
    twin.note_devices([30 * MICRO], [{"a": DeviceUse(1.0)}])
    assert (job.use.effort, twin.use.effort) == (15.0, 25.0)


def test_the_start_up_is_not_part_of_an_epoch() -> None:
    # 9 CPU seconds to the first report, start-up and all; then 2 for each epoch.
    cost = EpochCost(1, 9.0)
    assert cost.left(10, 1, 9.0) is None
    cost = cost.after(2, 11.0)
    assert cost.left(10, 2, 11.0) == 16.0
    assert cost.left(10, 2, 12.5) == 14.5  # 1.5 of the next epoch's 2
    assert cost.left(10, 2, 99.0) == 14.0  # one epoch at most: the job competes


def test_time_lost_by_competing_does_not_count() -> None:
    cost = EpochCost(1, 9.0).after(2, 11.0).after(3, 31.0)
    assert cost.left(10, 3, 31.0) == 14.0
    assert cost.after(1, 35.0) == EpochCost(1, 35.0)  # training begins anew


def test_an_epoch_costs_what_most_do() -> None:
    # 2 CPU seconds each; a weight that changed between two samples makes one 1 and the next 3.
    cost = EpochCost(1, 9.0).after(2, 11.0).after(3, 12.0).after(4, 15.0).after(5, 17.0)
    assert cost.left(10, 5, 17.0) == 10.0
    assert cost.left(10, 5, 17.0, at_least=True) == 5.0


def test_quick_steps_count_together() -> None:
    cost = EpochCost(10, 1.0)
    for step in range(11, 31):
        cost = cost.after(step, 1.0 + (step - 10) * 0.1)
    assert cost.position == 30
    assert cost.left(40, 30, 3.0) is not None
    assert abs((cost.left(40, 30, 3.0) or 0) - 1.0) < 1e-9


def test_an_epoch_that_becomes_longer_is_noticed() -> None:
    cost = EpochCost(1, 0.0).after(2, 1.0)
    for epoch in range(3, 11):
        cost = cost.after(epoch, cost.work + 4.0)
    assert cost.left(20, 10, cost.work) == 40.0


@given(
    st.lists(st.tuples(st.floats(0, 1e6), st.floats(0, 1e3)), max_size=30),
    st.floats(0, 1e6),
    st.floats(0, 1e6),
)
def test_what_is_left_is_never_negative(reports, total, attained) -> None:
    cost, work = EpochCost(0.0, 0.0), 0.0
    for position, more in reports:
        work += more
        cost = cost.after(position, work)
        left = cost.left(total, position, attained)
        assert left is None or left >= 0
