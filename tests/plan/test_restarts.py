"""Containers that restart, or that an earlier run has left waiting, begin as containers do."""

from typing import Any

import pytest
from helpers.observed_rows import (
    SHARING,
    at,
    container,
    feed,
    having_read,
    node,
    planner,
    point,
    reread,
    sets,
)

from dltools.actions.plans import Plan
from dltools.observations.table import Row
from dltools.plan.realisation.options import Mode


def planned(
    rows: list[Row], policy: str = "flowcon", mode: Mode = Mode.PRIORITY, state: Any = None
) -> Plan:
    return reread(having_read(planner(policy, mode, state), rows).plan({}))


def sample(now: float, *jobs: str, weights: dict[str, float], **more: Any) -> list[Row]:
    rows = [node(now)]
    for name in jobs:
        fields = {"thread_count": 2, "cpu_weight": weights[name]} | more
        rows += [container(now, name, now + 20, **fields), point(now - 0.1, name, 1.0)]
    return rows


WEIGHTS = {"a": 1024.0, "b": 10.0}


SEEMS = {"role": "training", "role_reason": "libtorch in its processes, silent"}


def restarted(now: float, weight: float = 10.0) -> list[Row]:
    """b has restarted a second before, and says nothing."""
    again = container(
        now, "b", 0.5, thread_count=2, cpu_weight=weight, started_at=at(now - 1), **SEEMS
    )
    return [*sample(now, "a", weights=WEIGHTS), again]


@pytest.mark.parametrize("policy", SHARING)
def test_a_restarted_job_does_not_wait_at_its_old_weight(policy) -> None:
    rows = [*sample(2, "a", "b", weights=WEIGHTS), *restarted(4)]
    plan = planned(rows, policy)
    assert sets(plan)["b"] == {"weight": 1024}
    assert plan.actions[-1].reason == (
        "training: has reported before it restarted; runs alone, so that it reports soon; "
        "1 of 2 in the queue"
    )
    assert sets(plan)["a"] == {"weight": 10}


@pytest.mark.parametrize("weight", [10.0, 10.24])  # as the two cgroup versions show it
@pytest.mark.parametrize("policy", SHARING)
def test_an_idle_restarted_job_gets_the_default_weight(policy, weight) -> None:
    idle = container(9, "b", 0.5, thread_count=2, cpu_weight=weight, started_at=at(-60), **SEEMS)
    plan = planned([*sample(9, "a", weights=WEIGHTS), idle], policy)
    assert {action.container_name: action.reason for action in plan.actions} == {
        "b": "training: libtorch in its processes, silent; what containers begin with"
    }


@pytest.mark.parametrize("policy", SHARING)
def test_the_weight_of_what_is_no_training_is_its_owners(policy) -> None:
    other = container(9, "b", 0.5, thread_count=2, cpu_weight=10.0, started_at=at(-60))
    assert "b" not in sets(planned([*sample(9, "a", weights=WEIGHTS), other], policy))


def test_the_state_remembers_that_a_job_had_a_share() -> None:
    first = planned(sample(2, "a", "b", weights=WEIGHTS))
    assert sets(planned(restarted(4), state=first.state))["b"] == {"weight": 1024}
    # Its own weight again: nothing is to be done, and the next restart is seen to as well.
    second = planned(restarted(4, 1024.0), state=first.state)
    assert "b" not in sets(second)
    assert sets(planned(restarted(8), state=second.state))["b"] == {"weight": 1024}


def test_without_a_state_the_weight_of_a_waiting_job_tells() -> None:
    assert sets(planned(restarted(4)))["b"] == {"weight": 1024}
    assert "b" not in sets(planned(restarted(4, 512.0), mode=Mode.WEIGHT))


def test_noop_changes_no_weight_either() -> None:
    assert sets(planned([*sample(2, "a", "b", weights=WEIGHTS), *restarted(4)], "noop")) == {}


def test_a_restarted_job_loses_its_quota() -> None:
    weights = {"a": 1024.0, "b": 1024.0}
    none = {"owner_cpu_weight": 1024.0}
    rows = sample(2, "a", "b", weights=weights, cpu_limit_cores=1.0, **none)
    assert sets(planned(rows, "fair", Mode.QUOTA)) == {}
    again = container(4, "b", 0.1, started_at=at(3), cpu_limit_cores=1.0)
    more = [*sample(4, "a", weights=weights, cpu_limit_cores=2.0, **none), again]
    assert sets(planned([*rows, *more], "fair", Mode.QUOTA)) == {"b": {"cpus": None}}


def test_equal_jobs_take_turns_in_a_stream_of_plans() -> None:
    made = planner("fair", Mode.PRIORITY)
    weights, first = {"a": 1024.0, "b": 1024.0}, []
    for second in range(2, 26, 2):
        plan = feed(made, *sample(second, "a", "b", weights=weights))
        for name, settings in sets(plan).items():
            weights[name] = settings["weight"]
        first.append(max(weights, key=weights.__getitem__))
    assert first == [*"aaa", *"bbb"] * 2
