"""What is remembered of a container: counters, points, targets, and what is forgotten."""

import itertools
import math

import pytest
from helpers.histories import history
from hypothesis import given
from hypothesis import strategies as st

from dltools.notation.times import MICRO
from dltools.observations.host_samples import DeviceUse
from dltools.plan.planner import copied
from dltools.plan.signals.container_history import ContainerHistory
from dltools.plan.signals.resource_use import Throttled

NAN = math.nan


def work_at(job: ContainerHistory, second: float) -> float:
    return job.use.work_at(round(second * MICRO))


# Counter samples


@pytest.mark.parametrize(
    ("second", "used"),
    [(10, 4.0), (12.5, 5.0), (15, 6.0), (20, 8.0), (25, 18.0), (30, 28.0), (99, 28.0)],
)
def test_work_lies_on_the_straight_line_between_samples(second, used) -> None:
    assert work_at(history(samples=[(10, 4), (20, 8), (30, 28)]), second) == used


def test_work_before_the_first_sample_rises_from_the_start() -> None:
    job = history(samples=[(10, 4), (20, 8)], started_s=2)
    assert [work_at(job, second) for second in (0, 2, 4, 6, 10)] == [0.0, 0.0, 1.0, 2.0, 4.0]


@pytest.mark.parametrize("started_s", [None, 10.0, 11.0])
def test_without_an_earlier_start_the_first_sample_counts_before_it_too(started_s) -> None:
    assert work_at(history(samples=[(10, 4), (20, 8)], started_s=started_s), 5) == 4.0


def test_without_samples_no_work_is_known() -> None:
    job = history(samples=[])
    assert (work_at(job, 5), job.use.attained) == (0.0, 0.0)
    assert history(samples=[(10, 4), (20, 8)]).use.attained == 8.0


@pytest.mark.parametrize("second", [(20, 9.0), (15, 9.0), (30, 7.0)], ids=["twice", "back", "less"])
def test_a_sample_that_goes_back_starts_the_record_anew(second) -> None:
    job = history(samples=[(10, 4), (20, 8), second])
    assert job.use.samples == [(second[0] * MICRO, second[1])]


def test_a_counter_that_stands_still_is_kept() -> None:
    assert len(history(samples=[(10, 4), (20, 4), (30, 4)]).use.samples) == 3


@pytest.mark.parametrize(
    ("seconds", "kept"),
    [
        ([5.0, 6.0, 7.0], [(0, 4.0), (1, 5.0), (2, 6.0), (3, 7.0)]),
        ([4.0, 4.0, 4.0], [(0, 4.0), (1, 4.0), (2, 4.0), (3, 4.0)]),
        ([NAN, 6.0, NAN], [(0, 4.0), (2, 6.0)]),
        ([NAN, NAN, NAN], [(0, 4.0)]),
        ([5.0, NAN, 3.0], [(3, 3.0)]),
        ([3.0, 4.0, 5.0], [(1, 3.0), (2, 4.0), (3, 5.0)]),
        ([5.0, 6.0, 1.0], [(3, 1.0)]),
        ([5.0, 6.0, 5.5], [(3, 5.5)]),
    ],
)
def test_several_samples_are_added_as_one_by_one(seconds, kept) -> None:
    job = history(samples=[])
    job.use.add_samples([0], [4.0])
    job.use.add_samples([1, 2, 3], seconds)
    assert job.use.samples == kept


def test_several_samples_that_go_back_in_time_start_the_record_anew() -> None:
    job = history(samples=[(1, 4.0)])
    job.use.add_samples([MICRO, 2 * MICRO], [5.0, 6.0])
    assert job.use.samples == [(MICRO, 5.0), (2 * MICRO, 6.0)]


@given(
    st.lists(st.one_of(st.just(NAN), st.integers(0, 5).map(float)), min_size=1, max_size=8),
    st.integers(0, 8),
)
def test_samples_in_pieces_are_the_samples_as_a_whole(seconds, cut) -> None:
    whole, pieces = history(samples=[]), history(samples=[])
    whole.use.add_samples(range(len(seconds)), seconds)
    for times in (range(min(cut, len(seconds))), range(cut, len(seconds))):
        if times:
            pieces.use.add_samples(times, [seconds[n] for n in times])
    assert pieces.use.samples == whole.use.samples


# Points


def test_points_that_come_late_or_twice_are_put_in_order_once() -> None:
    job = history()
    job.add_points("loss", ([1, 3], [1.0, 3.0], [None, None]))
    job.add_points("loss", ([2, 3], [2.0, 3.0], [None, None]))
    assert job.progress.metrics["loss"].times == [1, 2, 3]
    job.add_points("loss", ([], [], []))
    job.add_points("empty", ([], [], []))
    assert list(job.progress.metrics) == ["loss"]


