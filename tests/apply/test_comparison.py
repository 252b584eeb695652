"""What becomes of an update, by the container's settings and the plan's expectations."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest
from helpers.fake_engine import action
from helpers.located_containers import located

from dltools.apply.comparison import compare
from dltools.engine.interface import LocatedContainer
from dltools.plan.realisation.settings import Settings
from dltools.plan.records import Result, Status

PLANNED_AT = datetime(2026, 1, 31, 12, tzinfo=UTC)
HALF = {"NanoCpus": 500_000_000}


def compared(
    there: LocatedContainer, wanted: dict[str, Any], made: Settings | None = None, **expect: Any
) -> Result:
    one = action(wanted, expect=expect)
    found = Result(one.id, Status.SKIPPED, one.container_id, one.container_name)
    return compare(one, found, there, PLANNED_AT, made=made)


def altered(there: LocatedContainer, **changes: Any) -> LocatedContainer:
    return replace(there, container=replace(there.container, **changes))


def test_a_change_is_planned_with_the_settings_before_and_after() -> None:
    result = compared(located(**HALF), {"cpus": 1.5, "cpu_weight": 1024}, cpus=0.5)
    assert result.status is Status.PLANNED
    assert result.before == {"cpus": 0.5, "cpu_weight": 1024}
    assert result.after == {"cpus": 1.5, "cpu_weight": 1024}


@pytest.mark.parametrize("wanted", [{"cpus": 0.5}, {"cpus": 0.501}, {"cpuset": None}, {}], ids=str)
def test_settings_as_wanted_are_unchanged(wanted: dict[str, Any]) -> None:
    assert compared(located(**HALF), wanted, cpus=2.0).status is Status.UNCHANGED


def test_a_quota_of_all_cpus_is_no_quota() -> None:
    assert compared(located(), {"cpus": 4.0}).status is Status.UNCHANGED
    assert compared(located(**HALF), {"cpus": 9.0}).after == {"cpus": None}


@pytest.mark.parametrize(
    ("changes", "status", "error"),
    [
        ({"labels": {"dltools.protect": ""}}, "skipped", "protected by its label dltools.protect"),
        ({"state": "exited"}, "stale", "the container is exited"),
        (
            {"started": datetime(2026, 1, 31, 13, tzinfo=UTC)},
            "stale",
            "the container has restarted since the plan was made",
        ),
    ],
)
def test_why_a_container_is_left_alone(changes: dict[str, Any], status: str, error: str) -> None:
    """A reason that the container gives comes before what is wrong with the settings."""
    result = compared(altered(located(**HALF), **changes), {"cpus": 0.0})
    assert (result.status, result.error) == (status, error)
    assert result.before == result.after == {"cpus": 0.5}


def test_a_paused_container_is_changed() -> None:
    there = altered(located(), state="paused", started=datetime(2026, 1, 31, 11, tzinfo=UTC))
    assert compared(there, {"cpus": 1.5}).status is Status.PLANNED


@pytest.mark.parametrize("expect", [{"cpus": 2.0}, {"cpus": None}, {"memory": 1}], ids=str)
def test_other_settings_than_the_plan_expects_are_stale(expect: dict[str, Any]) -> None:
    result = compared(located(**HALF), {"cpus": 1.5}, **expect)
    assert result.status is Status.STALE
    assert result.error == "its settings have changed since the plan was made"


@pytest.mark.parametrize(
    ("made", "expect", "status"),
    [
        ({"cpus": 0.5}, {"cpus": 2.0}, Status.PLANNED),
        ({"cpus": 0.5}, {"cpus": 2.0, "cpu_weight": 1024}, Status.PLANNED),
        ({"cpus": 0.5}, {"cpus": 2.0, "cpu_weight": 512}, Status.STALE),
        ({"cpus": 1.0}, {"cpus": 2.0}, Status.STALE),
        ({"cpu_weight": 1024}, {"cpus": 2.0}, Status.STALE),
    ],
)
def test_settings_that_this_run_has_made_are_known(
    made: Settings, expect: dict[str, Any], status: Status
) -> None:
    """The plan's sample was taken before they were in force."""
    assert compared(located(**HALF), {"cpus": 1.5}, made, **expect).status is status


def test_a_value_out_of_bounds_fails() -> None:
    result = compared(located(), {"cpu_weight": 1})
    assert result.status is Status.FAILED
    assert result.error == "cpu_weight 1 is not a whole number from 2 to 262144"


def test_a_cpu_list_that_does_not_fit_is_skipped() -> None:
    result = compared(located(), {"cpuset": "0-9"})
    assert result.status is Status.SKIPPED
    assert result.error == "cpuset 0-9: containers can use only CPUs 0-3 here"
