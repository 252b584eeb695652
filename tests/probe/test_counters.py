"""Rows of containers, made from their cgroups."""

import math

import pytest

from dltools.engine.cgroup import Cgroup
from dltools.engine.distributed import Membership
from dltools.engine.interface import ALL_CAPABILITIES, Capabilities
from dltools.engine.process_search import NO_OPENMP, OpenMP, Processes
from dltools.observations.table import Row
from dltools.probe import container_watch, counters
from dltools.probe.counters import Counters
from dltools.probe.inventory import Inventory


@pytest.mark.parametrize(
    ("found", "is_readable", "threads", "gap"),
    [
        (OpenMP("libgomp", "OMP_NUM_THREADS=2"), True, 4, None),
        (NO_OPENMP, True, 4, None),
        (NO_OPENMP, False, 4, "OpenMP: this user may not read its processes"),
        (NO_OPENMP, False, 1, None),  # one thread waits for no other
    ],
)
def test_openmp_is_in_the_row_or_a_gap_says_why_not(
    engine, found, is_readable, threads, gap, tmp_path, monkeypatch
) -> None:
    (tmp_path / "pids.current").write_text(f"{threads}\n")
    processes = Processes(found, is_readable=is_readable)
    monkeypatch.setattr(container_watch, "search", lambda _pids, **_: processes)
    inventory = Inventory(engine, {})
    id_ = engine.start("job")
    inventory.refresh()
    inventory.running[id_].cgroup = Cgroup({}, tmp_path)
    inventory.running[id_].gap = None
    row: Row = Counters(engine).read(inventory)[1]
    assert (row["openmp_runtime"], row["openmp_settings"]) == (found.runtime, found.settings)
    assert (row["thread_count"], row["gap"]) == (threads, gap)


@pytest.mark.parametrize(
    ("can", "cannot"),
    [
        (ALL_CAPABILITIES, None),
        (Capabilities(frozenset({"cpus", "weight"}), creates=False), "cpuset+move"),
        (Capabilities(frozenset(), pauses=False), "cpus+cpu_weight+cpuset+pause"),
    ],
)
def test_rows_say_what_the_engine_cannot_do(engine, can, cannot) -> None:
    engine.capabilities = can
    engine.start("job")
    inventory = Inventory(engine, {})
    inventory.refresh()
    host_row, row = Counters(engine).read(inventory)
    assert row["cannot"] == cannot
    assert host_row["cannot"] == ("+".join(can.missing()) or None)


def test_rows_name_the_job(engine, tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(
        container_watch, "search", lambda _pids, **_: Processes(membership=Membership("", 2))
    )
    inventory = Inventory(engine, {})
    task = {"com.docker.swarm.task.id": "t", "com.docker.swarm.service.name": "trainer"}
    for name, labels in (("a", task), ("b", {"dltools.job": "run 7"}), ("c", {})):
        id_ = engine.start(name, labels=labels)
        inventory.refresh()
        inventory.expire()
        inventory.running[id_].cgroup = Cgroup({}, tmp_path)
    rows = Counters(engine).read(inventory)[1:]
    found = [(row.get("job"), row.get("job_containers")) for row in rows]
    assert found == [("swarm/trainer", 2), ("run 7", None), (None, None)]


@pytest.mark.parametrize("is_followed", [True, False])
def test_only_a_stream_spreads_its_searches(engine, is_followed, monkeypatch) -> None:
    """A single run has no later sample."""
    budgets: list[float] = []
    monkeypatch.setattr(counters, "search_due", lambda _due, budget_s: budgets.append(budget_s))
    engine.start("job")
    inventory = Inventory(engine, {})
    inventory.is_followed = is_followed
    inventory.refresh()
    Counters(engine).read(inventory)
    (budget_s,) = budgets
    assert 0 < budget_s < 1 if is_followed else budget_s == math.inf


def test_rows_of_gpus_name_the_containers_that_run(engine) -> None:
    inventory = Inventory(engine, {})
    id_ = engine.start("job")
    inventory.refresh()
    rows: list[Row] = [{"gpu_uuid": "GPU-1"}, {"container_id": id_}, {"container_id": "gone"}]
    whole, own = counters._with_names(rows, inventory.running)
    assert (whole, own["container_name"]) == (rows[0], "job")
