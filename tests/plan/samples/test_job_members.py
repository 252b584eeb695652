"""Jobs of several containers: one place, one class, one share, one turn."""

from functools import partial
from typing import Any

import pytest
from helpers.examples import some_of
from helpers.observed_rows import (
    SHARING,
    at,
    by_name,
    container,
    decisions_of,
    having_read,
    job_id,
    node,
    plan_in_two,
    planner,
    point,
    weights,
)
from hypothesis import given
from hypothesis import strategies as st

from dltools.actions.plans import Action, Op, Plan
from dltools.observations.table import Row
from dltools.plan.realisation.options import Mode

MEETS = "10.0.0.2:29500"


def member(seconds: float, name: str, **more: Any) -> Row:
    fields = {"job": MEETS, "job_containers": 2, "thread_count": 1, "demand_cores": 1.0} | more
    return container(seconds, name, seconds / 2, **fields)


def rows(seconds: int = 40, **more: Any) -> list[Row]:
    """A pair of one thread each, of which both report, beside a training of two."""
    found = []
    for now in range(0, seconds, 2):
        found += [
            {**node(now), "cpu_seconds": 2.0 * now},
            member(now, "ddp-0", **more),
            member(now, "ddp-1"),
            container(now, "cnn", float(now), thread_count=2, demand_cores=2.0),
        ]
        found += [point(now, name, 9.0 / (1 + now), step=now) for name in ("ddp-1", "ddp-0", "cnn")]
    return found


def plan_of(policy: str, mode: Mode | None, table: list[Row]) -> Plan:
    return having_read(planner(policy, mode), table).plan({})


@pytest.mark.parametrize("policy", some_of(SHARING, 3))
def test_members_have_one_turn(policy) -> None:
    found = by_name(plan_of(policy, Mode.ROTATE, rows()))
    assert set(found) == {"ddp-0", "ddp-1", "cnn"}
    assert found["ddp-0"].set == found["ddp-1"].set
    assert found["ddp-0"].set["group"] != found["cnn"].set["group"]
    assert found["ddp-0"].container_id == job_id("ddp-0")
    assert [found[name].job for name in ("ddp-0", "ddp-1", "cnn")] == [MEETS, MEETS, None]
    assert "one of 2 containers of the job 10.0.0.2:29500" in found["ddp-1"].reason


@pytest.mark.parametrize("policy", some_of(SHARING, 3))
@pytest.mark.parametrize("mode", [None, Mode.PRIORITY, Mode.WEIGHT])
def test_members_have_one_weight(policy, mode) -> None:
    found = weights(plan_of(policy, mode, rows()))
    assert found.get("ddp-0") == found.get("ddp-1")


def test_fair_gives_two_jobs_one_half_each_and_members_a_quarter() -> None:
    found = by_name(plan_of("fair", Mode.QUOTA, rows()))
    assert [found[name].set["cpus"] for name in ("ddp-0", "ddp-1", "cnn")] == [0.5, 0.5, 1.0]
    assert weights(plan_of("fair", Mode.WEIGHT, rows())) == {"ddp-0": 512.0, "ddp-1": 512.0}


def test_of_a_metric_that_both_report_one_member_s_counts() -> None:
    made = having_read(planner("flowcon", Mode.QUOTA), rows())
    (host,) = made.hosts.by_name.values()
    job = host.history.containers[f"job:{MEETS}"]
    times = job.progress.metrics["loss"].times
    assert len(times) == len(set(times)) == 19
    assert job.use.samples[-1] == (job.use.samples[-1][0], 36.0)  # of both
    assert (job.use.threads, job.use.cpu.demand, job.in_force.limits.get("cpus")) == (2, 2.0, 4.0)


def test_members_on_two_hosts_are_never_paused() -> None:
    table = []
    for row in rows():
        is_second = row.get("container_name") == "ddp-1"
        table += [{**row, "host": "other"}] if is_second else [row]
        if row["kind"] == "node":
            table.append({**row, "host": "other"})
    found = by_name(plan_of("fair", Mode.ROTATE, table))
    assert set(found) <= {"cnn"}


def test_a_job_of_which_containers_are_missing_is_never_paused() -> None:
    assert "ddp-0" not in by_name(plan_of("fair", Mode.ROTATE, rows(job_containers=3)))
    alone = [row for row in rows() if row.get("container_name") != "ddp-1"]
    assert "ddp-0" not in by_name(plan_of("fair", Mode.ROTATE, alone))


