"""Plans for many hosts: what a policy sees of a cluster, and how the time grows."""

import gc
import itertools
import math
import statistics
import time
from collections.abc import Iterable, Mapping
from typing import Any

import pytest
from helpers.examples import repeated
from helpers.observed_rows import container, node, point

from dltools.actions.plan_lines import dump_plan
from dltools.actions.plans import Op, Plan
from dltools.observations.table import Row, to_table
from dltools.plan.planner import Planner
from dltools.plan.policy.specon import SPECON, Parameters
from dltools.plan.realisation.options import RealisationOptions


def rows_of(host: str, jobs: int, number: int) -> list[Row]:
    """A host's sample of this number, every 10 s: of its jobs every third has converged."""
    now = 10.0 * number
    rows = [node(now, 16.0, host)]
    for job in range(jobs):
        name, more = f"{host}-job-{job}", {"host": host, "cpu_limit_cores": 16.0, "thread_count": 2}
        rows.append(container(now, name, 8.0 * now / jobs, **more))
        speed = 0.1 if job % 3 else 2.0
        for step in range(2 * number, 2 * number + 2) if number else ():
            time, value = now - 5 + 4 * (step % 2), math.exp(-speed * step)
            rows.append(point(time, name, value, host=host, step=step))
    return rows


def sample(hosts: Iterable[int], jobs: int, number: int) -> list[Row]:
    """A sample of all hosts; every tenth is idle."""
    rows = (rows_of(f"host-{host:04d}", jobs if host % 10 else 0, number) for host in hosts)
    return list(itertools.chain.from_iterable(rows))


def planner(**given: Any) -> Planner:
    return Planner(SPECON, Parameters(**given), RealisationOptions())


def planned(made: Planner, rows: list[Row]) -> Plan:
    """The plan for a sample that arrives in a stream."""
    made.add(to_table(rows))
    made.complete()
    plan = made.plan({})
    made.forget_actions()
    return plan


def moves(plan: Plan) -> list[tuple[str, str | None]]:
    return [(one.container_name, one.to) for one in plan.actions if one.op is Op.MIGRATE]


def carried_out(rows: list[Row], done: Mapping[str, str | None]) -> list[Row]:
    """The rows once jobs run on other hosts, in containers of another id."""
    return [
        row | {"host": host, "container_id": str(row["container_id"])[::-1]}
        if (host := done.get(str(row.get("container_name"))))
        else row
        for row in rows
    ]


@pytest.mark.slow
def test_a_cluster_moves_one_job_at_a_time_and_none_twice() -> None:
    made, done, times = planner(pause=0.0), {}, []
    for number in range(25):
        new = moves(planned(made, carried_out(sample(range(11), 6, number), done)))
        assert len(new) <= 1
        for name, to in new:
            assert name not in done
            done[name] = to
            times.append(number)
    assert len(times) >= 5
    assert all(later - before >= 3 for before, later in itertools.pairwise(times))
    assert set(list(done.values())[:2]) == {"host-0000", "host-0010"}  # the idle ones, at first


def test_a_migration_that_is_not_carried_out_is_ordered_again_later() -> None:
    made, found = planner(pause=0.0), []
    for number in range(12):
        found += [(number, name) for name, _ in moves(planned(made, sample([0, 1], 2, number)))]
    names = [name for _, name in found]
    again = found[names.index(names[0], 1)]
    assert again[0] - found[0][0] >= 6  # twice the cool-down


def test_a_host_that_falls_idle_pulls_a_job() -> None:
    made, found = planner(pause=0.0), []
    for number in range(12):
        rows = sample([1, 2, 3], 4, number)
        if number >= 6:  # its jobs have ended
            rows = [row for row in rows if row["host"] != "host-0003" or row["kind"] == "node"]
        found += moves(planned(made, rows))
    assert found and found[-1][1] == "host-0003"


def test_a_host_that_is_not_reached_is_not_taken_for_idle() -> None:
    made, found = planner(pause=0.0), []
    for number in range(12):
        rows = sample([1, 2, 3], 4, number)
        if number >= 2:  # only a gap is known of it
            rows = [row for row in rows if row["host"] != "host-0003"]
            lost = {"cpu_count": None, "gap": "no sample: no answer within 10 s"}
            rows.append(node(10.0 * number, host="host-0003") | lost)
        found += moves(planned(made, rows))
    assert "host-0003" not in {to for _, to in found}
    assert not any(name.startswith("host-0003") for name, _ in found[1:])


def test_the_reason_of_a_migration_has_its_gain_and_cost() -> None:
    made = planner(pause=5.0)
    for number in range(12):
        for action in planned(made, sample([0, 1], 4, number)).actions:
            if action.op is Op.MIGRATE:
                assert "it gains" in action.reason and "and costs 5" in action.reason
                return
    pytest.fail("no job was moved")


def seconds_for(hosts: int, jobs: int) -> tuple[float, Plan]:
    """The median time for a plan, its text with the state included, and the last plan."""
    made, took = planner(), []
    for number in range(6):
        table = to_table(sample(range(hosts), jobs, number))
        gc.collect()
        gc.disable()  # as dl-plan does
        begun = time.process_time()
        made.add(table)
        made.complete()
        plan = made.plan({})
        dump_plan(plan)
        took.append(time.process_time() - begun)
        gc.enable()
        made.forget_actions()
    return statistics.median(took[1:]), plan


@pytest.mark.slow
def test_the_time_of_a_plan_grows_with_the_number_of_containers() -> None:
    hosts = repeated(15, 250)
    small, _ = seconds_for(hosts, 20)
    large, plan = seconds_for(4 * hosts, 22)  # a tenth is idle
    print(f"{hosts} hosts: {small:.2f} s, {4 * hosts} hosts: {large:.2f} s")
    assert len(plan.classes) == 0.9 * 4 * hosts
    assert large < 8 * small  # a square would be sixteen times as much
