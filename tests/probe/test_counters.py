"""Rows of containers, made from their cgroups."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import pytest
from helpers.scripted_engine import ScriptedEngine

from dltools.engine.cgroup import Cgroup
from dltools.engine.distributed import Membership
from dltools.engine.openmp import NO_OPENMP, OpenMP
from dltools.engine.process_search import Processes
from dltools.observations.table import Row
from dltools.probe import counters, process_watch
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
    found: OpenMP, is_readable: bool, threads: int, gap: str | None, tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    (tmp_path / "pids.current").write_text(f"{threads}\n")
    processes = Processes(found, is_readable=is_readable)
    monkeypatch.setattr(process_watch, "search", lambda _pids, **_: processes)
    engine = ScriptedEngine()
    inventory = Inventory(engine, {})
    id_ = engine.start("job")
    inventory.refresh()
    inventory.running[id_].cgroup = Cgroup({}, tmp_path)
    inventory.running[id_].gap = None
    row: Row = Counters(engine).read(inventory)[1]
    assert (row["openmp_runtime"], row["openmp_settings"]) == (found.runtime, found.settings)
    assert (row["thread_count"], row["gap"]) == (threads, gap)


@pytest.mark.parametrize(
    ("label", "member", "job", "containers"),
    [
        (None, None, None, None),
        (None, Membership("10.0.0.2:29500", 2), "10.0.0.2:29500", 2),
        ("run 7", Membership("10.0.0.2:29500", 2), "run 7", None),
        ("evil\x1b[2J" + "x" * 999, None, "evil?[2J" + "x" * 192, None),
        (" ", None, None, None),
    ],
)
def test_a_label_or_else_its_processes_tell_the_job(
    label: str | None, member: Membership | None, job: str | None, containers: int | None,
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    processes = Processes(membership=member)
    monkeypatch.setattr(process_watch, "search", lambda _pids, **_: processes)
    engine = ScriptedEngine()
    inventory = Inventory(engine, {})
    id_ = engine.start("job", labels={} if label is None else {"dltools.job": label})
    inventory.refresh()
    inventory.running[id_].cgroup = Cgroup({}, tmp_path)
    row: Row = Counters(engine).read(inventory)[1]
    assert (row.get("job"), row.get("job_containers")) == (job, containers)


def test_an_address_is_of_the_networks_in_which_it_is_known(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two users may both have a host "master"."""
    processes = Processes(membership=Membership("master:29500"))
    monkeypatch.setattr(process_watch, "search", lambda _pids, **_: processes)
    engine = ScriptedEngine()
    inventory = Inventory(engine, {})
    jobs = []
    for name, networks in (("a", ["bridge"]), ("b", ["lab_default"]), ("c", ["z", "y", "bridge"])):
        id_ = engine.start(name)
        found = {"NetworkSettings": {"Networks": {key: {} for key in networks}}}
        engine.known[id_] = replace(engine.known[id_], raw=found)
        inventory.refresh()
        inventory.expire()
        inventory.running[id_].cgroup = Cgroup({}, tmp_path)
        row = next(row for row in Counters(engine).read(inventory)
                   if row.get("container_id") == id_)  # fmt: skip
        jobs.append(row["job"])
    assert jobs == ["master:29500", "master:29500 on lab_default", "master:29500 on y+z"]


@pytest.mark.parametrize("is_followed", [True, False])
def test_only_a_stream_spreads_its_searches(
    is_followed: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A single run has no later sample."""
    budgets: list[float] = []
    monkeypatch.setattr(counters, "search_due", lambda _due, budget_s: budgets.append(budget_s))
    engine = ScriptedEngine()
    engine.start("job")
    inventory = Inventory(engine, {}, is_followed=is_followed)
    inventory.refresh()
    Counters(engine).read(inventory)
    (budget_s,) = budgets
    assert 0 < budget_s < 1 if is_followed else budget_s == math.inf
