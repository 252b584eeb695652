"""What one sample of dl-probe says of real containers."""

import io
import json
import os
from datetime import UTC, datetime
from typing import Any

import pyarrow.parquet as pq
import pytest
from helpers.containers import eventually
from helpers.tools import records
from real_engine.conftest import row_of

from dltools.observations.schema import NAMES


def of_kind(rows: list[dict[str, Any]], kind: str) -> list[dict[str, Any]]:
    return [row for row in rows if row["kind"] == kind]


def test_the_node_row_is_this_machine(sample, run, engine) -> None:
    run()
    (node,) = of_kind(sample(), "node")
    assert node["host"] == engine.host
    assert 0 < node["cpu_count"] <= os.cpu_count()
    assert node["cpu_seconds"] > 0
    page = os.sysconf("SC_PAGE_SIZE")
    assert node["memory_total_bytes"] == pytest.approx(os.sysconf("SC_PHYS_PAGES") * page, rel=0.01)
    assert 0 < node["memory_available_bytes"] < node["memory_total_bytes"]


OF_GPUS = {"gpu"}
"""The kind of the rows that a host with GPUs has as well."""


@pytest.mark.parametrize(
    ("limits", "cores"),
    [
        ({}, None),
        ({"nano_cpus": 500_000_000}, 0.5),
        ({"cpu_quota": 25_000}, 0.25),
        ({"cpu_quota": 15_000, "cpu_period": 50_000}, 0.3),
        ({"cpu_shares": 512}, None),
    ],
    ids=["none", "cpus", "quota", "quota and period", "shares"],
)
def test_the_quota_in_force(sample, run, limits, cores) -> None:
    job = run(**limits)
    rows = sample()
    whole = of_kind(rows, "node")[0]["cpu_count"]
    assert row_of(rows, job)["cpu_limit_cores"] == pytest.approx(cores or whole, abs=1e-6)


def test_identity_limits_and_labels(sample, run, image) -> None:
    before = datetime.now(UTC)
    own = {"cpu_shares": 512, "cpuset_cpus": "0", "mem_limit": "64m", "network": "host"}
    plain = run(name="plain")
    job = run(name="own", labels={"dltools.metric": "val_loss", "other": "x"}, **own)
    rows = sample()
    found, other = row_of(rows, job), row_of(rows, plain)
    assert (found["container_name"], found["image"], found["state"]) == (job.name, image, "running")
    assert before <= datetime.fromisoformat(found["started_at"]) <= datetime.now(UTC)
    assert [row["cpu_weight"] for row in (other, found)] == [1024, pytest.approx(job.kernel_weight)]
    assert found["cpu_weight"] <= 512  # version 2's own scale need not be in proportion
    assert (found["cpuset"], other["cpuset"][:1]) == ("0", "0")
    assert found["memory_limit_bytes"] == 64 << 20
    assert other["memory_limit_bytes"] == of_kind(rows, "node")[0]["memory_total_bytes"]
    assert 0 < found["memory_usage_bytes"] < 64 << 20
    assert json.loads(found["labels"]) == {"dltools.metric": "val_loss"}
    for column in ("network_receive_bytes", "network_transmit_bytes"):
        assert found[column] >= 0
        assert column not in other
    assert not {"labels", "gap"} & other.keys()


def test_a_label_and_a_name_choose_containers(tool, run) -> None:
    first = run(name="first", labels={"dltools-test.colour": "red"})
    second = run(name="second", labels={"dltools-test.colour": "blue"})

    def names(*arguments: str) -> set[str]:
        done = tool("dl-probe", "--format", "jsonl", *run.only, *arguments)
        return {row["container_name"] for row in of_kind(records(done.stdout), "container")}

    assert names() == {first.name, second.name}
    assert names("--label", "dltools-test.colour=red") == {first.name}
    assert names("--label", "dltools-test.colour") == {first.name, second.name}
    assert names("--name", "-second$") == {second.name}
    assert names("--name", "-second$", "--name", "-first$") == {first.name, second.name}
    assert names("--label", "dltools-test.colour=green") == set()


def test_a_window_gives_two_samples(sample, run) -> None:
    job = run("while :; do :; done", nano_cpus=20_000_000)
    rows = [row for row in sample("--window", "1.5") if row.get("container_id") == job.id]
    first, second = (row for row in rows if row["kind"] == "container")
    span = datetime.fromisoformat(second["time"]) - datetime.fromisoformat(first["time"])
    assert span.total_seconds() >= 1.5
    assert second["cpu_seconds"] > first["cpu_seconds"]
    assert second["cpu_throttled_seconds"] > 0


def test_past_starts_are_events(sample, run) -> None:
    job = run()
    (event,) = of_kind(sample("--since", "1m"), "event")
    assert (event["event"], event["container_id"]) == ("start", job.id)


# Formats


def test_a_single_sample_is_parquet(tool, run) -> None:
    job = run("echo loss: 0.5; sleep 60")
    eventually(job.log)
    done = tool("dl-probe", *run.only)
    table = pq.read_table(io.BytesIO(done.stdout))
    assert table.schema.names == list(NAMES)
    kinds = table.column("kind").to_pylist()
    assert sorted(set(kinds) - OF_GPUS) == ["container", "event", "node", "progress"]
    times = table.column("time").to_pylist()
    assert times == sorted(times)


def test_a_table_and_prometheus_text_for_people(tool, run) -> None:
    job = run("echo loss: 0.5; sleep 60", nano_cpus=500_000_000)
    eventually(job.log)
    table = tool("dl-probe", *run.only, "--format", "table", env={"COLUMNS": "120"})
    assert job.name.encode() in table.stdout
    assert b"loss=0.5" in table.stdout
    assert b"\x1b" not in table.stdout
    prom = tool("dl-probe", *run.only, "--format", "prom").stdout.decode()
    (line,) = (x for x in prom.splitlines() if x.startswith("dltools_container_cpu_limit_cores{"))
    assert line.endswith(" 0.5")
    assert job.id in line
