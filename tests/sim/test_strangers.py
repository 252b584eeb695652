"""Who else lives on a host, worked by hand: GPUs, phases, members, silent jobs, owners' limits."""

import math
from collections.abc import Sequence

import pytest
from helpers.examples import some_of
from helpers.gauntlet import lots, random_host, seconds_alone, simulate
from helpers.observed_rows import planner
from helpers.simulations import simulation

from dltools.labels import Role
from dltools.observations.outcomes import JobResult, summarise
from dltools.plan.realisation.options import Mode
from dltools.plan.signals.container_history import ContainerHistory
from dltools.sim.devices import kept_beside
from dltools.sim.simulated_host import SimulatedHost
from dltools.sim.simulated_recording import Recorder
from dltools.sim.simulation import Observer
from dltools.sim.workload import HostSpec, Job, Phase, role_of, workload_of


def run(
    *jobs: Job,
    host: HostSpec | None = None,
    policy: str = "noop",
    mode: Mode | None = None,
    observer: Observer | None = None,
) -> dict[str, JobResult]:
    made = workload_of(jobs, [host or HostSpec("n", 2.0)], "t")
    results = simulation(made, policy, mode, observer=observer).run()
    return {result.name: result for result in results}


# GPUs


def test_a_training_waits_for_its_gpu_between_its_steps() -> None:
    # 10 CPU s, and 3 s of the GPU for each: 40 s.
    gpu = HostSpec("n", 2.0, gpus=1)
    found = run(Job("a", work=10.0, device=3.0, gpus=1), host=gpu)
    assert found["a"].finish == pytest.approx(40.0)
    assert found["a"].cpu == pytest.approx(10.0)


def test_two_on_one_gpu_slow_each_other_and_two_on_two_do_not() -> None:
    host = HostSpec("n", 4.0, gpus=2)
    a = Job("a", work=10.0, device=3.0, gpu_list="0")
    apart = run(a, Job("b", work=10.0, device=3.0, gpu_list="1"), host=host)
    assert [one.finish for one in apart.values()] == pytest.approx([40.0, 40.0])
    shared = run(a, Job("b", work=1e6, device=3.0, gpu_list="0"), host=host)
    assert shared["a"].finish == pytest.approx(10 + 30 / kept_beside("a", ["b"]))


