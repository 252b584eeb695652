"""From times alone to jobs of the simulator, and back through a workload file."""

from itertools import pairwise
from pathlib import Path

import pytest
from runner import fit
from runner.arms import arms_for
from runner.measured import LiveJob, LiveRun
from runner.measuring import read_list

from dltools.sim.workload import Job
from dltools.sim.workload_file import read_workload

LISTS = sorted((Path(__file__).parents[2] / "samples" / "live").glob("*.toml"))


def alone(completion: float | None, *times: float) -> LiveJob:
    points = [(time, 1 / time) for time in times]
    return LiveJob("a", 0, completion, 0 if completion else None, points, [], None)


def test_work_and_start_up_come_from_the_reports() -> None:
    found = fit.fitted(Job("a", threads=4, epochs=4), alone(8.0, 2, 4, 6, 8), 2)
    assert (found.startup, found.work, found.epochs) == (0, 16, 4)
    late = fit.fitted(Job("a", threads=1, epochs=4), alone(10.0, 4, 6, 8, 10), 2)
    assert (late.startup, late.work) == (2, 8)
    ending = fit.fitted(Job("a", threads=2, epochs=4), alone(9.5, 2, 4, 6, 8), 2)
    assert (ending.startup, ending.work, ending.shutdown) == (0, 16, 1.5)
    assert late.curve.table == ((0.25, 0.25), (0.5, 1 / 6), (0.75, 0.125), (1.0, 0.1))


def test_the_start_up_of_a_silent_job_is_that_of_the_file() -> None:
    found = fit.fitted(Job("a", threads=2, startup=2.0), alone(12.0), 2)
    assert (found.work, found.startup, found.epochs) == (20, 2, 1)


def test_an_endless_job_gets_an_end_that_is_far_away() -> None:
    found = fit.fitted(Job("a", work=1e6, threads=2, epochs=10**6), alone(None, 2, 4, 6), 2)
    assert (found.epochs, found.work, found.startup) == (450, 1800, 0)


def test_servers_ask_the_same_share_of_a_slower_machine() -> None:
    jobs = [Job(name, request=0.1, duration=60, qoe=0.3) for name in "ab"]
    seen = [LiveJob(name, 0, 60.0, 0, [], [(9.0, 0.9), (21.0, 0.2)], None) for name in "ab"]
    run = LiveRun("noop", seen, 60.0, 60.0, 0.0)
    factor = fit.machine_factor(jobs, run, 2)
    assert factor == 2
    assert (fit.scaled(jobs[0], factor).request, fit.scaled(jobs[0], factor).qoe) == (0.2, 0.6)
    assert fit.scaled(Job("t"), factor) == Job("t")
    slower = [fit.scaled(job, factor) for job in jobs]
    assert [job.target for job in fit.with_targets(run, slower).jobs] == [0.6, 0.6]
    training = LiveRun("noop", [LiveJob("t", 0, 60.0, 0, [], [], None)], 60.0, 60.0, 0.0)
    assert fit.machine_factor([Job("t")], training, 2) == 1


def test_the_fitted_file_is_a_workload() -> None:
    jobs = [
        fit.fitted(Job("a", threads=2, epochs=4, first=0.5), alone(8.0, 2, 4, 6, 8), 2),
        Job("s", request=0.1, duration=60.0, qoe=0.3),
    ]
    found = read_workload(fit.as_toml(jobs, 2), "f")
    assert list(found.jobs) == jobs
    assert [host.cpus for host in found.hosts] == [2]


@pytest.mark.parametrize("path", LISTS, ids=lambda path: path.stem)
def test_each_list_can_be_run_and_its_command_does_what_its_fields_say(path) -> None:
    plan = read_list(path, None)
    assert plan.arms[0].name == "noop"
    for job in plan.jobs:
        words = job.container.command
        said = dict(pairwise(words))
        if "--threads" in said:
            assert said["--threads"] == str(job.threads)
        if "--epochs" in said and "--silent" not in words:
            assert said["--epochs"] == str(job.epochs)


def test_arms_are_named_or_spelled_out() -> None:
    workload = read_workload('[[job]]\nname = "a"', "f")
    found = arms_for(workload, "srtf,mine=-p las --set itval=5")
    assert [(arm.name, arm.plan) for arm in found] == [
        ("noop", None),
        ("srtf", ("-p", "srtf")),
        ("mine", ("-p", "las", "--set", "itval=5")),
    ]
    with pytest.raises(KeyError):
        arms_for(workload, "sjf")