def test_two_jobs_that_give_themselves_one_name_are_never_paused() -> None:
    """Nobody knows which of the four belong together."""
    table = rows()
    for row in rows():
        if row.get("container_name") in ("ddp-0", "ddp-1"):
            name = row["container_name"].replace("ddp", "twin")
            table.append({**row, "container_name": name, "container_id": job_id(name)})
    found = plan_of("fair", Mode.ROTATE, table)
    assert set(by_name(found)) <= {"cnn"}
    named = by_name(plan_of("fair", Mode.WEIGHT, table))
    assert "one of" not in " ".join(one.reason for one in named.values())


@pytest.mark.parametrize("policy", ["fair", "srtf"])
def test_a_service_that_is_updated_is_not_paused_until_its_old_tasks_are_gone(policy) -> None:
    """From 20 s to 30 s the new task runs beside the one that it replaces; the job says two."""
    table = []
    for row in rows(60):
        seconds = (row["time"] - at(0)).total_seconds()
        if row.get("container_name") == "ddp-0" and seconds >= 20:
            new = {**row, "container_name": "ddp-new", "container_id": job_id("ddp-new")}
            if "cpu_seconds" in row:
                new["cpu_seconds"] = row["cpu_seconds"] - 10
            table.append(new)
            if seconds >= 30:
                continue
        table.append(row)

    def members(until: int) -> dict[str, Action]:
        before = [row for row in table if row["time"] < at(until)]
        return by_name(plan_of(policy, Mode.ROTATE, before))

    assert members(20)["ddp-0"].set == members(20)["ddp-1"].set
    during = members(28)
    assert set(during) <= {"cnn"}
    after = members(60)
    assert after["ddp-new"].set == after["ddp-1"].set
    assert after["ddp-new"].set["group"] != after["cnn"].set["group"]


def test_who_protects_one_member_protects_all() -> None:
    table = rows(labels='{"dltools.protect": "true"}')
    assert set(by_name(plan_of("fair", Mode.QUOTA, table))) <= {"cnn"}
    made = having_read(planner("fair", Mode.QUOTA), table)
    assert "protected" in decisions_of(made)["ddp-1"].reason


def test_a_job_goes_on_with_the_members_that_are_left() -> None:
    table = [
        *rows(),
        *(
            row
            for row in rows(60)
            if row["time"] >= at(40) and row.get("container_name") != "ddp-0"
        ),
    ]
    found = by_name(plan_of("fair", Mode.WEIGHT, table))
    assert "ddp-0" not in found
    assert all(action.op is Op.UPDATE for action in found.values())


@given(cut=st.integers(0, 140), policy=st.sampled_from(("flowcon", "fair", "srtf")))
def test_a_state_between_any_two_rows_gives_the_same_plan(cut, policy) -> None:
    table = rows()
    whole = plan_of(policy, Mode.ROTATE, table)
    second = plan_in_two(partial(planner, policy, Mode.ROTATE), table, cut)
    assert (second.actions, second.state) == (whole.actions, whole.state)


@given(
    jobs=st.lists(st.sampled_from([None, "a", "b"]), min_size=1, max_size=8),
    policy=st.sampled_from(("fair", "flowcon")),
)
def test_all_containers_of_a_job_get_the_same(jobs, policy) -> None:
    table: list[Row] = []
    for now in range(0, 20, 2):
        table.append({**node(now), "cpu_seconds": 2.0 * now})
        for number, job in enumerate(jobs):
            more = {"job": job, "thread_count": 2, "demand_cores": 2.0}
            table.append(container(now, f"c{number}", float(now), **more))
            table.append(point(now, f"c{number}", 1 / (1 + now + number), step=now))
    for mode in (Mode.ROTATE, Mode.PRIORITY, Mode.QUOTA, Mode.WEIGHT):
        found = by_name(plan_of(policy, mode, table))
        for job in ("a", "b"):
            names = [f"c{number}" for number, own in enumerate(jobs) if own == job]
            settings = [found[name].set if name in found else None for name in names]
            assert all(one == settings[0] for one in settings)


def test_a_single_plan_covers_the_containers_of_a_job() -> None:
    """dl-apply renews the leases of those that it covers."""
    made = having_read(planner("fair", Mode.WEIGHT), rows())
    covered = made.plan({}, is_single=True).covers
    assert covered == tuple(sorted(map(job_id, ("ddp-0", "ddp-1", "cnn"))))
