"""A host and its jobs, worked by hand: sharing, reports, events, limits; and where jobs go."""

import math

import pytest

from dltools.observations.outcomes import JobResult
from dltools.plan.policy.interface import Requirements
from dltools.plan.realisation.options import Mode
from dltools.plan.realisation.shared_host import Realisation
from dltools.plan.signals.container_history import ContainerHistory
from dltools.plan.signals.resource_use import Use
from dltools.sim.job_shares import give_portions
from dltools.sim.simulated_host import SimulatedHost, host_for
from dltools.sim.simulated_job import SimulatedJob
from dltools.sim.training_and_serving import Readers
from dltools.sim.workload import HostSpec, Job, LearningCurve, labels_of

LINE = LearningCurve("loss", "linear", 1.0, 0.0)


def host_with(*jobs: Job, cpus: float = 2.0, reads_all: bool = True) -> SimulatedHost:
    host = SimulatedHost(HostSpec("h", cpus), is_observed=True)
    for job in jobs:
        history = ContainerHistory(job.name, job.name, 0, use=Use(0))
        history.label(labels_of(job))
        made = SimulatedJob(job, JobResult(job.name, "h", 0.0), Readers(reads_all))
        made.start(history)
        host.add(made)
    give_portions(host.jobs.values(), host.spec.cpus)
    return host


def test_a_training_reports_when_an_epochs_work_is_done() -> None:
    host = host_with(Job("a", work=10.0, epochs=5, curve=LINE))
    host.advance(5.0)
    assert [(one.time, one.value, one.epoch) for _, one in host.reports or ()] == [
        (2.0, pytest.approx(0.8), 1),
        (4.0, pytest.approx(0.6), 2),
    ]
    assert (host.jobs["a"].activity.done, host.cpu_seconds) == (5.0, 5.0)


def test_without_a_reader_only_the_first_two_values_are_reported_and_targets_are_met() -> None:
    host = host_with(Job("a", work=10.0, epochs=5, curve=LINE, first=0.4), reads_all=False)
    host.advance(10.0)
    assert [one.epoch for _, one in host.reports or ()] == [1, 2]
    assert host.jobs["a"].result.first == 6.0
    assert [job.job.name for job in host.finished_jobs()] == ["a"]


def test_a_sample_fills_the_history_and_tells_of_a_target() -> None:
    host = host_with(Job("a", work=10.0, epochs=5, curve=LINE, first=0.6))
    met = []
    for now in (3.0, 5.0, 7.0):
        host.advance(now)
        met.append(host.sample(Requirements(windows=1)))
    history = host.history.containers["a"]
    assert met == [False, True, False]
    assert history.use.samples == [(3_000_000, 3.0), (5_000_000, 5.0), (7_000_000, 7.0)]
    assert history.progress.metrics["loss"].times == [2_000_000, 4_000_000, 6_000_000]
    progress = history.progress
    assert (progress.step, progress.epoch, progress.met_first) == (3, 3.0, 4_000_000)


def test_news_are_the_first_two_reports_and_the_targets_that_are_watched() -> None:
    host = host_with(Job("a", work=10.0, epochs=5, curve=LINE, first=0.4), reads_all=False)
    assert (host.next_news(), host.next_change()) == (2.0, 10.0)
    host.advance(3.0)
    assert (host.next_news(), host.next_change()) == (2.0, 10.0)  # nobody has seen it yet
    host.sample(Requirements())
    assert host.next_news() == 4.0
    host.advance(5.0)
    host.sample(Requirements())
    assert (host.next_news(), host.next_change()) == (math.inf, 10.0)
    host.jobs["a"].activity.readers = Readers(False, watch_targets=True)
    assert host.next_news() == 6.0
    assert host_with().next_news() == host_with().next_change() == math.inf


def test_a_start_up_takes_one_cpu_and_does_no_work() -> None:
    host = host_with(Job("a", work=10.0, threads=2, startup=4.0))
    assert (host.next_change(), host.next_news()) == (4.0, math.inf)
    host.advance(4.0)
    job = host.jobs["a"]
    assert (job.activity.done, job.cpu, job.startup_left) == (0, 4, 0)


def test_a_shutdown_takes_one_cpu_after_the_last_report() -> None:
    host = host_with(Job("a", work=10.0, threads=2, epochs=2, shutdown=1.5, curve=LINE))
    assert host.next_change() == 5.0
    host.advance(5.0)
    give_portions(host.jobs.values(), host.spec.cpus)
    assert [one.time for _, one in host.reports or ()] == [2.5, 5.0]
    assert (host.jobs["a"].portion.cores, host.finished_jobs()) == (1.0, [])
    assert host.next_change() == 6.5
    host.advance(6.5)
    assert (host.jobs["a"].cpu, len(host.finished_jobs())) == (11.5, 1)


