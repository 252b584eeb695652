"""A recording as a workload: what was simulated and recorded asks for the same work again."""

import math
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta

import pytest
from helpers.simulations import simulation

from dltools.errors import DataError
from dltools.observations.table import Row, to_table
from dltools.plan.realisation.options import Mode
from dltools.sim.from_recording import recorded_workload
from dltools.sim.simulated_recording import Recorder
from dltools.sim.simulation import Observer
from dltools.sim.workload import HostSpec, Job, workload_of

JOBS = [
    Job("a", work=60.0, threads=2),
    Job("b", 5.0, work=40.0, threads=2),
    Job("c", 10.0, work=30.0),
]

BEGIN = datetime(2026, 1, 1, tzinfo=UTC)


def recorded(rows: Iterable[Row]) -> Job:
    """The only job of a recording."""
    (job,) = recorded_workload([to_table(rows)], "t").jobs
    return job


@pytest.mark.parametrize(
    ("policy", "mode"),
    [("noop", Mode.WEIGHT), ("flowcon", Mode.QUOTA), ("fair", Mode.QUOTA), ("srtf", Mode.PRIORITY)],
)
def test_what_was_recorded_asks_for_the_same_work(policy, mode) -> None:
    recorder = Recorder()
    made = workload_of(JOBS, [HostSpec("n", 2.0)], "t")
    simulation(made, policy, mode, {"itval": "5"}, observer=Observer(recorder, 0.25)).run()
    again = recorded_workload([recorder.table()], "again")
    assert again.hosts == made.hosts
    for job, before in zip(again.jobs, made.jobs, strict=True):
        assert (job.name, job.threads) == (before.name, before.threads)
        assert job.work == pytest.approx(before.work, rel=0.05)
        assert job.arrival == pytest.approx(before.arrival, abs=0.5)


def test_what_a_quota_held_back_was_not_lost_to_contention() -> None:
    # Two threads held to half a CPU of two, alone: 50 CPU s in 100 s are 50 s of work.
    job = recorded(steady(10.0, 5.0, cpu_seconds=5.0, cpu_limit_cores=0.5))
    assert (job.threads, job.work) == (2, pytest.approx(50.0))


def test_work_before_and_after_a_restart_counts() -> None:
    # 20 CPU s before the restart at 25 s, and 30 after it.
    rows: list[Row] = []
    for number, cpu in enumerate((0.0, 10.0, 20.0, 10.0, 20.0, 30.0)):
        started = BEGIN + timedelta(seconds=25 if number > 2 else 0)
        job = {"thread_count": 1, "cpu_seconds": cpu, "started_at": started}
        rows += recorded_at(BEGIN, 10.0 * number, 10.0 * number, **job)
    assert recorded(rows).work == pytest.approx(50.0)


def reported(number: int, **values: float) -> list[Row]:
    """The rows of a sample every ten seconds of a job that has used the host's one CPU."""
    at = {"time": BEGIN + timedelta(seconds=10 * number), "host": "h"}
    job = {**at, "container_id": "a", "container_name": "a"}
    return [
        {**at, "kind": "node", "cpu_count": 1.0},
        {**job, "kind": "container", "cpu_seconds": 10.0 * number},
        *({**job, "kind": "progress", "metric": name, "value": values[name]} for name in values),
    ]


def test_response_times_are_judged_as_dqoes_judges_them() -> None:
    times = {"latency_p95_seconds": 0.9, "latency_mean_seconds": 0.2}
    job = recorded(row for number in range(3) for row in reported(number, **times))
    assert (job.request, job.duration) == (pytest.approx(0.2), 20.0)


def test_a_training_is_judged_as_the_policies_judge_it() -> None:
    values = [{"val_accuracy": math.nan, "loss": 4.0 - number} for number in range(4)]
    job = recorded(row for number, one in enumerate(values) for row in reported(number, **one))
    assert job.curve.metric == "loss"
    assert job.curve.value(1.0) == pytest.approx(1.0)


def recorded_at(begin: datetime, seconds: float, host_cpu: float, **job: object) -> list[Row]:
    """The rows of a sample of a host of two CPUs, and of its one container."""
    time = begin + timedelta(seconds=seconds)
    return [
        {"time": time, "host": "h", "kind": "node", "cpu_count": 2.0, "cpu_seconds": host_cpu},
        {
            "time": time,
            "host": "h",
            "kind": "container",
            "container_id": "a",
            "container_name": "a",
            "state": "running",
            "thread_count": 2,
            **job,
        },
    ]


def steady(step_s: float, host_cpu: float, cpu_seconds: float, **job: object) -> list[Row]:
    """Eleven samples; in each step the host and its container use the same CPU seconds again."""
    return [
        row
        for n in range(11)
        for row in recorded_at(BEGIN, step_s * n, host_cpu * n, cpu_seconds=cpu_seconds * n, **job)
    ]


