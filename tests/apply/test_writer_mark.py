"""The mark of the dl-apply that writes to an engine's containers."""

from __future__ import annotations

import subprocess
import sys
import uuid
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest

from dltools.apply.writer_mark import ANY, WriterMarks, writer_of
from dltools.errors import RetryError

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
            stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        )  # fmt: skip
        assert self.process.stdout is not None
        assert self.process.stdout.readline() == b"ready\n"

    def end(self) -> None:
        self.process.communicate(b"\n")


def test_one_run_at_a_time_marks_an_engine(engine: Any) -> None:
    first, second = WriterMarks(), WriterMarks()
    assert writer_of(engine) is None
    first.set(engine)
    first.set(engine)  # it came back
    for _ in range(200):  # more than a queue holds
        found = writer_of(engine)
        assert found is not None
        assert found.command
    with pytest.raises(RetryError, match=r"it writes to the containers of box"):
        second.set(engine)
    other = SimpleNamespace(id=uuid.uuid4().hex, host="other")
    second.set(other)
    first.free()
    second.set(engine)
    second.free()
    assert writer_of(engine) is None


@pytest.mark.parametrize(
    "listens",
    ["made.listen()", "pass", "made.listen(0); socket.socket(socket.AF_UNIX).connect("
     "made.getsockname()); kept = socket.socket(socket.AF_UNIX); kept.setblocking(False)\n"
     "kept.connect_ex(made.getsockname())"],
    ids=["listens", "is silent", "is full"],
)  # fmt: skip
def test_who_has_taken_the_name_is_named(engine: Any, listens: str) -> None:
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


def test_the_kernel_frees_the_mark_of_a_killed_run(engine: Any) -> None:
    squatter = Squatter(engine, "made.listen()")
    squatter.process.kill()
    squatter.process.wait()
    marks = WriterMarks()
    marks.set(engine)
    marks.free()


@pytest.fixture(autouse=True)
def nothing_stays(engine: Any) -> Iterator[None]:
    yield
    assert writer_of(engine) is None
