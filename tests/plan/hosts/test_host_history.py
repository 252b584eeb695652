"""What is remembered of a host between rounds, and when rounds run."""

from dataclasses import replace

import pytest
from helpers.histories import ONE_POINT, history, host_history

from dltools.notation.times import MICRO
from dltools.plan.hosts.host_history import HostHistory, RoundTimer
from dltools.plan.policy.interface import (
    ActionKind,
    Allocation,
    Decision,
    IntervalChange,
    JobAction,
    Requirements,
)
from dltools.plan.signals.container_history import ContainerHistory

EVERY_10_S = Requirements(interval_s=10.0, longest_interval_s=40.0)
HALF = Allocation(0.5, "-", "half")


def job(name: str, arrived_s: float = 0.0) -> ContainerHistory:
    return history(ONE_POINT, name=name, arrived_s=arrived_s)


def after_a_round(*jobs: ContainerHistory, required: Requirements = EVERY_10_S) -> HostHistory:
    """A host after a round at 0 s that gave each job a half."""
    host = host_history(*jobs)
    started = host.start_round(required, host.jobs(), is_interrupted=False)
    host.finish_round(Decision({one.id: HALF for one in jobs}), required, started)
    return host


def starts_round(
    host: HostHistory,
    at_s: float,
    required: Requirements = EVERY_10_S,
    *,
    is_interrupted: bool = False,
) -> list[str]:
    """The names of the jobs of the round that is due at a time, [] where none is."""
    host.sampled_at = round(at_s * MICRO)
    found = host.start_round(required, host.jobs(), is_interrupted=is_interrupted)
    return [one.name for one in found]


# Jobs


TRAINS = {"dltools.role": "training"}


def test_jobs_are_trainings_and_are_not_protected() -> None:
    protected = {"dltools.protect": "true"}
    host = host_history(
        job("b"),
        job("a"),
        history(name="silent", labels=TRAINS),
        history(name="unknown"),
        history(ONE_POINT, name="p", labels=protected),
        history(name="silent-p", labels=protected | TRAINS),
        history(ONE_POINT, name="notebook", labels={"dltools.role": "interactive"}),
    )
    assert [one.name for one in host.jobs()] == ["a", "b"]
    assert [one.name for one in host.look().silent] == ["silent"]


def test_servers_are_jobs_where_the_policy_keeps_response_times() -> None:
    latency = {"latency_seconds": [(0.0, 1.0)]}
    host = host_history(
        job("a"), history(latency, name="s"), history(name="t", labels={"dltools.qoe": "1"})
    )
    assert [one.name for one in host.jobs()] == ["a"]
    assert [one.name for one in host.look().silent] == []
    host.has_servers = True
    assert [one.name for one in host.jobs()] == ["a", "s"]
    assert [one.name for one in host.look().silent] == ["t"]


def test_what_seemed_to_train_and_serves_is_no_longer_a_job() -> None:
    one = history({"accuracy": [(0.0, 1.0)]}, name="a", labels={"dltools.metric": "accuracy"})
    host = host_history(one, history(name="never-touched"))
    one.managed = True
    assert host.no_longer_jobs() == ()
    one.add_points("latency_seconds", ([1], [0.1], [None]))
    assert (host.jobs(), host.no_longer_jobs()) == ((), (one,))


def test_a_host_of_unknown_size_has_no_jobs() -> None:
    assert HostHistory("host", containers={"a": job("a")}).jobs() == ()
    assert host_history(job("a"), cpus=0.5).jobs() != ()


def test_policies_see_the_jobs_and_their_last_allocations() -> None:
    a, b = job("a"), job("b")
    host = after_a_round(a, b)
    state = host.state()
    assert (state.name, state.cpus, state.jobs) == ("host", 2.0, (a, b))
    assert state.previous == {a.id: HALF, b.id: HALF}
    assert host.state((b,)).jobs == (b,)


# Rounds that start


