"""The mode that suits a host."""

import pytest
from helpers.shared_hosts import host, job, realised

from dltools.plan.policy.interface import HostState
from dltools.plan.realisation.arrangement import Outlook, choose_mode
from dltools.plan.realisation.mode import ModeChoice
from dltools.plan.realisation.options import Mode, RealisationOptions
from dltools.plan.signals.container_history import ContainerHistory
from dltools.plan.signals.paces import Mark, Pace


def mode_of(options: RealisationOptions, of_host: HostState) -> ModeChoice:
    """The mode for a host that has just begun."""
    return choose_mode(options, of_host, (), Outlook())


@pytest.mark.parametrize(
    ("threads", "cpus", "expected"),
    [
        ((2, 2), 2.0, Mode.PRIORITY),
        ((1, 1, 1), 2.0, Mode.WEIGHT),  # equal ones: an order wins nothing
        ((2, 2), 4.0, Mode.WEIGHT),  # all fit
        ((8,), 2.0, Mode.WEIGHT),  # alone
        ((None, None, None), 2.0, Mode.WEIGHT),
    ],
)
def test_the_default_looks_at_threads_and_cores(threads, cpus, expected) -> None:
    jobs = [job(str(number), count) for number, count in enumerate(threads)]
    assert mode_of(RealisationOptions(), host(*jobs, cpus=cpus)).mode is expected


def test_beside_serving_containers_the_default_is_weight() -> None:
    jobs = [job("a", 4), job("b", 4), job("s", 4, dltools_qoe="0.1")]
    assert mode_of(RealisationOptions(), host(*jobs)).mode is Mode.WEIGHT


def test_a_mode_that_is_asked_for_is_taken() -> None:
    options = RealisationOptions(Mode.ROTATE, quantum_s=3.0)
    assert mode_of(options, host(job("a"))) == ModeChoice(Mode.ROTATE, "as asked", 3.0)


def test_trainings_of_one_thread_each_stand_in_line_where_that_wins() -> None:
    """Three jobs that need 10, 60 and 200 CPU s on one CPU: in order they end after 10, 70 and
    270 s, in the mean 116.7; in equal turns or side by side after 30, 130 and 270: 143.3."""
    jobs = [trained(name, left) for name, left in (("a", 10), ("b", 60), ("c", 200))]
    found = host(*jobs, cpus=1.0, shares={"a": 0.9, "b": 0.08, "c": 0.02})
    choice = mode_of(RealisationOptions(), found)
    assert (choice.mode, choice.is_even) == (Mode.PRIORITY, False)
    assert choice.why == (
        "3 busy threads of 3 jobs on 1 CPUs: in order 117 s, side by side 143 s on average"
    )


def test_an_order_is_taken_where_the_last_job_ends_as_late_by_another_sum() -> None:
    """Three in order, then three side by side, as all six would be: the last ends after 61.25 s
    either way, which the one sum makes 61.249999."""
    needs = (7.7, 15.9, 16.6, 23.3, 25.9, 29.5)
    jobs = [trained(str(number), need, epoch=need) for number, need in enumerate(needs)]
    shares: dict[str, float | None] = {job.id: 0.5 / 2**number for number, job in enumerate(jobs)}
    choice = mode_of(RealisationOptions(), host(*jobs, cpus=2.0, shares=shares))
    assert choice.mode is Mode.PRIORITY


def test_an_order_that_puts_the_longest_first_is_not_taken() -> None:
    jobs = [trained(name, left) for name, left in (("a", 10), ("b", 60), ("c", 200))]
    found = host(*jobs, cpus=1.0, shares={"c": 0.9, "b": 0.08, "a": 0.02})
    choice = mode_of(RealisationOptions(), found)
    assert (choice.mode, choice.is_even) == (Mode.WEIGHT, True)
    assert {one["weight"] for one in realised(choice, found).settings.values()} == {1024.0}


def test_where_no_order_wins_threads_that_may_spin_take_turns_as_equals() -> None:
    jobs = [trained(name, 100, threads=2) for name in "abc"]
    found = host(*jobs, shares=dict.fromkeys("abc", 1 / 3))
    choice = mode_of(RealisationOptions(), found)
    assert (choice.mode, choice.are_equal) == (Mode.PRIORITY, True)
    weights = [one["weight"] for one in realised(choice, found).settings.values()]
    assert sorted(weights) == [2.0, 10.0, 1024.0]


def trained(name: str, left: float, threads: int = 1, epoch: float = 10.0) -> ContainerHistory:
    """A job that has had the CPU s of an epoch for the first of as many as `left` takes."""
    made = job(name, threads)
    made.use.add_samples([0], [epoch])
    made.progress.reports, made.progress.epoch = 2, 1.0
    made.progress.note_counts(1 + round(left / epoch), None)
    return made


def test_jobs_beside_a_server_are_weighed() -> None:
    found = host(job("a", 1), job("serves", 1, dltools_qoe="0.1"))
    assert not mode_of(RealisationOptions(), found).is_even


def test_jobs_that_fit_the_cpus_have_equal_weights() -> None:
    """Unequal ones would bring them nothing, and the next job to come would starve the lightest."""
    found = host(job("a", 1), job("b", 1))
    assert mode_of(RealisationOptions(), found).is_even


def test_threads_that_sleep_all_the_time_do_not_count() -> None:
    """PyTorch starts threads of its own: with two for its work it has four."""
    jobs = [job(name, 3) for name in "abc"]
    assert mode_of(RealisationOptions(), host(*jobs, cpus=4.0)).mode is Mode.PRIORITY
    for one in jobs:
        pace = Pace("loss", Mark(0, 0.0), Mark(0, 0.0), peak=1.02, free_cpu_s=2.5, free_reports=1)
        one.progress.pace = pace
    assert mode_of(RealisationOptions(), host(*jobs, cpus=2.0)).is_even
