"""A stream of samples: every log line once, every start and exit, whatever containers do."""

import itertools
import json
import subprocess
import threading
import time
from collections.abc import Callable
from datetime import datetime
from typing import Any

import pyarrow as pa
import pytest
from helpers.containers import Containers, Job, api, eventually
from helpers.tools import Tools

Rows = list[dict[str, Any]]

COUNT = 'i=0; while :; do echo "step $i loss: 0.5"; i=$((i+1)); usleep 20000; done'
"""Prints a numbered line fifty times a second."""


class Stream:
    """A dl-probe that streams JSON Lines, read by a thread as it prints."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self._process = process
        self._rows: Rows = []
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            self._rows.append(json.loads(line))

    @property
    def samples(self) -> int:
        return sum(row["kind"] == "node" for row in list(self._rows))

    def wait(self, samples: int) -> None:
        wanted = self.samples + samples
        eventually(lambda: self.samples, lambda samples: samples >= wanted)

    def until(self, what: Callable[[Rows], bool]) -> None:
        """Wait until that is true of what has come, however late, and for two more samples."""
        eventually(lambda: list(self._rows), what)
        self.wait(2)

    def end(self) -> Rows:
        self._process.terminate()
        self._process.wait(timeout=120)
        self._reader.join(timeout=120)
        return self._rows


@pytest.fixture
def stream(tool: Tools, run: Containers) -> Any:
    """Begin to stream the test's own containers, and wait for the first sample."""

    def begin(*arguments: object) -> Stream:
        process = tool.begin("dl-probe", *run.only, "-i", "0.3", "--format", "jsonl", *arguments)
        begun = Stream(process)
        begun.wait(1)
        return begun

    return begin


def steps(rows: Rows, job: Job) -> list[int]:
    return [r["step"] for r in rows if r["kind"] == "progress" and r["container_id"] == job.id]


def events(rows: Rows, job: Job) -> list[tuple[str, int | None]]:
    return [
        (row["event"], row.get("exit_code"))
        for row in rows
        if row["kind"] == "event" and row["container_id"] == job.id
    ]


def printed(job: Job) -> list[int]:
    return [int(line.split()[1]) for line in job.log().splitlines()]


def test_three_samples_are_three_batches(tool, run) -> None:
    job = run("echo loss: 0.5; sleep 60")
    eventually(job.log)
    begun = time.monotonic()
    done = tool("dl-probe", *run.only, "-i", "0.5", "-c", "3")
    assert (done.returncode, done.stderr) == (0, b"")
    assert time.monotonic() - begun >= 1.0
    batches = [batch.to_pylist() for batch in pa.ipc.open_stream(done.stdout)]
    assert len(batches) == 3
    nodes = [row for batch in batches for row in batch if row["kind"] == "node"]
    assert len(nodes) == 3
    assert all(a["time"] < b["time"] for a, b in itertools.pairwise(nodes))


def test_a_duration_ends_a_stream(tool, run) -> None:
    run()
    done = tool("dl-probe", *run.only, "-i", "0.4", "--duration", "1s")
    assert done.returncode == 0
    assert 1 <= len(list(pa.ipc.open_stream(done.stdout))) <= 3  # at 0, 0.4 and 0.8 s


def test_a_burst_between_samples_is_read_once(stream, run, gate) -> None:
    burst = 'awk \'BEGIN { for (i = 0; i < 20000; i++) print "step " i " loss: 0.5" }\''
    job = run(f"{gate.passed()}; {burst}; sleep 600", **gate.limits)
    watching = stream()
    gate.open()
    watching.until(lambda rows: len(steps(rows, job)) >= 20_000)
    assert sorted(steps(watching.end(), job)) == list(range(20_000))


def test_points_bear_the_time_of_their_line(stream, run) -> None:
    job = run(
        "n=0; while :; do n=$((n + 1)); echo step $n loss: 0.$((100 + n)); usleep 100000; done"
    )
    watching = stream("-i", "1")
    watching.until(lambda rows: len(steps(rows, job)) > 1)
    rows = [r for r in watching.end() if r["kind"] == "progress" and r["container_id"] == job.id]
    shown = [datetime.fromisoformat(row["time"]) for row in rows]
    log = api().logs(job.id, timestamps=True).decode().splitlines()
    printed = [datetime.fromisoformat(f"{line[:26]}Z") for line in log]  # to the microsecond
    assert shown == printed[: len(shown)]


def test_lines_from_before_the_history_stay_unread(stream, run, gate) -> None:
    old, new = "echo step 0 loss: 0.5", "echo step 1 loss: 0.5"
    job = run(f"{old}; {gate.passed()}; {new}; sleep 600", **gate.limits)
    eventually(job.log)
    time.sleep(2)
    watching = stream("--since", "1s")
    gate.open()
    watching.until(lambda rows: len(steps(rows, job)) > 0)
    assert steps(watching.end(), job) == [1]


@pytest.mark.parametrize("pause", [0.0, 1.0], ids=["at once", "after a while"])
def test_a_restart_repeats_no_line(stream, run, pause) -> None:
    job = run(COUNT)
    watching = stream()
    job.stop()
    time.sleep(pause)
    job.start()
    time.sleep(1)
    job.stop()
    watching.until(lambda rows: len(steps(rows, job)) >= len(printed(job)))
    watching.until(lambda rows: [name for name, _ in events(rows, job)].count("exit") == 2)
    rows = watching.end()
    assert steps(rows, job) == printed(job)
    assert [name for name, _ in events(rows, job)][-3:] == ["exit", "start", "exit"]
