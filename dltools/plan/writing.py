"""Plans and results as JSON Lines.

A plan is a `plan` record, its `action` records and an `end` record. A stream may carry many plans;
a live one ends with a `close` record.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from dltools.plan.records import VERSION, Plan, Result


def dump_plan(plan: Plan) -> str:
    """Return a plan as JSON Lines; the same plan is always the same text."""
    records: list[dict[str, Any]] = [
        {
            "kind": "plan",
            "v": VERSION,
            "policy": plan.policy,
            "at": plan.at,
            "params": dict(plan.params),
            "input": dict(plan.input),
            "next_s": plan.next_s,
            "gain": plan.gain,
            "classes": {host: dict(jobs) for host, jobs in plan.classes.items()},
        }
        | ({"live": True} if plan.is_live else {})
        | ({} if plan.lease_s is None else {"lease_s": plan.lease_s})
        | ({} if plan.covers is None else {"covers": list(plan.covers)})
    ]
    records += [
        {
            "kind": "action",
            "id": action.id,
            "op": action.op.value,
            "host": action.host,
            "container": {"id": action.container_id, "name": action.container_name},
            "set": action.set,
            "expect": action.expect,
            "reason": action.reason,
        }
        | ({} if action.to is None else {"to": action.to})
        | ({} if action.met is None else {"met": asdict(action.met)})
        | ({} if action.job is None else {"job": action.job})
        for action in plan.actions
    ]
    state = {"state": dict(plan.state)} if plan.state else {}
    records.append({"kind": "end", "actions": len(plan.actions), **state})
    return "".join(_line(record) for record in records)


def dump_close() -> str:
    """Return the line that ends a live stream in order."""
    return _line({"kind": "close"})


def dump_result(result: Result) -> str:
    """Return a result as one JSON line."""
    return _line(
        {
            "kind": "result",
            "id": result.id,
            "status": result.status.value,
            "container": {"id": result.container_id, "name": result.container_name},
            "before": result.before,
            "after": result.after,
            "error": result.error,
        }
    )


def _line(record: Mapping[str, Any]) -> str:
    return json.dumps(record, ensure_ascii=False, allow_nan=False, separators=(",", ":")) + "\n"
