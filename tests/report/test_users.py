"""What a report says of users: their hours, worked by hand, and GPU seconds of a recording."""

from __future__ import annotations

import pytest
from helpers.observed_rows import at, container, gpu, job_id, node

from dltools.observations.outcomes import JobResult
from dltools.observations.table import to_table
from dltools.report.observed_run import observed_run
from dltools.report.ranking import by_user


def test_hours_of_users_are_means_over_the_repeats() -> None:
    def results(cpu: float) -> list[JobResult]:
        return [
            JobResult("a", "n", 0.0, finish=9.0, cpu=cpu, gpu=1800.0, waited=360.0, user="ann"),
            JobResult("b", "n", 0.0, cpu=3600.0, exit_code=1, user="ann"),
            JobResult("c", "n", 0.0, cpu=7200.0),
        ]

    assert by_user({"run": [results(3600.0), results(10800.0)]}) == [
        {
            "run": "run",
            "user": None,
            "job_count": 1,
            "cpu_hours": 2,
            "gpu_hours": 0,
            "waited_hours": 0,
            "finished": 0,
            "failed": 0,
        },
        {
            "run": "run",
            "user": "ann",
            "job_count": 2,
            "cpu_hours": 3,
            "gpu_hours": 0.5,
            "waited_hours": 0.1,
            "finished": 1,
            "failed": 1,
        },
    ]


def test_a_recording_says_whose_jobs_are_and_what_gpus_they_used() -> None:
    rows = []
    for t in range(0, 50, 10):
        rows += [
            node(t),
            container(t, "ann's", 2.0 * t, labels='{"dltools.user": "ann"}', user="other"),
            container(t, "bob's", 1.0 * t, user="bob", state="paused" if t < 20 else "running"),
            gpu(t, "ann's", 0, 0.5),
            gpu(t, "ann's", 1, 0.25 if t != 30 else None),
        ]
    rows.append(
        {
            "time": at(45),
            "host": "node",
            "kind": "event",
            "event": "exit",
            "container_id": job_id("bob's"),
            "exit_code": 1,
        }
    )
    run = observed_run([to_table(rows)], "run", "file")
    found = {one.name: one for one in run.jobs}
    assert (found["ann's"].user, found["bob's"].user) == ("ann", "bob")
    assert found["ann's"].gpu == pytest.approx(40 * 0.5 + 30 * 0.25)
    assert found["bob's"].waited == pytest.approx(20)
    assert found["bob's"].exit_code == 1
