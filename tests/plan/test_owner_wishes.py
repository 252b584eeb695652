"""Whose the limits are that samples show, and that plans keep to the owner's."""

from __future__ import annotations

from typing import Any

import pytest
from helpers.observed_rows import container, decisions_of, node, planner_of, point, reread
from helpers.recorded_hosts import A, begin, new, read

from dltools.observations.table import Row, to_table
from dltools.plan.owner_wishes import after_plan, first_seen, limits_of, told
from dltools.plan.planner import Planner
from dltools.plan.policy.fair import FAIR
from dltools.plan.policy.owner import UNKNOWN, Owner
from dltools.plan.policy.parameters import build
from dltools.plan.realisation.mode import Mode, QueueParameters, RealisationOptions

ASKED = {"owner_cpu_limit_cores": 0.5, "owner_cpu_weight": 2048.0, "owner_cpuset": "1"}
NOTHING = {"owner_cpu_weight": 1024.0}


def wishes(owner: Owner) -> tuple[float | None, float, str | None]:
    return owner.cpus, owner.ratio, owner.cpuset


def owner_after(*changes: dict[str, Any], managed: bool = False) -> Owner:
    """What is known of an owner after samples with these columns."""
    host = new()
    for number, columns in enumerate(changes):
        begin(host, node(number * 5), container(number * 5, "a", number * 2.0, **columns))
        read(host, 1)
        host.history.containers[A].managed = managed
    return host.history.containers[A].owner


def test_the_columns_tell_what_the_owner_asked_for() -> None:
    assert wishes(owner_after(ASKED)) == (0.5, 2.0, "1")
    assert wishes(owner_after({**NOTHING, "cpu_limit_cores": 0.5})) == (None, 1.0, None)
    assert wishes(owner_after(ASKED, NOTHING)) == (None, 1.0, None)
    assert wishes(owner_after(ASKED, {})) == (0.5, 2.0, "1")  # nothing is known at that time


@pytest.mark.parametrize("broken", [-1.0, 0.0, float("inf"), float("nan")])
def test_what_is_no_limit_is_none(broken: float) -> None:
    found = {"owner_cpu_limit_cores": broken, "owner_cpu_weight": 512.0, "owner_cpuset": "none"}
    assert wishes(owner_after(found)) == (None, 0.5, None)
    assert limits_of(None, broken, "") == {"cpus": None, "cpu_weight": 1024.0, "cpuset": None}


def test_without_the_columns_the_first_limits_are_the_owner_s() -> None:
    seen = {"cpu_limit_cores": 0.5, "cpuset": "0", "cpu_weight": 10.0}
    assert wishes(owner_after(seen)) == (0.5, 1.0, "0")
    assert wishes(owner_after({}, seen)) == (None, 1.0, None)
    assert wishes(owner_after({"cpu_limit_cores": 2.0, "cpuset": "0-1"})) == (None, 1.0, None)


def test_a_container_that_restarts_has_the_owner_that_it_had() -> None:
    host = new()
    begin(host, node(0), container(0, "a", 0.0, cpu_limit_cores=0.5))
    read(host, 1)
    host.history.containers[A].managed = True
    again = container(5, "a", 0.0, cpu_limit_cores=0.2)
    again["started_at"] = again["time"]
    begin(host, node(5), again)
    read(host, 1)
    assert wishes(host.history.containers[A].owner) == (0.5, 1.0, None)


def test_what_a_plan_has_set_is_no_wish_of_the_owner() -> None:
    """Where dl-probe cannot read the journal, it takes what is in force for the owner's."""
    owner = told(UNKNOWN, limits_of(1.5, 1024, None), limits_of(1.5, 1024, None))
    for cpus in (0.4, 0.8):
        owner = after_plan(owner, {"cpus": cpus})
    for ours in (0.4, 0.8):  # also the one before the last, while that is being applied
        seen = limits_of(ours, 1024, None)
        assert wishes(told(owner, seen, seen)) == (1.5, 1.0, None)
    theirs = limits_of(0.6, 2048, None)
    assert wishes(told(owner, theirs, theirs)) == (0.6, 2.0, None)
    none = limits_of(None, 1024, None)
    assert wishes(told(after_plan(owner, {"cpus": None}), none, none)) == (None, 1.0, None)
    # The journal says it: it is not what is in force.
    assert wishes(told(owner, limits_of(0.4, 1024, None), limits_of(0.8, 1024, None))) == (
        0.4, 1.0, None,
    )  # fmt: skip


