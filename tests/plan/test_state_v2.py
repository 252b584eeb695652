"""States of version 2: each field by position gets its name."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from dltools.plan.state_v2 import classes, upgraded

SERIES = {"peak": 1.0, "points": [[100, 1.0, 10], [200, "nan", None]]}
CONTAINER = {
    "name": "job", "host": "h", "arrived": 100, "started": None, "state": "running", "cpus": 2.0,
    "weight": 1024.0, "threads": 1, "cpuset": "0-1", "met_first": None, "met_final": None,
    "epoch": None, "step": 10, "turn_s": 2.0, "held": True, "labels": {"a": "b"},
    "samples": [[100, 0.5], [200, 1.5]],
    "metrics": {
        "loss": {**SERIES, "learning": [[0.5], [1.0], 1, 1, 10], "fitted": 1, "curve": None},
        "accuracy": SERIES,
    },
}  # fmt: skip
STATE: dict[str, Any] = {
    "v": 2, "policy": "flowcon", "newest": 300, "memory": {"x": 1},
    "hosts": {"h": {
        "cpus": 2.0, "cpuset": "0-1", "settled": 200,
        "tracks": {"c": CONTAINER},
        "rounds": [20.0, 200, ["c@100"]],
        "grants": {"c": [0.5, "NL", "why", "G", "soon", False, 1], "early": [None, "-", "why"]},
        "orders": [["migrate", "c", "because", "other"]],
        "gain": "much",
        "line": {"places": {"c@100": [True, 150, False]}, "due": 400},
        "layout": [["c"], [None], ["{}"]],
        "rest": {
            "time": 300, "size": 2.0, "rows": {"container_id": ["c"], "cpuset": [None]},
            "points": [["c", "loss", 250, 0.5, 11, 2.0], ["c", "loss", 260, 0.4, 12, None]],
        },
    }},
}  # fmt: skip


def without(*path: str) -> dict[str, Any]:
    """The state without what the path leads to."""
    state = copy.deepcopy(STATE)
    inner = state
    for key in path[:-1]:
        inner = inner[key]
    del inner[path[-1]]
    return state


def host_of(state: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = upgraded(state)["hosts"]["h"]
    return found


def test_the_head_stays_but_for_its_version() -> None:
    found = upgraded(STATE)
    assert {name: value for name, value in found.items() if name != "hosts"} == {
        "v": 3, "policy": "flowcon", "newest": 300, "memory": {"x": 1},
    }  # fmt: skip


def test_a_host_s_fields_get_their_names_of_today() -> None:
    host = host_of(STATE)
    assert set(host) == {"cpus", "cpuset", "sampled_at", "containers", "timer", "allocations",
                         "actions", "gain", "queue", "layout", "remainder"}  # fmt: skip
    assert (host["cpus"], host["cpuset"], host["sampled_at"], host["gain"]) == (
        2.0, "0-1", 200, "much",
    )  # fmt: skip
    assert host["timer"] == {"interval_s": 20.0, "last": 200, "run_ids": ["c@100"]}
    assert host["actions"] == [
        {"kind": "migrate", "job_id": "c", "reason": "because", "to": "other"}
    ]
    assert host["queue"] == {
        "positions": {"c@100": {"first": True, "since": 150, "urgent": False}}, "due": 400,
    }  # fmt: skip
    assert host["layout"] == {"ids": ["c"], "started": [None], "labels": ["{}"]}


def test_an_allocation_may_lack_the_fields_that_came_later() -> None:
    assert host_of(STATE)["allocations"] == {
        "c": {"share": 0.5, "job_class": "NL", "reason": "why", "signal": "G",
              "prediction": "soon", "unlimited": False, "rank": 1},
        "early": {"share": None, "job_class": "-", "reason": "why"},
    }  # fmt: skip


def test_a_container_s_columns_get_their_names() -> None:
    found = host_of(STATE)["containers"]["c"]
    assert "held" not in found
    assert (found["managed"], found["turn_s"], found["labels"]) == (True, 2.0, {"a": "b"})
    assert found["samples"] == {"times": [100, 200], "cpu_seconds": [0.5, 1.5]}
    columns = {"times": [100, 200], "values": [1.0, "nan"], "steps": [10, None], "peak": 1.0}
    assert found["metrics"] == {
        "accuracy": columns,
        "loss": {
            **columns, "fitted": 1, "curve": None,
            "learning": {"works": [0.5], "values": [1.0], "stride": 1, "seen": 1, "last_step": 10},
        },
    }  # fmt: skip


def test_a_remainder_s_points_become_columns() -> None:
    assert host_of(STATE)["remainder"] == {
        "time": 300, "size": 2.0,
        "rows": {"turn_seconds": [None], "container_id": ["c"], "cpuset": [None]},
        "points": {
            "container_id": ["c", "c"], "metric": ["loss", "loss"], "time": [250, 260],
            "value": [0.5, 0.4], "step": [11, 12], "epoch": [2.0, None],
        },
    }  # fmt: skip


def test_early_states_have_no_queue_no_turns_and_no_mark_of_a_share() -> None:
    assert host_of(without("hosts", "h", "line"))["queue"] == {"positions": {}, "due": None}
    for name, field, expected in (("held", "managed", False), ("turn_s", "turn_s", None)):
        state = without("hosts", "h", "tracks", "c", name)
        assert host_of(state)["containers"]["c"][field] is expected


@pytest.mark.parametrize(
    "path",
    [("policy",), ("newest",), ("memory",), ("hosts",)]
    + [("hosts", "h", name) for name in STATE["hosts"]["h"] if name != "line"]
    + [("hosts", "h", "tracks", "c", name) for name in ("samples", "metrics")],
    ids=".".join,
)
def test_other_fields_may_not_be_missing(path: tuple[str, ...]) -> None:
    with pytest.raises(KeyError):
        upgraded(without(*path))


@pytest.mark.parametrize(
    ("field", "value"),
    [("rounds", [20.0, 200]), ("orders", [["migrate", "c"]]), ("layout", [["c"], [None]]),
     ("line", {"places": {"c@100": [True]}, "due": None})],
)  # fmt: skip
def test_a_record_of_another_length_is_refused(field: str, value: Any) -> None:
    state = copy.deepcopy(STATE)
    state["hosts"]["h"][field] = value
    with pytest.raises(ValueError, match=r"shorter|not enough values"):
        upgraded(state)


def test_the_state_of_an_early_plan_says_the_classes() -> None:
    assert list(classes(STATE)) == [("h", "job", "NL")]  # "early" has left
    state = copy.deepcopy(STATE)
    for allocation, found in (([0.5], []), ([0.5, "NL"], [("h", "job", "NL")]), (None, [])):
        state["hosts"]["h"]["grants"] = {"c": allocation}
        assert list(classes(state)) == found
    assert list(classes({})) == []
    assert list(classes({"hosts": {"h": {"tracks": None, "grants": None}}})) == []
