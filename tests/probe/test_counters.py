"""Rows of containers, made from their cgroups."""

from __future__ import annotations

from pathlib import Path

import pytest
from helpers.scripted_engine import ScriptedEngine

from dltools.engine.cgroup import Cgroup
from dltools.engine.openmp import OpenMP
from dltools.observations.table import Row
from dltools.probe import openmp_watch
from dltools.probe.counters import Counters
from dltools.probe.inventory import Inventory


@pytest.mark.parametrize(
    ("found", "threads", "gap"),
    [
        (OpenMP("libgomp", "OMP_NUM_THREADS=2"), 4, None),
        (OpenMP(), 4, None),
        (OpenMP(is_readable=False), 4, "OpenMP: this user may not read its processes"),
        (OpenMP(is_readable=False), 1, None),  # one thread waits for no other
    ],
)
def test_openmp_is_in_the_row_or_a_gap_says_why_not(
    found: OpenMP, threads: int, gap: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "pids.current").write_text(f"{threads}\n")
    monkeypatch.setattr(openmp_watch, "openmp_of", lambda _pids: found)
    engine = ScriptedEngine()
    inventory = Inventory(engine, {})
    id_ = engine.start("job")
    inventory.refresh()
    inventory.running[id_].cgroup = Cgroup({}, tmp_path)
    inventory.running[id_].gap = None
    row: Row = Counters(engine).read(inventory)[1]
    assert (row["openmp_runtime"], row["openmp_settings"]) == (found.runtime, found.settings)
    assert (row["thread_count"], row["gap"]) == (threads, gap)