def test_a_serving_job_reports_every_two_seconds() -> None:
    host = host_with(Job("s", request=0.1, duration=9.0, qoe=0.1))
    host.advance(5.0)
    assert [(one.time, one.value) for _, one in host.reports or ()] == [(2.0, 0.1), (4.0, 0.1)]
    assert (host.next_news(), host.next_change()) == (2.0, 9.0)
    host.sample(Requirements())
    assert host.next_news() == math.inf


def test_a_realisation_sets_limits_that_hold_until_another_does() -> None:
    host = host_with(Job("a"), Job("b"), cpus=1.0)
    settings = {"a": {"cpus": 0.25}, "b": {"weight": 2.0, "cpuset": "0-1"}}
    host.apply_settings(Realisation(Mode.QUOTA, "", settings=settings))
    give_portions(host.jobs.values(), host.spec.cpus)
    assert [job.portion.cores for job in host.jobs.values()] == [0.25, 0.75]
    assert host.jobs["b"].limits["cpuset"] == "0-1"
    host.apply_settings(Realisation(Mode.QUOTA, "", settings={"a": {"cpus": None}}))
    assert (host.jobs["a"].limits["cpus"], host.jobs["b"].weight) == (None, 2.0)


def test_jobs_that_take_turns_have_the_host_for_their_share_of_the_time() -> None:
    host = host_with(Job("a"), Job("b"), cpus=1.0)
    settings = {"a": {"group": 0, "turn_s": 3.0}, "b": {"group": 1, "turn_s": 1.0}}
    host.apply_settings(Realisation(Mode.ROTATE, "", settings=settings))
    give_portions(host.jobs.values(), host.spec.cpus)
    assert [job.portion.cores for job in host.jobs.values()] == [0.75, 0.25]
    assert host.jobs["a"].portion.rate == pytest.approx(0.75 * (1 - 0.16 / 3))


def test_memory_and_gpus_are_kept_for_jobs() -> None:
    host = SimulatedHost(HostSpec("h", 2.0, memory=10, gpus=1))
    large = Job("a", memory=6, gpus=1)
    host.room.reserve(large)
    assert not host.room.suffices_for(Job("b", memory=6))
    assert not host.room.suffices_for(Job("b", gpus=1))
    assert host.room.suffices_for(Job("b", memory=4))
    host.room.release(large)
    assert host.room.suffices_for(large)


def test_a_training_that_sleeps_leaves_its_cpu_to_others() -> None:
    # Alone it sleeps half of the time; beside another on one CPU it has half while it is awake.
    alone = host_with(Job("s", work=10.0, wait=1.0), cpus=1.0)
    (sleeper,) = (job.portion for job in alone.jobs.values())
    assert (sleeper.cores, sleeper.rate) == (pytest.approx(0.5), pytest.approx(0.5))
    beside = host_with(Job("s", work=10.0, wait=1.0), Job("b", work=10.0), cpus=1.0)
    sleeper, busy = (job.portion for job in beside.jobs.values())
    assert sleeper.cores == pytest.approx(1 / 3)  # 2 s for a CPU second, and 1 s asleep
    assert busy.cores == pytest.approx(2 / 3)


def job(name: str, host: SimulatedHost, memory: int = 0) -> SimulatedJob:
    history = ContainerHistory(name, name, 0)
    made = SimulatedJob(Job(name, memory=memory), JobResult(name, host.spec.name, 0.0), Readers())
    made.start(history)
    return made


def hosts_of(**memory: int) -> dict[str, SimulatedHost]:
    return {name: SimulatedHost(HostSpec(name, 2.0, memory=size)) for name, size in memory.items()}


def placed(hosts: dict[str, SimulatedHost], name: str, memory: int = 0) -> str:
    host = host_for(Job(name, memory=memory), hosts)
    if host is None:
        return ""
    host.add(job(name, host, memory))
    return host.spec.name


def test_a_job_goes_to_the_host_with_the_fewest_jobs() -> None:
    hosts = hosts_of(a=0, b=0)
    assert [placed(hosts, str(number)) for number in range(4)] == ["a", "b", "a", "b"]
    hosts["b"].remove(hosts["b"].jobs["1"])
    assert [placed(hosts, str(number)) for number in range(4, 6)] == ["b", "a"]


def test_a_job_goes_to_its_own_host_if_that_has_room() -> None:
    hosts, asked = hosts_of(a=4, b=4), Job("first", memory=4, node="b")
    assert host_for(asked, hosts) is hosts["b"]
    hosts["b"].room.reserve(asked)
    assert host_for(asked, hosts) is None


def test_a_job_goes_where_it_has_room_or_nowhere() -> None:
    hosts = hosts_of(small=4, large=10)
    found = [placed(hosts, str(number), memory=4) for number in range(4)]
    assert found == ["small", "large", "large", ""]
    assert placed(hosts, "free") == "small"
