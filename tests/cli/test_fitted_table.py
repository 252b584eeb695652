"""Tables at every width: names give way, numbers and settings are whole."""

from __future__ import annotations

import io
import re
from datetime import UTC, datetime
from typing import Any

import pytest
from helpers.observed_rows import observed_hosts
from rich.table import Table

from dltools.cli.apply.tables import results_stream, results_table
from dltools.cli.destinations import make_console
from dltools.cli.fitted_table import FittedTable, runs_table
from dltools.cli.probe.tables import Metrics, containers_table
from dltools.plan.records import Result, Status

NOON = datetime(2026, 1, 31, 12, tzinfo=UTC)
LONG = "a-container-with-a-name-of-many-words-and-a-number-at-its-end-12345"


def shown(table: Table, width: int, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    monkeypatch.setenv("COLUMNS", str(width))
    out = io.StringIO()
    make_console(out).print(table)
    return [line.rstrip() for line in out.getvalue().splitlines()]


def results() -> Table:
    before = {"cpus": None, "cpu_weight": 1024}
    after = {"cpus": 12.875, "cpu_weight": 262144, "cpuset": "0-127"}
    return results_table(
        [
            Result(1, Status.APPLIED, "i", LONG, {"cpu_weight": 10}, {"cpu_weight": 1024}),
            Result(2, Status.UNCHANGED, "i", "short", before, after, "the engine said 404 of it"),
        ]
    )


def best() -> Table:
    row = {
        "policy": "specon",
        "realize": "priority",
        "set": "itval=30 within=srtf",
        "makespan": 12367.64,
        "makespan_ratio": 0.8812,
        "mean_completion": 7615.52,
        "mean_completion_ratio": 1.25,
        "longest_completion": 12367.6,
        "time_to_first": 3446.3,
        "satisfied": 12.34,
        "unfinished": 17,
        "failed": 3,
    }
    return runs_table([row, {**row, "policy": "noop", "realize": "quota"}])


def jobs() -> Table:
    row = {
        "policy": "noop",
        "name": LONG,
        "node": "a-host-of-a.cluster.org",
        "arrival": 5.0,
        "finish": 12367.6,
        "completion": 12362.6,
        "first": 5867.6,
        "cpu": 21848.4,
    }
    return runs_table([row, {**row, "finish": None, "exit_code": 137}])


WHOLE = {
    results: ["weight 10", "weight 1024", "12.875 cpus", "weight 262144",
              "on CPUs 0-127", "404"],
    best: ["12367.6 s", "(0.88)", "7615.5 s", "(1.25)", "3446.3 s", "12.34", "17", "3", "priority",
           "quota", "itval=30", "within=srtf"],
    jobs: ["5.0 s", "12367.6 s", "12362.6 s", "5867.6 s", "21848.4 s", "failed (137)"],
}  # fmt: skip


@pytest.mark.parametrize("width", [30, 40, 60, 79, 80, 81, 100, 120, 200])
@pytest.mark.parametrize("make", WHOLE, ids=lambda make: make.__name__)
def test_no_number_is_cut_and_no_line_is_too_long(
    make: Any, width: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    lines = shown(make(), width, monkeypatch)
    assert max(map(len, lines)) <= width
    text = "\n".join(lines)
    for value in WHOLE[make]:
        assert re.search(rf"(?<![\w.]){re.escape(value)}(?![\w.…])", text), value


def test_a_table_that_fits_is_not_changed(monkeypatch: pytest.MonkeyPatch) -> None:
    lines = shown(results(), 200, monkeypatch)
    assert lines[2].split("   ")[:2] == [LONG, "applied"]
    assert len(lines) == 4


def test_what_does_not_fit_comes_below_with_its_names(monkeypatch: pytest.MonkeyPatch) -> None:
    lines = shown(best(), 40, monkeypatch)
    heads = [line.split() for line in lines if line.startswith("POLICY")]
    assert len(heads) > 1
    assert {word for head in heads for word in head} >= {"MAKESPAN", "SATISFIED", "FAILED"}


def test_wide_letters_count_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    table = FittedTable(("NAME", "name"), ("VALUE", "right"))
    table.add_row("深度学习容器" * 4, "1234567.89 s")
    lines = shown(table, 30, monkeypatch)
    assert lines[-1].endswith("1234567.89 s")


def test_a_long_metric_leaves_its_value_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    metric = "validation_accuracy_of_the_top_five_classes_weighted"
    row = {
        "kind": "container",
        "container_id": "i",
        "container_name": LONG,
        "state": "running",
        "host": "h",
        "cpu_limit_cores": None,
        "thread_count": 128,
        "memory_working_set_bytes": 1 << 33,
        "cpu_seconds": 1.0,
        "time": NOON,
        "started_at": NOON,
        "labels": None,
    }
    point = {
        "kind": "progress",
        "container_id": "i",
        "metric": metric,
        "value": 0.123456,
        "container_name": LONG,
        "source": "keras",
    }
    metrics = Metrics()
    metrics.add(point)
    for table in (containers_table(observed_hosts([row, point])), metrics.table(wide=False)):
        lines = shown(table, 60, monkeypatch)
        assert "0.1235" in "\n".join(lines)
        assert max(map(len, lines)) <= 60


# Results of one plan after the other


def streamed(
    width: int, monkeypatch: pytest.MonkeyPatch, *groups: tuple[str, list[Result]]
) -> list[str]:
    monkeypatch.setenv("COLUMNS", str(width))
    out = io.StringIO()
    stream = results_stream(make_console(out))
    for time, found in groups:
        stream.print(results_table(found, time))
    return [line.rstrip() for line in out.getvalue().splitlines()]


def quota(name: str, before: float | None, after: float | None, note: str = "") -> Result:
    status = Status.STALE if note else Status.APPLIED
    return Result(1, status, "i", name, {"cpus": before}, {"cpus": after}, note or None)


def test_a_stream_has_one_header_and_its_rows_are_below_each_other(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    lines = streamed(
        100,
        monkeypatch,
        ("12:00:00", [quota("resnet", None, 0.667), quota("lstm", None, 1.333)]),
        ("12:00:02", [quota("a-training", 0.667, None)]),
        ("12:00:04", [quota("lstm", 1.333, 0.5, "the container is exited")]),
    )
    assert [line.split()[0] for line in lines if "TIME" in line or "12:00" in line] == [
        "TIME",
        "12:00:00",
        "12:00:02",
        "12:00:04",
    ]
    rows = [line for line in lines if "cpus" in line]
    assert len(rows) == len(lines) - 2
    for word in ("CONTAINER", "RESULT", "BEFORE", "AFTER"):
        at = lines[0].index(word)
        assert all(row[at - 1] == " " != row[at] for row in rows), word
    assert lines[-1].endswith("the container is exited")
    assert rows[1].startswith("           lstm")


def test_a_header_comes_again_where_a_row_does_not_fit(monkeypatch: pytest.MonkeyPatch) -> None:
    wide = Result(1, Status.APPLIED, "i", "a", {"cpus": 1.0}, {"turn_s": 16.0, "group": 123456789})
    found = ("12:00:00", [quota("resnet", None, 0.667)]), ("12:00:02", [wide])
    lines = streamed(100, monkeypatch, *found, found[0])
    assert 1 <= sum("TIME" in line for line in lines) <= 2
    assert max(map(len, lines)) <= 100


@pytest.mark.parametrize("width", [20, 40, 60, 80, 200])
def test_a_stream_is_as_narrow_as_the_screen(width: int, monkeypatch: pytest.MonkeyPatch) -> None:
    groups = [("12:00:00", [quota(LONG, None, 0.667)]), ("12:00:02", [quota("lstm", 1.5, 0.25)])]
    lines = streamed(width, monkeypatch, *groups, groups[0])
    assert max(map(len, lines)) <= max(width, 20)
    assert "0.667" in "".join(lines)
