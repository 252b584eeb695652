"""A planner's state as JSON values: what the next plan needs to continue where this one ended.

What is remembered of hosts and containers is saved field by field, as
`dltools.notation.saved_values` says; the rows that go before the next table, as JSON Lines.
"""

from __future__ import annotations

import io
from collections.abc import Mapping
from dataclasses import dataclass
from operator import itemgetter
from typing import TYPE_CHECKING, Any

from dltools.errors import DataError
from dltools.notation.saved_values import from_json, to_json
from dltools.observations.formats.jsonl import encode
from dltools.observations.formats.registry import read_table
from dltools.observations.schema import arrow_schema
from dltools.observations.table import to_table
from dltools.plan.policy.interface import State
from dltools.plan.samples.recorded_host import RecordedHost

if TYPE_CHECKING:
    import pyarrow as pa

VERSION = 4


@dataclass(frozen=True, slots=True)
class SavedState:
    """The state of a planner: its version, the policy, the newest time read (microseconds), what
    the policy remembers, the hosts, and the rows that are `pending`, as text."""

    v: int
    policy: str
    newest: int | None
    memory: State
    hosts: Mapping[str, RecordedHost]
    pending: str = ""

    def pending_rows(self) -> pa.Table:
        """Return the pending rows as a table. Raises `DataError`."""
        if not self.pending:
            return arrow_schema().empty_table()
        return read_table(io.BytesIO(self.pending.encode()), "state")


def save(
    newest: int | None,
    memory: State,
    hosts: Mapping[str, RecordedHost],
    pending: pa.Table,
    policy: str,
) -> dict[str, Any]:
    """Return the state of a planner of a policy as JSON values."""
    rows = to_table(sorted(pending.to_pylist(), key=itemgetter("host")))  # whatever came first
    saved_state = SavedState(VERSION, policy, newest, memory, hosts, encode(rows).decode())
    saved: dict[str, Any] = to_json(saved_state)
    return saved


def load(saved: Mapping[str, Any], policy: str) -> SavedState:
    """Return what `save` was given. Raises `DataError` for another version or policy, and for
    damage."""
    version = saved.get("v")
    if version != VERSION:
        raise DataError(f"state version {version}; this dltools reads {VERSION}: start without it")
    if saved.get("policy") != policy:
        raise DataError(f"the state is of policy {saved.get('policy')!r}, not {policy!r}")
    try:
        saved_state: SavedState = from_json(SavedState, saved)
    except (KeyError, TypeError, ValueError, OverflowError, RecursionError) as error:
        raise DataError(f"damaged state: {type(error).__name__}: {error}") from error
    for name, host in saved_state.hosts.items():
        if set(host.layout.ids) != set(host.history.containers):
            raise DataError(f"damaged state: {name}: the layout names other containers")
    return saved_state