def test_a_learning_curve_has_the_new_finite_points_by_work() -> None:
    # Half a core from 0 to 20 s.
    job = history({"loss": [(4, 3.0), (8, NAN), (12, 2.0)]})
    learning = job.progress.metrics["loss"].learning
    assert learning is not None
    assert (learning.works, learning.values) == ([2.0, 6.0], [3.0, 2.0])
    times = [12 * MICRO, 16 * MICRO, 18 * MICRO]
    job.add_points("loss", (times, [2.0, 1.0, math.inf], [None] * 3), curves=True)
    assert (learning.works, learning.values) == ([2.0, 6.0, 8.0], [3.0, 2.0, 1.0])
    job.add_points("loss", (times[:2], [2.0, 1.0], [None] * 2), curves=True)  # nothing new
    assert learning.values == [3.0, 2.0, 1.0]


def test_without_curves_there_is_no_learning_history() -> None:
    job = history()
    job.add_points("loss", ([1], [1.0], [None]))
    assert job.progress.metrics["loss"].learning is None


# Targets

TIERS = {"dltools.metric": "loss", "dltools.target": "0.5", "dltools.target.final": "0.1"}


def test_the_first_points_that_meet_the_targets_are_noted() -> None:
    job = history({"loss": [(1, 0.9), (2, 0.5), (3, 0.7), (4, 0.1), (5, 0.05)]}, labels=TIERS)
    assert (job.progress.met_first, job.progress.met_final) == (2 * MICRO, 4 * MICRO)
    job.add_points("loss", ([6 * MICRO], [0.01], [None]))
    assert (job.progress.met_first, job.progress.met_final) == (2 * MICRO, 4 * MICRO)


def test_another_metric_and_values_that_are_no_number_meet_no_target() -> None:
    job = history({"val_loss": [(1, 0.1)], "loss": [(2, NAN), (3, 0.6)]}, labels=TIERS)
    assert (job.progress.met_first, job.progress.met_final) == (None, None)


def test_new_labels_give_new_targets() -> None:
    job = history(labels=TIERS)
    job.label({"dltools.protect": "yes"})
    assert (job.progress.targets.first, job.standing.protected) == (None, True)
    job.label({})
    assert not job.standing.protected


# What is forgotten, copied and saved


