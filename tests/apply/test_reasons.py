"""Why actions are not carried out."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from helpers.fake_engine import HOST, ID, NAME, FakeEngine, action
from helpers.located_containers import container

from dltools.apply.reasons import GONE, has_processes, missing, refusal, unsupported
from dltools.engine.interface import Engine
from dltools.plan.records import Op, Result, Status


@pytest.mark.parametrize("op", [Op.UPDATE, Op.PAUSE, Op.UNPAUSE, Op.ROTATE])
def test_supported_actions(op: Op) -> None:
    assert unsupported(action({"cpus": 1, "cpu_weight": 2, "cpuset": "0"}, op), HOST) is None


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"host": "b"}, f"the action is for host b, and this engine is on host {HOST}"),
        ({"set": {"memory": 1, "gpus": 2, "cpus": 1}}, "dl-apply cannot set memory, gpus"),
    ],
)
def test_unsupported_actions(changes: dict[str, Any], reason: str) -> None:
    assert unsupported(action(**({"wanted": {"cpus": 1}} | changes)), HOST) == reason


def test_a_turn_has_settings_of_its_own() -> None:
    assert unsupported(action({"group": 0, "turn_s": 1.0}, Op.ROTATE), HOST) is None


@pytest.mark.parametrize(
    ("state", "expected"),
    [("running", True), ("paused", True), ("exited", False), ("created", False), ("dead", False)],
)
def test_which_states_have_processes(state: str, expected: bool) -> None:
    assert has_processes(container(state=state)) is expected


@pytest.mark.parametrize(
    ("started", "status"), [(-1, None), (1, Status.STALE), (30 * 60, None)], ids=str
)
def test_a_container_that_started_in_the_future_tells_of_the_clock_alone(
    started: float, status: Status | None
) -> None:
    """Times in seconds from when the plan was made: half a minute ago."""
    planned = datetime.now(UTC) - timedelta(seconds=30)
    there = container(state="running", started=planned + timedelta(seconds=started))
    found = refusal(Result(1, Status.SKIPPED, ID, NAME), there, planned)
    assert (found and found.status) == status


def test_a_missing_container_was_replaced_or_is_gone(
    engine: Engine, fake_engine: FakeEngine
) -> None:
    replaced = action({}, container_id="0" * 64)
    reason = "container ffffffffffff has replaced it since the plan was made"
    assert missing(engine, replaced) == reason
    assert missing(engine, action({}, container_id="0" * 64, container_name="other")) == GONE
    fake_engine.faults[f"GET {NAME}/json"] = 500
    assert missing(engine, replaced) == GONE
