"""Records of a valid plan, and how to read changed ones."""

import json
from typing import Any

from dltools.actions.plan_lines import load_plans
from dltools.actions.plans import Plan

HEAD: dict[str, Any] = {
    "kind": "plan",
    "v": 1,
    "policy": "flowcon",
    "at": "2026-01-31T12:00:00.000000Z",
    "params": {"alpha": 0.03},
    "input": {"rows": 120},
    "next_s": 20.0,
}
ACTION: dict[str, Any] = {
    "kind": "action",
    "id": 1,
    "op": "update",
    "host": "node-1",
    "container": {"id": "c" * 64, "name": "job-3"},
    "set": {"cpus": 1.5},
    "expect": {"cpus": 2.0},
    "reason": "growth efficiency 0.012 < alpha 0.03 twice",
}
END: dict[str, Any] = {"kind": "end", "actions": 1, "state": {"containers": {}}}


def encoded(*records: Any) -> list[bytes]:
    return [json.dumps(record).encode() + b"\n" for record in records]


def loaded(*records: Any) -> list[Plan]:
    return list(load_plans(encoded(*records), "plan"))


def without(record: dict[str, Any], key: str) -> dict[str, Any]:
    return {name: value for name, value in record.items() if name != key}
