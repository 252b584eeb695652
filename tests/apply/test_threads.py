"""Counting a container's busy threads from /proc."""

from __future__ import annotations

from pathlib import Path

import pytest

from dltools.apply import threads
from dltools.engine.cgroup import Cgroup


@pytest.fixture(autouse=True)
def no_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(threads.time, "sleep", lambda _: None)


def process(root: Path, pid: int, *states: str, name: str = "job") -> None:
    for number, state in enumerate(states):
        thread = root / "proc" / str(pid) / "task" / str(pid + number)
        thread.mkdir(parents=True)
        (thread / "stat").write_text(f"{pid + number} ({name}) {state} 1 1 0\n")


def group(root: Path, *pids: int) -> Cgroup:
    directory = root / "cgroup"
    directory.mkdir()
    (directory / "cgroup.procs").write_text("".join(f"{pid}\n" for pid in pids))
    return Cgroup({"cpu": directory}, None)


def test_running_threads_of_all_processes_are_busy(tmp_path: Path) -> None:
    process(tmp_path, 10, "R", "S", "R")
    process(tmp_path, 20, "R", "D")
    assert threads.count_busy(group(tmp_path, 10, 20), tmp_path) == 3


def test_a_name_may_hold_anything(tmp_path: Path) -> None:
    process(tmp_path, 10, "S", name="a) R (b")
    assert threads.count_busy(group(tmp_path, 10), tmp_path) == 0


def test_the_most_of_several_counts_is_returned(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    process(tmp_path, 10, "S")
    stat = tmp_path / "proc/10/task/10/stat"
    texts = iter(["10 (job) R 1\n", "10 (job) S 1\n", "10 (job) S 1\n", "10 (job) S 1\n"])
    monkeypatch.setattr(threads.time, "sleep", lambda _: stat.write_text(next(texts)))
    assert threads.count_busy(group(tmp_path, 10), tmp_path) == 1


def test_a_process_that_ends_meanwhile_is_not_busy(tmp_path: Path) -> None:
    assert threads.count_busy(group(tmp_path, 10), tmp_path) == 0


def test_without_processes_or_a_cgroup_nothing_is_known(tmp_path: Path) -> None:
    assert threads.count_busy(group(tmp_path), tmp_path) is None
    assert threads.count_busy(Cgroup({}, None), tmp_path) is None
