"""What a report says of users: their hours, worked by hand, and GPU seconds of a recording."""

import pytest
from helpers.observed_rows import at, container, gpu, job_id, node

from dltools.cli.report.tables import IDLE, read_prices
from dltools.errors import ConfigError
from dltools.observations.outcomes import JobResult
from dltools.observations.table import Row, to_table
from dltools.report.observed_run import observed_run
from dltools.report.result_rows import by_group
from dltools.report.timelines import Run


def test_hours_of_users_are_means_over_the_repeats() -> None:
    def results(cpu: float) -> list[JobResult]:
        return [
            JobResult("a", "n", 0.0, finish=9.0, cpu=cpu, gpu=1800.0, waited=360.0, user="ann"),
            JobResult("b", "n", 0.0, cpu=3600.0, exit_code=1, user="ann"),
            JobResult("c", "n", 0.0, cpu=7200.0),
        ]

    nothing = dict.fromkeys(("gpu_hours", "joules", "waited_hours", "finished", "failed"), 0)
    nobody = {"run": "run", "user": None, "job_count": 1, "cpu_hours": 2} | nothing
    some = {"gpu_hours": 0.5, "waited_hours": 0.1, "finished": 1, "failed": 1}
    ann = nobody | {"user": "ann", "job_count": 2, "cpu_hours": 3} | some
    found = by_group({"run": [results(3600.0), results(10800.0)]}, "user")
    assert found == [nobody, ann]


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
    ended = {"kind": "event", "event": "exit", "container_id": job_id("bob's"), "exit_code": 1}
    rows.append({"time": at(45), "host": "node", **ended})
    run = observed_run([to_table(rows)], "run", "file")
    found = {one.name: one for one in run.jobs}
    assert (found["ann's"].user, found["bob's"].user) == ("ann", "bob")
    assert found["ann's"].gpu == pytest.approx(40 * 0.5 + 30 * 0.25)
    assert found["bob's"].waited == pytest.approx(20)
    assert found["bob's"].exit_code == 1


def energy(seconds: float, joules: float | None, number: int | str = 0) -> Row:
    """The row of a GPU as a whole."""
    uuid = number if isinstance(number, str) else f"GPU-{number}"
    whole: Row = {"time": at(seconds), "host": "node", "kind": "gpu", "gpu_uuid": uuid}
    return whole | {"gpu_energy_joules": joules}


def recorded(*samples: tuple[float, float | None, dict[str, float | None]]) -> Run:
    """Two jobs on one GPU: at each time its joules, and what each job has used of it since."""
    rows = []
    for t, joules, uses in samples:
        rows += [node(t), energy(t, joules), container(t, "a", t), container(t, "b", t)]
        rows += [gpu(t, name, 0, use) for name, use in uses.items()]
    return observed_run([to_table(rows)], "run", "file")


def test_energy_is_divided_by_use_and_idle_power_is_the_hosts() -> None:
    run = recorded(
        (0, 1000.0, {"a": 0.5, "b": 0.5}),
        (10, 1500.0, {"a": 0.0, "b": 0.0}),  # 50 W idle
        (20, 4000.0, {"a": 0.75, "b": 0.25}),  # 250 W
        (30, 7000.0, {"b": 0.5}),  # 300 W
    )
    joules = {one.name: one.joules for one in run.jobs}
    assert joules == {
        "a": pytest.approx(0.75 * (2500 - 500)),
        "b": pytest.approx(0.25 * (2500 - 500) + 2500),
    }
    assert run.idle_joules == pytest.approx(3 * 500)
    assert sum(joules.values()) + run.idle_joules == pytest.approx(6000)


def test_energy_that_cannot_be_divided_is_nobodys() -> None:
    """Somebody's use is unknown; the counter is unknown, or begins anew; and a GPU that was never
    seen idle has no idle power."""
    run = recorded(
        (0, 1000.0, {}),
        (10, 2000.0, {"a": 0.5, "b": None}),
        (20, None, {"a": 0.5}),
        (30, 500.0, {"a": 0.5}),
        (40, 900.0, {"a": 0.5}),
    )
    assert [one.joules for one in run.jobs] == [pytest.approx(400), 0]
    assert run.idle_joules == pytest.approx(1000)


def test_the_energy_of_mig_instances_is_counted_for_nobody() -> None:
    """Each shows the counter of the whole GPU."""
    rows = []
    for t in (0, 10):
        rows += [node(t), container(t, "a", t), gpu(t, "a", 0, 0.5, gpu_uuid="MIG-1")]
        rows += [energy(t, 100.0 * t, "MIG-1"), energy(t, 100.0 * t, "MIG-2")]
    run = observed_run([to_table(rows)], "run", "file")
    assert (run.jobs[0].joules, run.idle_joules) == (0, 0)


def test_members_of_a_job_are_one_row() -> None:
    results = [
        JobResult("rank0", "n", 0.0, cpu=3600.0, joules=5.0, job="ddp"),
        JobResult("rank1", "m", 0.0, cpu=7200.0, joules=7.0, job="ddp"),
        JobResult("alone", "n", 0.0, cpu=0.0),
    ]
    rows = by_group({"run": [results]}, "job")
    shown = [(row["name"], row["job_count"], row["cpu_hours"], row["joules"]) for row in rows]
    assert shown == [("alone", 1, 0, 0), ("ddp", 2, 3, 12)]


def test_prices_make_a_cost(tmp_path) -> None:
    file = tmp_path / "prices.toml"
    file.write_text("cpu_hour = 0.04\ngpu_hour = 2.5\nkwh = 0.3\n")
    rows = [
        {"cpu": 7200.0, "gpu": 3600.0, "joules": 3.6e6},
        {"cpu_hours": 1.0, "gpu_hours": 0.0, "joules": 0.0},
        {"user": IDLE, "joules": 7.2e6},
    ]
    found = [row["cost"] for row in read_prices(file).added(rows)]
    assert found == pytest.approx([0.08 + 2.5 + 0.3, 0.04, 0.6])


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("cpus = 1", "unknown price cpus; known: cpu_hour, gpu_hour, kwh"),
        ("kwh = -1", "kwh is not a price: -1"),
        ("kwh = nan", "kwh is not a price: nan"),
        ("kwh = true", "kwh is not a price: True"),
        ("kwh =", "Invalid"),
    ],
)
def test_a_file_without_prices_is_refused(tmp_path, text, said) -> None:
    file = tmp_path / "prices.toml"
    file.write_text(text)
    with pytest.raises(ConfigError, match=said):
        read_prices(file)
