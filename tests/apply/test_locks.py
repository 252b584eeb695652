"""The state after a run that was killed: its last request to the engine is waited for.

The mark of the dl-apply that writes to an engine's containers.
"""

import os
import subprocess
import sys
import time
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from conftest import ReplaceSleep
from helpers.state_locks import WATCHDOG, held

from dltools.apply import locks as module
from dltools.apply.locks import (
    ANY,
    SETTLING_S,
    WriterMarks,
    locked_state,
    state_after_watchdog,
    writer_of,
)
from dltools.errors import RetryError


@pytest.fixture
def waits(replace_sleep: ReplaceSleep) -> list[float]:
    found: list[float] = []
    replace_sleep(module, found.append)
    return found


def test_an_engine_settles_after_a_run_that_was_killed_alone(tmp_path, waits) -> None:
    counts = []
    for is_killed in (False, False, True, False):
        if is_killed:
            (tmp_path / "apply.lock").write_text("process 1: dl-apply\n")
        with locked_state(tmp_path) as state:
            state.settle()
        counts.append(len(waits))
    assert (counts, waits) == ([0, 0, 1, 1], [SETTLING_S])


def test_files_that_a_killed_run_had_begun_are_removed(tmp_path) -> None:
    staged = tmp_path / "journal" / ".a.json.0123abcd"
    staged.parent.mkdir(mode=0o700)
    staged.touch(mode=0o600)
    with locked_state(tmp_path):
        assert not staged.exists()


HOLDS = """
import socket, sys
made = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
made.bind("\\0dltools/dl-apply/" + sys.argv[1])
{listens}
print("ready", flush=True)
input()
"""


@pytest.fixture
def engine() -> Any:
    return SimpleNamespace(id=uuid.uuid4().hex, host="box")


class Squatter:
    """Another process that has taken the name."""

    def __init__(self, engine: Any, listens: str) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-c", HOLDS.format(listens=listens), engine.id],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        assert self.process.stdout is not None
        assert self.process.stdout.readline() == b"ready\n"

    def end(self) -> None:
        self.process.communicate(b"\n")


def test_one_run_at_a_time_marks_an_engine(engine) -> None:
    first, second = WriterMarks(), WriterMarks()
    assert writer_of(engine) is None
    first.set(engine)
    first.set(engine)  # it came back
    for _ in range(200):  # more than a queue holds
        found = writer_of(engine)
        assert found is not None
        assert found.command
    with pytest.raises(RetryError, match=r"the containers of box"):
        second.set(engine)
    other = SimpleNamespace(id=uuid.uuid4().hex, host="other")
    second.set(other)
    first.free()
    second.set(engine)
    second.free()
    assert writer_of(engine) is None


@pytest.mark.parametrize(
    "listens",
    [
        "made.listen()",
        "pass",
        "made.listen(0); socket.socket(socket.AF_UNIX).connect("
        "made.getsockname()); kept = socket.socket(socket.AF_UNIX); kept.setblocking(False)\n"
        "kept.connect_ex(made.getsockname())",
    ],
    ids=["listens", "is silent", "is full"],
)
def test_who_has_taken_the_name_is_named(engine, listens) -> None:
    squatter = Squatter(engine, listens)
    pid = squatter.process.pid
    try:
        with pytest.raises(RetryError, match=rf"process {pid}: python.*--beside {pid}$"):
            WriterMarks().set(engine)
        with pytest.raises(RetryError):
            WriterMarks(beside=pid + 1).set(engine)
        for beside in (pid, ANY):
            WriterMarks(beside).set(engine)
    finally:
        squatter.end()
    freed = WriterMarks()
    freed.set(engine)
    freed.free()


def test_processes_that_end_meanwhile_keep_none_from_being_named(engine, monkeypatch) -> None:
    squatter = Squatter(engine, "pass")
    pid = str(squatter.process.pid)

    def but_of_others(listed: Callable[[Any], Any]) -> Callable[[Any], Any]:
        def found(path: Any) -> Any:
            folder = Path(path)
            if folder.name == "fd" and folder.parts[2] != pid:
                raise FileNotFoundError(path)
            return listed(path)

        return found

    for name in ("listdir", "scandir"):
        monkeypatch.setattr(os, name, but_of_others(getattr(os, name)))
    try:
        with pytest.raises(RetryError, match=f"process {pid}"):
            WriterMarks().set(engine)
    finally:
        squatter.end()


def test_the_kernel_frees_the_mark_of_a_killed_run(engine) -> None:
    squatter = Squatter(engine, "made.listen()")
    squatter.process.kill()
    squatter.process.wait()
    assert writer_of(engine) is None
    marks = WriterMarks()
    marks.set(engine)
    assert writer_of(engine) is not None
    marks.free()


@pytest.fixture(autouse=True)
def nothing_stays(engine: Any) -> Iterator[None]:
    yield
    assert writer_of(engine) is None


# The watchdog, which undoes what a run has left, holds the lock meanwhile


def test_a_run_waits_for_a_watchdog_that_undoes(tmp_path) -> None:
    told: list[str] = []
    with held(tmp_path, WATCHDOG, 0.5), state_after_watchdog(tmp_path, "no", 30.0, told.append):
        assert (tmp_path / "apply.lock").read_text().startswith(f"process {os.getpid()}: ")
    assert told == [], "it is short"


def test_a_long_wait_is_told_once(tmp_path) -> None:
    told: list[str] = []
    with held(tmp_path, WATCHDOG, 0.8) as pid:
        with state_after_watchdog(tmp_path, "no", 30.0, told.append, quiet_s=0.1):
            pass
        assert told == [
            f"waiting for process {pid}: the watchdog of an earlier run is undoing its settings"
        ]


@pytest.mark.parametrize(("who", "patience_s"), [("dltools.cli.apply", 30.0), (WATCHDOG, 0.3)])
def test_nobody_waits_for_another_run_or_without_end(tmp_path, who, patience_s) -> None:
    began = time.monotonic()
    with (
        held(tmp_path, who, 60.0) as pid,
        pytest.raises(RetryError, match=rf"another dl-apply is running, process {pid}.*; end it$"),
        state_after_watchdog(tmp_path, "end it", patience_s, print),
    ):
        pass
    assert time.monotonic() - began < 20
