"""Progress alone, as from saved logs, replayed through policies: equal shares are assumed."""

from datetime import UTC, datetime, timedelta

import pyarrow as pa
import pytest
from helpers import observed_rows
from helpers.observed_rows import point

from dltools.observations.assumed_shares import with_equal_shares
from dltools.observations.table import Row, concat, to_table
from dltools.plan.planner import Planner
from dltools.plan.policy import registry
from dltools.plan.realisation.options import Mode, RealisationOptions


def begun(second: float) -> datetime:
    """Logs without times begin in 1970."""
    return datetime(1970, 1, 1, tzinfo=UTC) + timedelta(seconds=second)


def points(name: str, times: range, slope: float, host: str = "log") -> list[Row]:
    return [point(t, name, 10 + slope * t, host=host, time=begun(t)) for t in times]


def node(second: float) -> Row:
    return observed_rows.node(second, 4.0, "h") | {"time": begun(second)}


def assumed(*tables: pa.Table) -> tuple[list[pa.Table], list[str]]:
    """The tables as they are replayed, and what is said."""
    said: list[str] = []
    return list(with_equal_shares(tables, said.append)), said


def test_jobs_share_one_cpu_while_they_run() -> None:
    (table,), said = assumed(to_table(points("a", range(0, 11), -1) + points("b", range(4, 11), 0)))
    assert said == ["log: only progress is known: equal shares of one CPU are assumed"]
    used = {
        (row["container_name"], (row["time"] - begun(0)).total_seconds()): row["cpu_seconds"]
        for row in table.to_pylist()
        if row["kind"] == "container"
    }
    assert used["a", 4] == 4  # alone
    assert used["a", 10] == pytest.approx(7)  # then half
    assert used["b", 4] == 0
    assert used["b", 10] == pytest.approx(3)
    nodes = [row for row in table.to_pylist() if row["kind"] == "node"]
    assert {row["cpu_count"] for row in nodes} == {1.0}
    assert len(nodes) == 11


@pytest.mark.parametrize("rows", [[node(0), *points("a", range(3), -1, host="h")], []])
def test_a_host_that_was_measured_and_no_rows_are_left_alone(rows) -> None:
    assert assumed(to_table(rows)) == ([to_table(rows)], [])


def test_a_host_that_is_measured_later_is_left_alone() -> None:
    parts = [to_table(points("a", range(3), -1, host="h")), to_table([node(9)])]
    assert assumed(*parts) == ([concat(parts)], [])
    parts.append(to_table(points("b", range(12, 14), -1)))
    tables, said = assumed(*parts)
    assert [line.split(":")[0] for line in said] == ["log"]
    hosts = [row["host"] for row in concat(tables).to_pylist() if row["kind"] == "node"]
    assert hosts == ["h", "log", "log"]


@pytest.mark.slow
def test_a_long_log_gets_a_bounded_number_of_samples() -> None:
    (table,), _ = assumed(to_table(points("a", range(20_000), -1)))
    assert table.column("kind").to_pylist().count("node") <= 5_002


@pytest.mark.parametrize("policy", sorted(registry.policies([])))
def test_every_policy_replays_logs(policy) -> None:
    found = registry.get(policy, [])
    parameters = found.parameters(itval=5.0) if policy == "flowcon" else found.parameters()
    fold = Planner(found, parameters, RealisationOptions(Mode.QUOTA))
    logs = to_table(points("a", range(60), -0.16) + points("b", range(60), 0))
    for _ in fold.add_by_sample(assumed(logs)[0][0]):
        pass
    plan = fold.plan({})
    assert plan.policy == policy
    if policy == "flowcon":
        (action,) = plan.actions
        assert action.container_name == "b"
        assert action.set["cpus"] is not None