def test_a_window_s_samples_begin_with_the_last_one_before_it() -> None:
    for until, kept in ((5, [0, 10, 20]), (10, [10, 20]), (15, [10, 20]), (99, [20])):
        job = history({"loss": [(5, 1.0), (15, 1.0)]})
        job.forget(until * MICRO)
        assert [time // MICRO for time, _ in job.use.samples] == kept
    assert job.progress.metrics["loss"].times == [15 * MICRO]


def test_a_clone_shares_nothing_that_changes() -> None:
    job = history({"loss": [(5, 1.0)]})
    twin = copied(job)
    assert twin == job
    twin.use.add_samples([30 * MICRO], [20.0])
    twin.add_points("loss", ([6 * MICRO], [0.5], [None]))
    twin.add_points("accuracy", ([6 * MICRO], [0.5], [None]))
    assert len(job.use.samples) == 3
    assert {name: one.values for name, one in job.progress.metrics.items()} == {"loss": [1.0]}


def test_a_run_is_told_from_earlier_runs_by_its_arrival() -> None:
    first, second = history(arrived_s=1), history(arrived_s=2)
    assert first.id == second.id
    assert first.run_id != second.run_id


# Demand

Sample = tuple[float, float, float, str]
"""Seconds, the CPUs wanted, the CPU seconds used, and the state."""


def demanding(*samples: Sample, turn_s: float | None = None) -> ContainerHistory:
    job = history()
    job.in_force = job.in_force._replace(turn_s=turn_s)
    for second, wanted, used, state in samples:
        time = round(second * MICRO)
        job.use.note_demand(([time], [used], [wanted]), [state], job.in_force)
        job.in_force = job.in_force._replace(state=state)
        job.use.add_samples([time], [used])
    return job


def test_the_largest_of_the_last_demands_counts() -> None:
    steps = ((0, 4.0), (1, 0.0), (2, 2.0), (3, 1.0))
    assert demanding(*((t, d, float(t), "running") for t, d in steps)).use.cpu.demand == 2.0
    assert history().use.cpu.demand is None


def test_what_compiles_before_the_first_reports_says_nothing_of_the_training() -> None:
    """PyTorch compiles in 32 processes, which sleep from then on."""
    compiling: list[Sample] = [(t, 32.0, 2.0 * t, "running") for t in range(4)]
    waiting: list[Sample] = [(t, 2.0, 6.0 + 0.1 * (t - 3), "running") for t in range(4, 12)]
    job = demanding(*compiling, *waiting)
    assert job.use.cpu.demand == 32.0
    job.add_points("loss", ([10 * MICRO], [0.5], [1]))
    assert job.use.cpu.demand == 32.0
    job.add_points("loss", ([11 * MICRO], [0.4], [2]))
    assert job.use.cpu.demand == 2.0
    job.add_points("loss", ([12 * MICRO], [0.3], [3]))
    assert job.use.cpu.demands == (2.0,)


def test_for_how_much_of_the_time_a_quota_stopped_a_container() -> None:
    assert Throttled().after([0], [NAN]) == Throttled()
    first = Throttled().after([0], [5.0])
    assert (first.part, first.after([MICRO], [5.25]).part) == (None, 0.25)
    assert first.after([MICRO, 3 * MICRO], [NAN, 6.5]).part == 0.5
    assert first.after([MICRO], [9.0]).part == 1.0  # on several CPUs at once
    assert first.after([MICRO], [0.0]).part is None  # another run of it
    assert first.after([MICRO, 2 * MICRO], [9.0, 9.0]).part == 0.0


@given(st.lists(st.floats(0, 2), max_size=8), st.integers(0, 8))
def test_it_is_the_same_however_samples_come(steps, cut) -> None:
    times = [number * MICRO for number in range(len(steps))]
    seconds = list(itertools.accumulate(steps))
    halves = Throttled().after(times[:cut], seconds[:cut]).after(times[cut:], seconds[cut:])
    assert halves == Throttled().after(times, seconds)


def test_a_job_that_is_held_back_is_taken_to_want_what_it_wanted_before() -> None:
    """Its threads sleep while they wait for the one that has no CPU."""
    free = [(t, 2.0, 2.0 * t, "running") for t in range(3)]
    held: list[Sample] = [(t, 1.05, 4.0 + 0.1 * (t - 2), "running") for t in range(3, 20)]
    assert demanding(*free, *held).use.cpu.demand == 2.0
    alone = [(t, 1.0, 5.7 + (t - 19), "running") for t in range(20, 24)]
    assert demanding(*free, *held, *alone).use.cpu.demand == 1.0


def evenly(wanted: float, cores: float, until: int = 6) -> list[Sample]:
    """Samples every two seconds of a job that wants so many CPUs, and has so many."""
    return [(t, wanted, cores * t, "running") for t in range(0, until + 1, 2)]


QUIET, AWAKE = evenly(0.02, 0.0, 4), evenly(0.05, 0.05)


@pytest.mark.parametrize(
    ("samples", "is_idle"),
    [
        (QUIET, True),
        (QUIET[:2], False),  # not yet for four seconds
        ([*QUIET, (5, 1.0, 0.9, "running")], False),  # it wants some
        (evenly(2.0, 0.0), False),  # it is held back, and wants CPUs
        (evenly(NAN, 0.0), False),  # its demand is unknown
        (evenly(0.2, 0.2), True),  # too little to wait for
        (evenly(0.3, 0.3), False),
        # A start of another container takes a sample at once: 50 ms of work fill most of it.
        ([*AWAKE, (6.1, 0.5, 0.35, "running")], True),
        ([*AWAKE, (6.1, 0.5, 0.35, "running"), (7.1, 0.05, 0.4, "running")], True),
        ([*AWAKE, (7, 0.5, 0.8, "running")], False),
    ],
)
def test_a_job_is_idle_that_wants_nothing_for_four_seconds_until_it_does(samples, is_idle) -> None:
    assert demanding(*samples).use.is_idle is is_idle


def test_what_was_known_is_forgotten_once_the_demand_of_a_running_job_is_unknown() -> None:
    known = (0, 1.0, 0.5, "running")
    assert demanding(known, (2, NAN, 1.5, "running")).use.cpu.demand is None
    assert demanding(known, (2, NAN, 1.5, "paused")).use.cpu.demand == 1.0
    assert demanding(known, (2, NAN, 1.5, "paused"), (4, NAN, 2.5, "running")).use.cpu.demand == 1.0


def test_a_job_that_takes_turns_is_idle_where_it_runs_and_uses_nothing() -> None:
    asleep = evenly(1.0, 0.0)
    assert demanding(*asleep, turn_s=8.0).use.is_idle
    paused = [(t, NAN, used, "paused") for t, _, used, _ in asleep]
    assert not demanding(*paused, turn_s=8.0).use.is_idle
    assert not demanding(*evenly(1.0, 1.0), turn_s=8.0).use.is_idle


def test_a_job_is_held_back_that_gets_fewer_cpus_than_its_threads_want() -> None:
    assert history().use.cpu.is_held_back is None
    assert demanding(*evenly(2.0, 1.0, 0)).use.cpu.is_held_back is None  # no use is known yet
    assert demanding(*evenly(2.0, 1.95)).use.cpu.is_held_back is False
    assert demanding(*evenly(2.0, 1.5)).use.cpu.is_held_back


def test_a_job_feeds_a_gpu_for_five_minutes_after_it_has_used_one() -> None:
    job = history()
    assert not job.use.is_feeder(0)
    job.note_devices([MICRO, 2 * MICRO], [{"GPU-1": DeviceUse(0.04)}, None])
    assert (job.use.gpus, job.use.gpu_use.used_at) == ((), None)
    both = {"GPU-1": DeviceUse(0.5), "GPU-2": DeviceUse(0.0)}
    job.note_devices([3 * MICRO, 4 * MICRO], [both, {"GPU-2": DeviceUse(0.0)}])
    assert (job.use.gpus, job.use.gpu_use.used_at) == (("GPU-2",), 3 * MICRO)
    assert job.use.is_feeder(303 * MICRO)
    assert not job.use.is_feeder(304 * MICRO)
    job.note_devices([400 * MICRO], [{"GPU-1": DeviceUse(NAN)}])
    assert job.use.is_feeder(400 * MICRO)