def test_pairs_keep_what_pairs_on_a_real_gpu_keep() -> None:
    pairs = [(f"a{k}", f"b{k}") for k in range(2000)]
    sums = sorted(kept_beside(one, [other]) + kept_beside(other, [one]) for one, other in pairs)
    assert sums[0] >= 0.3 and sums[-1] <= 2.0
    assert sums[len(sums) // 2] == pytest.approx(1.37, abs=0.05)
    assert all(0 < kept_beside(one, [other]) <= 1 for one, other in pairs)
    assert kept_beside("a", []) == 1.0
    assert kept_beside("a", ["b", "c"]) == kept_beside("a", ["b"]) * kept_beside("a", ["c"])


def test_a_job_of_its_own_gpus_waits_until_they_are_free() -> None:
    host = HostSpec("n", 4.0, gpus=2)
    jobs = Job("a", work=10.0, gpu_list="0"), Job("b", work=5.0, gpus=2), Job("c", work=5.0, gpus=1)
    found = run(*jobs, host=host)
    assert found["c"].start == 0.0
    assert found["b"].start == 10.0


@pytest.mark.parametrize("policy", ["flowcon", "srtf", "fair", "las"])
def test_trainings_on_gpus_leave_idle_cpus_alone(policy: str) -> None:
    # Eight trainings, each on its own GPU, 60 threads alive: nobody waits.
    jobs = [
        Job(f"j{k}", work=20.0, threads=2, device=2.0, gpu_list=str(k), idle_threads=58)
        for k in range(8)
    ]
    host = HostSpec("n", 64.0, gpus=8)
    under_docker = run(*jobs, host=host)
    for mode in (None, Mode.PRIORITY, Mode.ROTATE, Mode.WEIGHT):
        found = run(*jobs, host=host, policy=policy, mode=mode)
        assert all(
            one.finish == pytest.approx(under_docker[name].finish, rel=0.01)
            for name, one in found.items()
        )


# Phases


def test_phases_interrupt_the_work_after_their_epochs() -> None:
    # 10 epochs of 1 CPU s. After 4 and 8: 2 CPU s on one thread and 3 s of sleep. After 5: 1 s of
    # sleep; after the last none.
    phases = (Phase(4, cpu=2.0, sleep=3.0), Phase(5, sleep=1.0))
    found = run(Job("a", work=10.0, epochs=10, phases=phases))
    assert found["a"].finish == pytest.approx(10 + 2 * 5 + 1)
    assert found["a"].cpu == pytest.approx(14.0)


def test_a_phase_has_its_own_threads() -> None:
    # Two threads halve the work, and the phase of one thread takes its CPU seconds.
    found = run(Job("a", work=8.0, threads=2, epochs=2, phases=(Phase(1, cpu=3.0, threads=1),)))
    assert found["a"].finish == pytest.approx(2 + 3 + 2)


def test_reports_come_at_the_ends_of_epochs_and_not_in_phases() -> None:
    seen: list[tuple[float, int | None]] = []

    def look(_: float, host: SimulatedHost) -> None:
        seen.extend((one.time, one.epoch) for _, one in host.reports or ())
        (host.reports or []).clear()

    run(Job("a", work=4.0, epochs=4, phases=(Phase(2, sleep=5.0),)), observer=Observer(look, 1.0))
    assert seen == [(1.0, 1), (2.0, 2), (8.0, 3), (9.0, 4)][: len(seen)]
    assert len(seen) >= 3


# Members, silent jobs, programs


def test_members_wait_for_each_other_as_threads_do() -> None:
    two = run(Job("a", work=20.0, members=2), Job("b", work=1e5, threads=2))
    one = run(Job("a", work=20.0, threads=2), Job("b", work=1e5, threads=2))
    # Each container has a weight of its own: two have two thirds of two CPUs.
    assert (two["a"].finish or 0) < (one["a"].finish or 0)
    alone = run(Job("a", work=20.0, members=2))
    assert alone["a"].finish == pytest.approx(10.0)


def test_a_silent_training_reports_nothing_and_ends() -> None:
    recorder = Recorder()
    silent, observer = Job("a", work=10.0, silent=True), Observer(recorder, 2.0)
    assert run(silent, policy="flowcon", observer=observer)["a"].finish == pytest.approx(10.0)
    assert "progress" not in recorder.table().column("kind").to_pylist()


@pytest.mark.parametrize("mode", [None, Mode.PRIORITY, Mode.ROTATE, Mode.QUOTA, Mode.WEIGHT])
def test_a_database_and_a_notebook_are_never_touched(mode) -> None:
    strangers = [
        Job("database", request=0.05, threads=1, duration=100.0, role="other"),
        Job("notebook", request=0.05, think=0.95, duration=100.0, role="interactive"),
    ]
    limits = []

    def look(_: float, host: SimulatedHost) -> None:
        limits.extend(
            (job.weight, job.limits["cpus"], job.limits.get("group"))
            for job in host.jobs.values()
            if job.job.role
        )

    jobs = [*strangers, Job("a", work=60.0, threads=2), Job("b", work=60.0, threads=2)]
    under_docker = run(*jobs)
    found = run(*jobs, policy="fair", mode=mode, observer=Observer(look, 1.0))
    assert set(limits) == {(1024.0, None, None)}
    for one in strangers:
        assert found[one.name].cpu >= 0.99 * under_docker[one.name].cpu


def test_a_remote_engine_shows_no_roles_of_those_that_report_nothing() -> None:
    database = Job("d", request=0.1, duration=9.0, role="other")
    assert role_of(database).role is Role.OTHER
    assert role_of(Job("s", silent=True)).role is Role.TRAINING
    assert role_of(Job("s", silent=True), is_remote=True).role is Role.OTHER
    assert role_of(Job("a"), is_remote=True).role is Role.TRAINING


def test_owners_limits_hold_from_the_start_and_under_a_policy() -> None:
    half = Job("half", work=10.0, cpus=0.5)
    assert run(half)["half"].finish == pytest.approx(20.0)
    for mode in (Mode.QUOTA, Mode.WEIGHT, Mode.PRIORITY):
        found = run(half, Job("b", work=40.0, threads=2), policy="fair", mode=mode)
        assert (found["half"].finish or 0) >= 20.0 - 1e-6
    heavy = Job("a", work=10.0, cpu_weight=3072.0)
    found = run(heavy, Job("b", work=10.0), host=HostSpec("n", 1.0))
    assert found["a"].finish == pytest.approx(10 / 0.75)


def test_sleepers_leave_their_cpus_to_each_other() -> None:
    # Two that sleep half of the time on one CPU: each has more than half of it while it is awake.
    sleepers = [Job(name, work=30.0, wait=1.0) for name in "ab"]
    found = run(*sleepers, host=HostSpec("n", 1.0))
    assert 60.0 < (found["a"].finish or math.inf) < 90.0


# What is recorded is what the policy sees


def known_of(job: ContainerHistory, now: int) -> tuple[object, ...]:
    standing, owner = job.standing, job.owner
    is_feeder = job.use.is_feeder(now)
    return standing.role, is_feeder, owner.cpus, owner.ratio, standing.protected


def test_a_planner_makes_the_same_of_the_recording_as_the_simulation() -> None:
    jobs = [
        Job("gpu", work=500.0, device=1.0, gpu_list="0", idle_threads=30),
        Job("ddp", work=900.0, threads=2, members=2, cpus=1.5),
        Job("half", work=300.0, cpus=0.5, cpu_weight=512.0),
        Job("quiet", work=900.0, threads=2, silent=True),
        Job("db", request=0.1, duration=900.0, role="other"),
        Job("mine", work=500.0, threads=2, protected=True),
    ]
    recorder, last = Recorder(), {}

    def look(now: float, host: SimulatedHost) -> None:
        recorder(now, host)
        for job in host.jobs.values():
            last[job.job.name] = known_of(job.history, round(now * 1e6))

    loaded = workload_of(jobs, [HostSpec("n", 4.0, gpus=1)], "t")
    simulation(loaded, "fair", observer=Observer(look, 2.0)).run(until=60.0)
    made = planner("fair")
    made.add(recorder.table())
    made.complete()
    (host,) = made.hosts.histories()
    seen = {
        (one.membership.job or one.name): known_of(one, host.sampled_at or 0)
        for one in host.containers.values()
    }
    assert seen == last
    ddp = next(one for one in host.containers.values() if one.membership.job == "ddp")
    assert len(ddp.membership.members) == 2


# Random hosts: the worst that `make strangers` has found, which once were harmed


@pytest.mark.parametrize("policy", some_of(["flowcon", "srtf"], 1))
@pytest.mark.parametrize(
    ("seed", "what_it_was"),
    some_of(
        [
            (9, "databases got twice their CPU time, which twelve trainings lost"),
            (67, "trainings beside databases ended a quarter later in the mean"),
            (58, "trainings that sleep nine tenths of the time took turns"),
            (62, "trainings beside databases ended a quarter later in the mean"),
        ],
        2,
    ),
)
def test_nobody_on_the_worst_random_hosts_is_harmed(seed, what_it_was, policy) -> None:
    workload = random_host(seed)
    under_docker, mine = simulate(workload, "noop", None), simulate(workload, policy, None)
    for one in lots(workload, mine, under_docker, seconds_alone(workload)):
        least = min(0.9, 0.95 * one.bound) if one.is_training else 0.9
        assert one.ratio >= least, f"{one.name} on a host where {what_it_was}"
    assert mean_completion(mine) <= 1.1 * mean_completion(under_docker), what_it_was


def mean_completion(results: Sequence[JobResult]) -> float:
    return summarise(results).mean_completion