def test_the_first_job_starts_a_round_at_once() -> None:
    assert starts_round(host_history(), 0) == []
    assert starts_round(host_history(job("a")), 0) == ["a"]


@pytest.mark.parametrize(("at_s", "names"), [(9.499_999, []), (9.5, ["a", "b"]), (30, ["a", "b"])])
def test_the_next_round_starts_after_an_interval(at_s, names) -> None:
    assert starts_round(after_a_round(job("a"), job("b")), at_s) == names


def test_a_job_that_arrives_or_leaves_starts_a_round() -> None:
    host = after_a_round(job("a"))
    b = job("b", arrived_s=1)
    host.containers[b.id] = b
    assert starts_round(host, 1) == ["a", "b"]
    host = after_a_round(job("a"), job("b"))
    del host.containers[b.id]
    assert starts_round(host, 1) == ["a"]


def test_an_interruption_starts_a_round_and_keeps_the_interval() -> None:
    host = after_a_round(job("a"), required=EVERY_10_S)
    host.timer = replace(host.timer, interval_s=20.0)
    assert starts_round(host, 1, is_interrupted=True) == ["a"]
    assert host.timer.interval_s == 20.0
    assert starts_round(after_a_round(job("a")), 1) == []


def test_allocations_are_kept_for_jobs_that_stayed() -> None:
    a, b, c = job("a"), job("b"), job("c")
    host = after_a_round(a, b, c)
    del host.containers[b.id]
    host.containers[c.id] = job("c", arrived_s=1)  # it has restarted
    starts_round(host, 1)
    assert host.decision.allocations == {a.id: HALF}


# Rounds that finish


def test_a_round_leaves_its_decision_in_the_history() -> None:
    a, b = job("a"), job("b")
    host = host_history(a, b, sampled_s=7)
    jobs = host.start_round(EVERY_10_S, host.jobs(), is_interrupted=False)
    action = JobAction(ActionKind.DELIVER, a.id, "has met its target")
    decision = Decision(
        {a.id: HALF, b.id: Allocation(None, "-", "left alone")},
        interval_change=IntervalChange.DOUBLE,
        actions=(action,),
        gain="much",
    )
    host.finish_round(decision, EVERY_10_S, jobs)
    assert host.decision.allocations[a.id] == HALF
    assert (host.decision.actions, host.decision.gain) == ((action,), "much")
    assert (host.timer.last, host.timer.interval_s) == (7 * MICRO, 20.0)
    assert (a.managed, b.managed) == (True, False)  # only a has been given a share


def test_an_allocation_for_a_container_that_is_gone_does_no_harm() -> None:
    host = host_history(job("a"))
    jobs = host.start_round(EVERY_10_S, host.jobs(), is_interrupted=False)
    host.finish_round(Decision({"gone": HALF}), EVERY_10_S, jobs)
    assert host.decision.allocations == {"gone": HALF}


# What is forgotten


def long_job(name: str) -> ContainerHistory:
    """A job with a point and a counter sample every 10 s from 0 to 100 s."""
    seconds = [10.0 * n for n in range(11)]
    return history({"loss": [(s, s) for s in seconds]}, [(s, s) for s in seconds], name=name)


def kept_s(one: ContainerHistory) -> tuple[list[float], list[float]]:
    """The seconds of the points and of the samples that are left."""
    times = one.progress.metrics["loss"].times if one.progress.metrics else []
    return [t / MICRO for t in times], [t / MICRO for t, _ in one.use.samples]


@pytest.mark.parametrize(
    ("windows", "points", "samples"),
    [
        (0, [100], [100]),  # the newest is always kept
        (1, [90, 100], [80, 90, 100]),  # (80, 100]: the sample at 80 begins the window
        (2, [80, 90, 100], [70, 80, 90, 100]),
    ],
)
def test_after_a_round_a_job_keeps_its_windows_and_an_interval(windows, points, samples) -> None:
    required = Requirements(interval_s=10.0, windows=windows)
    a = long_job("a")
    host = host_history(a, sampled_s=100)
    jobs = host.start_round(required, host.jobs(), is_interrupted=False)
    host.finish_round(Decision({}), required, jobs)
    assert kept_s(a) == (points, samples)