def test_few_values_are_remembered() -> None:
    owner = UNKNOWN
    for number in range(20):
        owner = after_plan(owner, {"cpus": number / 10, "turn_s": 5.0})
    assert owner.planned == {"cpus": (1.4, 1.5, 1.6, 1.7, 1.8, 1.9)}
    assert after_plan(owner, {"cpus": 1.9}) is owner
    assert first_seen(owner, limits_of(None, None, None), 2.0).planned == owner.planned


def rows(**columns: Any) -> list[Row]:
    """Two jobs that report, sampled three times; the first has these columns."""
    found = []
    for number in range(3):
        now = number * 10.0
        found += [
            node(now),
            container(now, "a", now, thread_count=1, **{"cpuset": "0-1"} | columns),
            container(now, "b", now, thread_count=1, cpuset="0-1", **NOTHING),
            *(point(now, name, 1 / (number + 1), step=number) for name in "ab"),
        ]  # fmt: skip
    return found


def settings(found: list[Row], mode: Mode, owners: str = "respect") -> dict[str, Any]:
    options = RealisationOptions(mode, queue=QueueParameters(owners=owners))
    made = Planner(FAIR, build(FAIR.parameters, {}), options)
    made.add(to_table(found))
    return {one.container_name: dict(one.set) for one in made.plan({}).actions}


IN_FORCE = {"cpu_limit_cores": 0.5, "cpu_weight": 2048.0, "cpuset": "1"}


@pytest.mark.parametrize("mode", [Mode.QUOTA, Mode.WEIGHT, Mode.CORES, Mode.PRIORITY])
def test_what_the_owner_has_is_no_action(mode: Mode) -> None:
    made = settings(rows(**IN_FORCE, **ASKED), mode)
    assert "a" not in made
    assert made.get("b") == {
        Mode.QUOTA: {"cpus": 1.0}, Mode.CORES: {"cpuset": "0"},
    }.get(mode)  # fmt: skip


@pytest.mark.parametrize(
    ("mode", "ignored"),
    [(Mode.QUOTA, {"cpus": 1.0}), (Mode.WEIGHT, {"cpu_weight": 1024.0}),
     (Mode.CORES, {"cpuset": "0"})],
)  # fmt: skip
def test_owners_can_be_ignored(mode: Mode, ignored: dict[str, Any]) -> None:
    assert settings(rows(**IN_FORCE, **ASKED), mode, "ignore")["a"] == ignored


def test_ours_in_force_is_taken_back_to_the_owner_s() -> None:
    ours = {"cpu_limit_cores": 0.1, "cpu_weight": 10.0, "cpuset": "0"}
    found = rows(**ours, **ASKED)
    assert settings(found, Mode.QUOTA)["a"] == {"cpus": 0.5}
    assert settings(found, Mode.WEIGHT)["a"] == {"cpu_weight": 2048.0}
    assert settings(found, Mode.CORES)["a"] == {"cpuset": "1"}


def test_a_quota_of_an_unknown_owner_is_not_raised() -> None:
    found = rows(cpu_limit_cores=0.5)
    assert "a" not in settings(found, Mode.QUOTA)
    assert settings(found, Mode.QUOTA, "ignore")["a"] == {"cpus": 1.0}
    (decision,) = (one for one in decisions_of(planner_of(found, FAIR)).values() if one.name == "a")
    assert "its owner asked for 0.5 CPUs at most" in decision.reason


def test_the_state_hands_on_what_the_owner_asked_for() -> None:
    found = rows(**IN_FORCE, **ASKED)
    first = planner_of(found, FAIR)
    later = [
        node(30.0),
        container(30.0, "a", 30.0, thread_count=1, cpu_limit_cores=0.1, cpuset="1"),
        container(30.0, "b", 30.0, thread_count=1, cpuset="0-1", cpu_limit_cores=1.0),
        point(30.0, "a", 0.2, step=4),
        point(30.0, "b", 0.2, step=4),
    ]
    saved = reread(first.plan({})).state
    second = Planner(FAIR, build(FAIR.parameters, {}), RealisationOptions(Mode.QUOTA), saved)
    second.add(to_table(later))
    assert {one.container_name: one.set for one in second.plan({}).actions} == {"a": {"cpus": 0.5}}