def test_a_recording_with_a_wrong_clock_is_not_replayed_for_hours() -> None:
    rows = recorded_at(datetime(1970, 1, 1, tzinfo=UTC), 0.0, 0.0, cpu_seconds=0.0)
    with pytest.raises(DataError, match="t: its samples are 20454 days apart: was a clock wrong"):
        recorded([*rows, *steady(10.0, 5.0, cpu_seconds=5.0)])


def test_pauses_are_not_taken_for_contention() -> None:
    # Turns of 10 s on a full host: two threads, 20 CPU s in each turn, paused in between.
    rows: list[Row] = []
    for number in range(17):
        turns = number // 4 * 20 + min(20, 10 * (number % 4))
        state = "paused" if number % 4 >= 2 else "running"
        rows += recorded_at(BEGIN, 5.0 * number, 10.0 * number, cpu_seconds=turns, state=state)
    job = recorded(rows)
    assert (job.threads, job.work, job.wait) == (2, pytest.approx(80.0), 0)


def test_turns_shorter_than_the_samples_are_not_taken_for_contention() -> None:
    job = recorded(steady(10.0, 20.0, cpu_seconds=10.0, turn_seconds=4.0))
    assert job.work == pytest.approx(100.0 * (1 - 0.16 / 4))


def test_a_start_on_one_cpu_is_a_start_and_no_contention() -> None:
    rows: list[Row] = []
    for number in range(11):
        cpu = min(number, 3) * 5.0 + max(0, number - 3) * 10.0
        rows += recorded_at(BEGIN, 5.0 * number, cpu, cpu_seconds=cpu)
    rows += reported(2, loss=1.0)[2:]
    rows.sort(key=lambda row: str(row["time"]))
    job = recorded(rows)
    assert (job.startup, job.work) == (pytest.approx(15.0), pytest.approx(70.0))


def test_sleep_shows_where_cpus_are_idle_but_not_where_the_host_is_full() -> None:
    for host_cores, wait in ((0.5, 1.5), (2.0, 0.0)):
        job = recorded(steady(5.0, 5.0 * host_cores, cpu_seconds=2.0, thread_count=1))
        assert job.wait == pytest.approx(wait)


def test_what_cannot_be_compared_is_said_with_what_would_make_it_so() -> None:
    said: list[str] = []
    rows = steady(5.0, 10.0, cpu_seconds=3.0, cpu_weight=2.0)
    recorded_workload([to_table(rows)], "t", said.append)
    others, limits = said
    assert others.startswith("t: processes outside containers used 70% of the CPUs of h")
    assert limits.startswith("t: limits held back a all the time")


def test_a_recording_under_docker_alone_can_be_compared() -> None:
    said: list[str] = []
    rows = steady(5.0, 9.0, cpu_seconds=9.0, cpu_weight=1024.0)
    recorded_workload([to_table(rows)], "t", said.append)
    assert said == []


def test_roles_gpus_members_and_owners_limits_are_kept() -> None:
    jobs = [
        Job("ddp", work=200.0, threads=1, members=2),
        Job("gpu", work=30.0, threads=1, device=1.0, gpu_list="1", cpus=1.5),
        Job("note", request=0.25, think=0.75, duration=80.0, role="interactive"),
        Job("quiet", work=40.0, silent=True, cpu_weight=512.0),
    ]
    recorder = Recorder()
    made = workload_of(jobs, [HostSpec("n", 8.0, gpus=2)], "t")
    simulation(made, observer=Observer(recorder, 1.0)).run()
    again = recorded_workload([recorder.table()], "again")
    ddp, gpu, note, quiet = again.jobs
    assert (ddp.members, ddp.threads) == (2, 1)
    assert ddp.work == pytest.approx(200.0, rel=0.05)
    assert (gpu.gpu_list, gpu.cpus) == ("0", 1.5)  # the only GPU that was ever seen in use
    assert gpu.device == pytest.approx(1.0, rel=0.1)
    assert (note.role, note.serves) == ("interactive", True)
    assert note.request / (note.request + note.think) == pytest.approx(0.25, rel=0.05)
    assert (quiet.silent, quiet.cpu_weight) == (True, 512.0)
    assert [one.gpus for one in again.hosts] == [1]


def test_a_message_names_ten_of_many_jobs() -> None:
    said: list[str] = []
    rows: list[Row] = []
    for n in range(3):
        host, row = recorded_at(BEGIN, 5.0 * n, 10.0 * n, cpu_seconds=0.1 * n, cpu_weight=2.0)
        ids = [{"container_id": f"{k:064x}", "container_name": f"job-{k:02}"} for k in range(40)]
        rows += [host, *(row | one for one in ids)]
    recorded_workload([to_table(rows)], "t", said.append)
    assert any("job-09 and 30 more all the time" in line for line in said)
    assert max(map(len, said)) < 250
