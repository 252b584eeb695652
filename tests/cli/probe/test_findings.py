"""What --doctor finds in a sample."""

from __future__ import annotations

from typing import Any

import pytest
from helpers.observed_rows import container, node, point

from dltools.cli.probe.findings import Finding, Health, of_sample
from dltools.observations.roles import NO_RULES
from dltools.observations.schema import COLUMNS
from dltools.observations.table import Row

TORCH = {"openmp_runtime": "libgomp", "thread_count": 4}


def found(*rows: Row, expects_gpus: bool = False) -> dict[str, Finding]:
    """Return the findings by subject; of one subject the last."""
    whole = [dict.fromkeys(one.name for one in COLUMNS) | row for row in rows]
    return {one.subject: one for one in of_sample(whole, NO_RULES, expects_gpus=expects_gpus)}


def training(name: str, **more: Any) -> list[Row]:
    row = container(0, name, 20.0, role="training", role_reason="reports loss", **more)
    return [row, point(0, name, 0.5)]


def test_a_training_that_is_read_is_well() -> None:
    one = found(node(0), *training("a", thread_count=1))
    assert one["a"] == Finding(
        Health.OK, "a", "training: reports loss; read: counters, 1 points of loss"
    )
    assert one["threads"].health is Health.OK
    assert one["plan"].text == "nothing to do: one job alone, a: nothing to share"
    assert {finding.health for finding in one.values()} == {Health.OK}


def test_what_is_not_read_is_a_warning(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/usr/bin:/bin")
    gap = "this user may not read its processes"
    one = found(node(0), container(0, "a", 1.0, gap=gap))["a"]
    assert (one.health, one.next) == (Health.WARNING, "sudo dl-probe --doctor")
    assert one.text.endswith(f"; not read: {gap}")


def test_a_training_without_progress_is_a_warning() -> None:
    row = container(0, "a b", 20.0, role="training", role_reason="libtorch, silent")
    one = found(node(0), row)["a b"]
    assert one.health is Health.WARNING
    assert one.next == "dl-probe --list-metrics --name '^a b$'"


def test_more_threads_than_cpus_and_runtimes_that_spin() -> None:
    one = found(node(0), *training("a", **TORCH), *training("b", **TORCH))
    assert one["threads"].text.startswith("8 busy threads of 2 trainings on 2 CPUs; the same jobs")
    assert one["threads"].next == "docker run -e OMP_NUM_THREADS=1 ..."
    assert one["spinning"].health is Health.WARNING


def test_a_quota_below_busy_threads() -> None:
    one = found(node(0, cpus=8.0), *training("a", thread_count=4, cpu_limit_cores=1.5))
    assert one["a"].text == "its quota of 1.5 CPUs is below its 4 busy threads"
    assert one["a"].next == "docker update --cpus 4 a"


def test_gpus_that_cannot_be_seen() -> None:
    row = node(0) | {"gap": "NVML: driver not loaded"}
    assert found(row, expects_gpus=True)["host"].health is Health.WARNING
    assert found(row)["host"] == Finding(Health.OK, "host", "2 CPUs for containers, no GPU")
