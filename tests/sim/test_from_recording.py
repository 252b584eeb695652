"""A recording as a workload: what was simulated and recorded asks for the same work again."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from dltools.observations.table import Row, to_table
from dltools.plan.policy import registry
from dltools.plan.policy.parameters import build
from dltools.plan.realisation.mode import Mode, RealisationOptions
from dltools.sim.from_recording import recorded_workload
from dltools.sim.recorder import Recorder
from dltools.sim.simulation import Observer, Simulation
from dltools.sim.workload import HostSpec, Job, workload_of

JOBS = [Job("a", work=60.0, threads=2), Job("b", 5.0, work=40.0, threads=2),
        Job("c", 10.0, work=30.0)]  # fmt: skip


@pytest.mark.parametrize(
    ("policy", "given", "mode"),
    [
        ("noop", {}, Mode.WEIGHT),
        ("flowcon", {"itval": "5"}, Mode.QUOTA),
        ("fair", {}, Mode.QUOTA),
        ("srtf", {"itval": "5"}, Mode.PRIORITY),
    ],
)
def test_what_was_recorded_asks_for_the_same_work(
    policy: str, given: dict[str, str], mode: Mode
) -> None:
    found = registry.get(policy, [])
    recorder = Recorder()
    made = workload_of(JOBS, [HostSpec("n", 2.0)], "t")
    options = RealisationOptions(mode)
    parameters, observer = build(found.parameters, given), Observer(recorder, 0.25)
    Simulation(made, found, parameters, options, observer=observer).run()
    again = recorded_workload(recorder.table(), "again")
    assert again.hosts == made.hosts
    for job, before in zip(again.jobs, made.jobs, strict=True):
        assert (job.name, job.threads) == (before.name, before.threads)
        assert job.work == pytest.approx(before.work, rel=0.05)
        assert job.arrival == pytest.approx(before.arrival, abs=0.5)


def test_what_a_quota_held_back_was_not_lost_to_contention() -> None:
    # Two threads held to half a CPU of two, alone: 50 CPU s in 100 s are 50 s of work.
    begin = datetime(2026, 1, 1, tzinfo=UTC)
    rows: list[Row] = []
    for number in range(11):
        time = begin + timedelta(seconds=10 * number)
        rows += [
            {"time": time, "host": "h", "kind": "node", "cpu_count": 2.0},
            {"time": time, "host": "h", "kind": "container", "container_id": "a",
             "container_name": "a", "state": "running", "thread_count": 2,
             "cpu_seconds": 5.0 * number, "cpu_limit_cores": 0.5},
        ]  # fmt: skip
    (job,) = recorded_workload(to_table(rows), "t").jobs
    assert (job.threads, job.work) == (2, pytest.approx(50.0))


def test_work_before_and_after_a_restart_counts() -> None:
    # 20 CPU s before the restart at 25 s, and 30 after it.
    begin = datetime(2026, 1, 1, tzinfo=UTC)
    counters = (0.0, 10.0, 20.0, 10.0, 20.0, 30.0)
    rows: list[Row] = []
    for number, cpu in enumerate(counters):
        time = begin + timedelta(seconds=10 * number)
        started = begin + timedelta(seconds=25) if number > 2 else begin
        rows += [
            {"time": time, "host": "h", "kind": "node", "cpu_count": 1.0},
            {"time": time, "host": "h", "kind": "container", "container_id": "a",
             "container_name": "a", "thread_count": 1, "cpu_seconds": cpu, "started_at": started},
        ]  # fmt: skip
    (job,) = recorded_workload(to_table(rows), "t").jobs
    assert job.work == pytest.approx(50.0)


def test_response_times_are_judged_as_dqoes_judges_them() -> None:
    begin = datetime(2026, 1, 1, tzinfo=UTC)
    rows: list[Row] = []
    for number in range(3):
        time = begin + timedelta(seconds=10 * number)
        usual = {"time": time, "host": "h", "container_id": "a", "container_name": "a"}
        rows += [
            {"time": time, "host": "h", "kind": "node", "cpu_count": 1.0},
            {**usual, "kind": "container", "cpu_seconds": 10.0 * number},
            {**usual, "kind": "progress", "metric": "latency_p95_seconds", "value": 0.9},
            {**usual, "kind": "progress", "metric": "latency_mean_seconds", "value": 0.2},
        ]
    (job,) = recorded_workload(to_table(rows), "t").jobs
    assert (job.request, job.duration) == (pytest.approx(0.2), 20.0)
