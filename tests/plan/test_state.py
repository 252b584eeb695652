"""A saved state: the fields by name."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from dltools.errors import DataError
from dltools.observations.formats.registry import read_table
from dltools.plan.planner import Planner
from dltools.plan.policy import registry
from dltools.plan.policy.parameters import build
from dltools.plan.realisation.mode import Mode, QueueParameters, RealisationOptions
from dltools.plan.writing import dump_plan

ROOT = Path(__file__).parents[2]
RECORDING = ROOT / "samples" / "digits" / "recording.parquet"
NAMES = ("flowcon", "tradl", "specon")


def planner(name: str, saved: dict[str, Any] | None = None) -> Planner:
    """A planner for which no new job explores."""
    policy = registry.get(name, [])
    parameters = build(policy.parameters, {"early": False} if name == "flowcon" else {})
    options = RealisationOptions(Mode.PRIORITY, queue=QueueParameters(explore=0.0))
    made = Planner(policy, parameters, options, saved)
    made.watch_others()
    return made


def second_part_planned(name: str, saved: dict[str, Any]) -> str:
    """Return the plan after the rows that followed the saved state: two fifths of all."""
    with RECORDING.open("rb") as stream:
        table = read_table(stream, "recording")
    made = planner(name, saved)
    made.add(table.slice(table.num_rows * 2 // 5))
    return dump_plan(made.plan({}))


def saved_now(name: str) -> dict[str, Any]:
    with RECORDING.open("rb") as stream:
        table = read_table(stream, "recording")
    made = planner(name)
    made.add(table.slice(0, table.num_rows * 2 // 5))
    return json.loads(json.dumps(made.plan({}).state))  # type: ignore[no-any-return]


@pytest.mark.parametrize("name", NAMES)
def test_everything_in_a_state_has_a_name(name: str) -> None:
    """Lists hold values of one kind: columns, names, numbers; never a record by position."""

    def lists(value: object) -> list[list[Any]]:
        if isinstance(value, dict):
            return [found for one in value.values() for found in lists(one)]
        if isinstance(value, list):
            return [value, *(found for one in value for found in lists(one))]
        return []

    saved = saved_now(name)
    for host in saved["hosts"].values():
        for container in host["containers"].values():
            for series in container["metrics"].values():
                series.pop("curve", None)  # a fit's voters: pairs of numbers
    for found in lists(saved):
        kinds = {
            type(value) for value in found if value not in (None, "NaN", "Infinity", "-Infinity")
        }
        assert len(kinds) <= 1 or kinds == {int, float}, found


def test_an_early_state_of_version_3_lacks_what_openmp_does() -> None:
    saved = saved_now("flowcon")
    for host in saved["hosts"].values():
        for one in (host["remainder"]["rows"], *host["containers"].values()):
            assert one.pop("openmp_runtime") in (None, [None] * 4)
            assert one.pop("openmp_settings") in (None, [None] * 4)
    assert second_part_planned("flowcon", saved) == second_part_planned(
        "flowcon", saved_now("flowcon")
    )


def test_an_early_state_of_version_3_has_the_largest_value_of_a_series_alone() -> None:
    saved = saved_now("flowcon")
    for host in saved["hosts"].values():
        for one in host["containers"].values():
            for series in one["metrics"].values():
                low, high = (float(series.pop(name)) for name in ("low", "high"))
                series["peak"] = max(high, -low)
                assert series.pop("first") is not None
                del series["not_finite"]
    *actions, _ = second_part_planned("flowcon", saved).splitlines()
    *expected, _ = second_part_planned("flowcon", saved_now("flowcon")).splitlines()
    assert actions == expected  # the state in the last line has no first value


def test_another_version_and_another_policy_are_refused() -> None:
    saved = saved_now("flowcon")
    with pytest.raises(DataError, match=r"state version 4; this dltools reads 3"):
        planner("flowcon", {**saved, "v": 4})
    with pytest.raises(DataError, match=r"the state is of policy 'flowcon', not 'tradl'"):
        planner("tradl", saved)


def test_a_state_from_before_settings_were_watched_is_read() -> None:
    saved = saved_now("flowcon")
    for host in saved["hosts"].values():
        assert host.pop("watched")
    planner("flowcon", saved)


def test_damage_is_one_error_whatever_is_missing() -> None:
    (host,) = saved_now("flowcon")["hosts"]
    for field in saved_now("flowcon")["hosts"][host].keys() - {"watched"}:
        damaged = saved_now("flowcon")
        del damaged["hosts"][host][field]
        with pytest.raises(DataError, match="damaged state"):
            planner("flowcon", damaged)
