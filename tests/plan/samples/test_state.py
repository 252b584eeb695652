"""A saved state: the fields by name."""

import json
from pathlib import Path
from typing import Any

import pytest

from dltools.errors import DataError
from dltools.observations.formats.registry import read_table
from dltools.plan.planner import Planner
from dltools.plan.policy import registry
from dltools.plan.policy.parameters import build
from dltools.plan.realisation.options import Mode, QueueParameters, RealisationOptions

ROOT = Path(__file__).parents[3]
RECORDING = ROOT / "samples" / "digits" / "recording.parquet"
NAMES = ("flowcon", "tradl", "specon")


def planner(name: str, saved: dict[str, Any] | None = None) -> Planner:
    """A planner for which no new job explores."""
    policy = registry.get(name, [])
    parameters = build(policy.parameters, {"early": False} if name == "flowcon" else {})
    options = RealisationOptions(Mode.PRIORITY, queue=QueueParameters(explore=0.0))
    return Planner(policy, parameters, options, saved)


def saved_now(name: str) -> dict[str, Any]:
    with RECORDING.open("rb") as stream:
        table = read_table(stream, "recording")
    made = planner(name)
    made.add(table.slice(0, table.num_rows * 2 // 5))
    return json.loads(json.dumps(made.plan({}).state))  # type: ignore[no-any-return]


@pytest.mark.parametrize("name", NAMES)
def test_everything_in_a_state_has_a_name(name) -> None:
    """Lists hold values of one kind: columns, names, numbers; never a record by position."""

    def lists(value: object) -> list[list[Any]]:
        if isinstance(value, dict):
            return [found for one in value.values() for found in lists(one)]
        if isinstance(value, list):
            return [value, *(found for one in value for found in lists(one))]
        return []

    saved = saved_now(name)
    for host in saved["hosts"].values():
        for container in host["history"]["containers"].values():
            for series in container["progress"]["metrics"].values():
                series.pop("curve", None)  # a fit's voters: lists of numbers
    for found in lists(saved):
        kinds = {type(one) for one in found if one not in (None, "NaN", "Infinity", "-Infinity")}
        assert len(kinds) <= 1 or kinds == {int, float}, found


def test_another_version_and_another_policy_are_refused() -> None:
    saved = saved_now("flowcon")
    with pytest.raises(DataError, match=r"state version 1; this dltools reads 4"):
        planner("flowcon", {**saved, "v": 1})
    with pytest.raises(DataError, match=r"the state is of policy 'flowcon', not 'tradl'"):
        planner("tradl", saved)


def test_damage_is_one_error_whatever_is_wrong() -> None:
    (name,) = saved_now("flowcon")["hosts"]
    for field in saved_now("flowcon")["hosts"][name]["history"]:
        damaged = saved_now("flowcon")
        damaged["hosts"][name]["history"][field] = {"": [None]}
        with pytest.raises(DataError, match="damaged state"):
            planner("flowcon", damaged)
    for field in ("history", "layout"):
        damaged = saved_now("flowcon")
        del damaged["hosts"][name][field]
        with pytest.raises(DataError, match="damaged state"):
            planner("flowcon", damaged)
    damaged = saved_now("flowcon")
    damaged["hosts"][name]["layout"]["ids"].pop()
    with pytest.raises(DataError, match="the layout names other containers"):
        planner("flowcon", damaged)
    with pytest.raises(DataError, match="state: line 1"):
        planner("flowcon", {**saved_now("flowcon"), "pending": "{}"})