@pytest.mark.parametrize(("windows", "of_job", "of_other"), [(1, 11, 3), (0, 1, 1)])
def test_between_rounds_only_containers_in_none_are_forgotten(windows, of_job, of_other) -> None:
    # Without windows a job needs no history either.
    required = Requirements(interval_s=10.0, windows=windows)
    one = long_job("a")
    other = history(samples=[(10.0 * n, n) for n in range(11)], name="silent")
    host = host_history(one, other, sampled_s=100)
    host.start_round(required, host.jobs(), is_interrupted=False)
    host.forget_bystanders(required)
    assert len(kept_s(one)[1]) == of_job
    assert len(kept_s(other)[1]) == of_other


# Waiting


def test_the_wait_is_the_timer_s_or_an_interval_where_no_job_runs() -> None:
    host = after_a_round(job("a"))
    host.sampled_at = 4 * MICRO
    assert host.wait_s(EVERY_10_S) == 6.0
    assert host_history().wait_s(EVERY_10_S) == 10.0
    assert host_history().wait_s(Requirements()) is None
    assert after_a_round(job("a"), required=Requirements()).wait_s(Requirements()) is None


A, B = history(name="a"), history(name="b")
RUN_IDS = (A.run_id, B.run_id)


def test_the_same_jobs_in_any_order_change_nothing() -> None:
    timer = RoundTimer(20.0, 5, RUN_IDS)
    assert timer.with_jobs([B, A], EVERY_10_S) is timer


@pytest.mark.parametrize(
    "jobs",
    [[A], [], [A, B, history(name="c")], [A, history(name="b", arrived_s=3.0)]],
    ids=["left", "all left", "arrived", "restarted"],
)
def test_other_jobs_reset_the_interval_and_make_a_round_due(jobs) -> None:
    timer = RoundTimer(20.0, 5, RUN_IDS).with_jobs(jobs, EVERY_10_S)
    assert (timer.interval_s, timer.last) == (10.0, None)
    assert len(timer.run_ids) == len(jobs)
    assert timer.is_due(6)


@pytest.mark.parametrize(
    ("interval_s", "change", "longest_s", "after_s"),
    [
        (20.0, IntervalChange.KEEP, 40.0, 20.0),
        (20.0, IntervalChange.RESET, 40.0, 10.0),
        (20.0, IntervalChange.DOUBLE, 80.0, 40.0),
        (20.0, IntervalChange.DOUBLE, 30.0, 30.0),
        (20.0, IntervalChange.DOUBLE, 0.0, 20.0),  # never shorter than it was
        (None, IntervalChange.DOUBLE, 40.0, None),
        (None, IntervalChange.KEEP, 40.0, None),
    ],
)
def test_after_a_round_the_interval_is_as_decided(interval_s, change, longest_s, after_s) -> None:
    required = Requirements(interval_s=10.0, longest_interval_s=longest_s)
    timer = RoundTimer(interval_s, None, RUN_IDS).after_round(7, change, required)
    assert timer == RoundTimer(after_s, 7, RUN_IDS)


@pytest.mark.parametrize(
    ("timer", "now_s", "wait_s"),
    [
        (RoundTimer(10.0, last=0), 0.0, 10.0),
        (RoundTimer(10.0, last=0), 12.0, 0.0),
        (RoundTimer(10.0), 4.0, 10.0),  # a round is due at the next sample
        (RoundTimer(None, last=0), 4.0, None),
        (RoundTimer(None), 4.0, None),
    ],
)
def test_the_wait_until_the_next_round(timer, now_s, wait_s) -> None:
    assert timer.wait_s(round(now_s * MICRO)) == wait_s
