"""Short jobs that come late, beside jobs that have long converged, are no worse off than under
Docker alone, under every policy and realisation."""

import functools
import math
from dataclasses import replace

import pytest
from _pytest.mark import ParameterSet
from helpers.examples import examples, repeated, some_of
from helpers.simulations import simulation
from hypothesis import given
from hypothesis import strategies as st

from dltools.actions.turn_lengths import TURN_S
from dltools.plan.forecast.docker_alone import LATEST
from dltools.plan.policy import registry
from dltools.plan.realisation.options import Mode
from dltools.sim.workload import HostSpec, Job, LearningCurve, workload_of

POLICIES = list(registry.policies([]))
MODES = (None, *Mode)


def slow(value: object) -> ParameterSet:
    """A parameter that `make check` leaves out."""
    return pytest.param(value, marks=pytest.mark.slow)


def endless(name: str, threads: int = 2, spin: float = 1.0) -> Job:
    """A training that goes on for hours, flat after a hundredth of its work."""
    curve = LearningCurve(rate=500.0)
    return Job(name, work=3_000.0, epochs=7_500, threads=threads, curve=curve, spin=spin)


def short(
    arrival: float = 90.0, epochs: int = 30, threads: int = 2, work: float = 12.0, spin: float = 1.0
) -> Job:
    return Job("short", arrival, work, threads=threads, epochs=epochs, spin=spin)


@functools.cache
def completion(
    policy: str, mode: Mode | None, late: Job, others: tuple[Job, ...], cpus: float = 2.0
) -> float:
    jobs = workload_of((*others, late), (HostSpec("node", cpus),), "test")
    for until in (500.0, 8_000.0):  # most short jobs are done soon: what runs on takes long
        results = simulation(jobs, policy, mode).run(until=until)
        result = next(r for r in results if r.name == late.name)
        if result.finish is not None:
            return round(result.finish - late.arrival, 6)
    return math.inf


TWO = (endless("cnn"), endless("gru"))


@pytest.mark.parametrize("mode", [None, *map(slow, Mode)], ids=lambda mode: mode or "auto")
@pytest.mark.parametrize("policy", POLICIES)
def test_a_short_job_beside_two_endless_ones(policy, mode) -> None:
    alone = completion("noop", None, short(), TWO)
    assert completion(policy, mode, short(), TWO) <= alone


SILENT = {"reports each epoch": 30, "reports three times": 3, "reports at its end alone": 1}


@pytest.mark.parametrize("epochs", SILENT.values(), ids=SILENT)
@pytest.mark.parametrize("others", repeated([1], [1, 3]))
@pytest.mark.parametrize("policy", some_of(POLICIES, 3))
def test_a_job_that_says_little_is_no_worse_off(policy, others, epochs) -> None:
    beside = tuple(endless(f"endless-{number}") for number in range(others))
    late = short(epochs=epochs)
    assert completion(policy, None, late, beside) <= completion("noop", None, late, beside)


@examples(repeated(4, 20))
@given(
    others=st.lists(st.integers(1, 4), min_size=1, max_size=4),
    cpus=st.sampled_from([1.0, 2.0, 4.0]),
    spin=st.sampled_from([0.0, 0.5, 1.0]),
    late=st.builds(
        short,
        arrival=st.floats(0, 200),
        epochs=st.integers(1, 60),
        threads=st.integers(1, 4),
        work=st.floats(3, 30),
    ),
)
@pytest.mark.parametrize("mode", [None, slow(Mode.PRIORITY), slow(Mode.WEIGHT)])
@pytest.mark.parametrize("policy", some_of(POLICIES, 3))
def test_the_wait_is_bounded_whatever_runs_beside(policy, mode, others, cpus, spin, late) -> None:
    """It ends little later than under Docker alone (twice as late by shares), and a turn of each
    other after that; where that loses nothing by competing, as the imagined one."""
    beside = tuple(endless(f"e{number}", wide, spin) for number, wide in enumerate(others))
    late = replace(late, spin=spin)
    alone = completion.__wrapped__("noop", None, late, beside, cpus)
    latest = 2.0 if mode is Mode.WEIGHT else LATEST
    turns_s = 2 * TURN_S * (len(others) + 1) + late.startup
    assert completion.__wrapped__(policy, mode, late, beside, cpus) <= latest * alone + turns_s


@pytest.mark.parametrize("policy", some_of(["flowcon", "slaq"], 1))
def test_a_long_start_up_does_not_pass_for_the_cost_of_an_epoch(policy) -> None:
    """90 s of start-up and 60 s of work in ten epochs: after the first it looks like 960 s."""
    other = Job("other", work=1500.0)
    late = Job("short", 60.0, 60.0, epochs=10, startup=90.0)
    alone = completion("noop", None, late, (other,), 1.0)
    assert completion(policy, None, late, (other,), 1.0) <= LATEST * alone


WEIGHED = {
    "beside a job with a quota, which leaves CPUs to all": (
        Job("short", work=30.0, threads=2),
        (Job("half", work=30.0, cpus=0.5), Job("light", 20.0, 34.0, cpu_weight=512.0)),
    ),
    "beside a wide one that is always behind, as a heavy one takes its CPUs": (
        Job("short", work=10.0, cpu_weight=512.0),
        (
            Job("wide", work=350.0, cpu_weight=512.0, length=False, members=2),
            Job("heavy", work=150.0),
        ),
    ),
}


@pytest.mark.parametrize(("late", "others"), WEIGHED.values(), ids=WEIGHED)
@pytest.mark.parametrize("policy", some_of(["flowcon", "srtf", "slaq"], 1))
def test_where_owners_asked_for_weights_a_job_ends_in_time(policy, late, others) -> None:
    alone = completion("noop", None, late, others)
    assert completion(policy, None, late, others) <= LATEST * alone + TURN_S


def learner(name: str) -> Job:
    return replace(endless(name), curve=LearningCurve(rate=20.0), length=False)


@pytest.mark.parametrize("mode", [None, slow(Mode.PRIORITY), slow(Mode.ROTATE)])
@pytest.mark.parametrize(
    ("policy", "epochs"), [("fair", 1), ("fair", 66), ("flowcon", 1), ("flowcon", 66), ("srtf", 1)]
)
def test_a_job_that_is_not_understood_gets_an_equal_part(policy, mode, epochs) -> None:
    """Beside two that learn and another that says nothing."""
    jobs = [learner("a"), learner("b"), replace(endless("c"), epochs=1, length=False)]
    rare = replace(endless("rare"), epochs=epochs, length=False)
    loaded = workload_of((*jobs, rare), (HostSpec("node", 2.0),), "test")
    results = simulation(loaded, policy, mode).run(until=600.0)
    spent = {one.name: one.cpu for one in results}
    assert 0.75 / 4 <= spent["rare"] / sum(spent.values()) <= 1.25 / 4
