"""A recording as a run, worked by hand: jobs, targets, limits, migrations, satisfied models."""

from __future__ import annotations

import json
import math
from datetime import UTC, datetime, timedelta

import pytest

from dltools.errors import DataError
from dltools.report.decided import add_plans, add_results
from dltools.report.observed import run
from dltools.report.run import Run
from dltools.streams import Row, to_table

BEGIN = datetime(2026, 1, 1, tzinfo=UTC)


def at(seconds: float) -> datetime:
    return BEGIN + timedelta(seconds=seconds)


def node(time: float, host: str = "h", cpus: float = 2.0) -> Row:
    return {"time": at(time), "host": host, "kind": "node", "cpu_count": cpus}


def container(time: float, name: str, cpu: float, host: str = "h", **more: object) -> Row:
    return {"time": at(time), "host": host, "kind": "container", "container_id": f"{name}-{host}",
            "container_name": name, "state": "running", "cpu_seconds": cpu,
            "cpu_limit_cores": 2.0, "cpu_weight": 1024.0, **more}  # fmt: skip


def point(time: float, name: str, metric: str, value: float, host: str = "h") -> Row:
    return {"time": at(time), "host": host, "kind": "progress", "container_id": f"{name}-{host}",
            "container_name": name, "metric": metric, "value": value}  # fmt: skip


def observed(rows: list[Row]) -> Run:
    return run(to_table(sorted(rows, key=lambda row: row["time"])), "r", "test")


TARGETS = json.dumps({"dltools.metric": "acc", "dltools.target": "0.5",
                      "dltools.target.final": "0.9", "dltools.objective": "max"})  # fmt: skip


def test_jobs_come_and_go_and_meet_their_targets() -> None:
    rows = [node(t) for t in (0, 10, 20, 30)]
    rows += [container(t, "a", t, labels=TARGETS) for t in (0, 10, 20)]
    rows += [container(t, "b", t / 2, started_at=at(7)) for t in (10, 20, 30)]
    rows += [point(t, "a", "acc", v) for t, v in ((5, 0.4), (12, 0.6), (18, 0.7))]
    found = observed(rows)
    a, b = found.jobs
    assert (a.name, a.arrival, a.finish, a.first, a.final, a.cpu) == ("a", 0, 20, 12, None, 20)
    assert (b.name, b.arrival, b.finish, b.cpu) == ("b", 7, None, 10)
    assert found.lanes["a"].progress == [(5, 0.4), (12, 0.6), (18, 0.7)]
    assert found.lanes["a"].use == [(10, 1.0), (20, 1.0)]
    assert found.end == 30


def test_what_is_allowed_is_a_quota_or_a_weights_part() -> None:
    rows = [node(t) for t in (0, 10)]
    rows += [container(t, "a", 0, cpu_weight=3072.0) for t in (0, 10)]
    rows += [container(0, "b", 0), container(10, "b", 0, cpu_limit_cores=0.7)]
    found = observed(rows)
    assert found.lanes["a"].limit == [(0, 1.5), (10, 1.5)]
    assert found.lanes["b"].limit == [(0, 0.5), (10, 0.7)]


def test_a_loss_that_is_no_number_is_data() -> None:
    rows = [node(t) for t in (0, 10)] + [container(t, n, t) for t in (0, 10) for n in "ab"]
    rows += [point(2, "a", "loss", 1.0), point(4, "a", "loss", math.nan)]
    rows += [point(2, "b", "loss", math.nan), point(4, "b", "loss", 0.5)]
    lanes = observed(rows).lanes
    assert (lanes["a"].progress, lanes["a"].diverged) == ([(2, 1.0)], True)
    assert (lanes["b"].progress, lanes["b"].diverged) == ([(4, 0.5)], False)


def test_one_name_on_two_hosts_one_after_the_other_is_a_migration() -> None:
    rows = [node(t, host) for t in (0, 10, 20, 30) for host in "hi"]
    rows += [container(t, "a", t) for t in (0, 10)]
    rows += [container(t, "a", t - 20, "i") for t in (20, 30)]
    rows += [container(t, "b", t, host) for t in (0, 10, 20, 30) for host in "hi"]
    found = observed(rows)
    assert [job.name for job in found.jobs] == ["a", "b", "b (2)"]
    assert (found.jobs[0].migrations, found.jobs[0].node) == (1, "i")
    assert found.lanes["a"].migrated == [20]
    assert found.lanes["a"].use == [(10, 1.0), (20, 0.0), (30, 1.0)]
    assert found.lanes["a"].limit[2] == (10, 0.0)


def test_satisfied_models_are_counted_over_time() -> None:
    labels = '{"dltools.qoe": "0.1"}'
    rows = [node(t) for t in (0, 10, 20)]
    rows += [container(t, "a", t, labels=labels) for t in (0, 10, 20)]
    rows += [container(t, "b", t, labels=labels) for t in (0, 10)]
    rows += [point(t, "a", "latency_seconds", v) for t, v in ((2, 0.2), (4, 0.1), (16, 0.1))]
    rows += [point(t, "b", "latency_seconds", v) for t, v in ((6, 0.105), (8, 0.1))]
    found = observed(rows)
    assert found.satisfied == [(0, 0), (4, 1), (6, 2), (10, 1), (16, 1)]
    a, b = found.jobs
    assert (a.served, a.satisfied) == (14, 12)
    assert (b.served, b.satisfied) == (2, 2)


def test_classes_come_from_the_states_of_plans() -> None:
    from dltools.plans import load_plans

    found = observed([node(0), container(0, "a", 0), node(10), container(10, "a", 5)])
    lines = []
    for time, job_class in ((0, "NL"), (5, "NL"), (10, "CL")):
        state = {"hosts": {"h": {"tracks": {"x": {"name": "a"}},
                                 "grants": {"x": [0.5, job_class, "", "", ""]}}}}  # fmt: skip
        stamp = at(time).strftime("%Y-%m-%dT%H:%M:%SZ")
        lines += [
            json.dumps({"kind": "plan", "v": 1, "policy": "flowcon", "at": stamp, "params": {},
                        "input": {}, "next_s": None, "gain": ""}).encode(),
            json.dumps({"kind": "end", "actions": 0, "state": state}).encode(),
        ]  # fmt: skip
    add_plans(found, load_plans(lines, "test"))
    assert found.lanes["a"].classes == [(0.0, "NL"), (10.0, "CL")]
    add_results(found, [{"status": "applied"}, {"status": "failed"}, {"status": "applied"}])
    assert found.results == {"applied": 2, "failed": 1}


def test_a_recording_without_containers_is_refused() -> None:
    with pytest.raises(DataError, match="no container was observed"):
        observed([node(0)])
