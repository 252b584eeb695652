"""What dl-probe shows of an engine: containers, logs, events."""

import itertools
import os
import signal
import time
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from contract.conftest import TRAINING
from helpers.containers import PATIENCE, eventually
from helpers.tools import records


def rows(output: bytes, kind: str) -> list[dict[str, Any]]:
    return [row for row in records(output) if row["kind"] == kind]


def test_containers_are_listed_in_their_state(subject, tool) -> None:
    jobs = [subject.start("while :; do sleep 1; done", name) for name in ("a", "b")]
    if subject.traits.can.pauses:
        jobs[1].pause()
    done = tool("dl-probe", "--host", subject.url, *subject.only, "--format", "jsonl")
    assert done.returncode == 0, done.stderr
    found = {row["container_name"]: row for row in rows(done.stdout, "container")}
    assert set(found) == {job.name for job in jobs}
    assert [found[job.name]["container_id"] for job in jobs] == [job.id for job in jobs]
    paused = "paused" if subject.traits.can.pauses else "running"
    assert [found[job.name]["state"] for job in jobs] == ["running", paused]
    for job in jobs:
        row = found[job.name]
        assert row["cpu_seconds"] > 0
        assert row["memory_usage_bytes"] > 0
        assert row["started_at"]
        assert row.get("gap") is None
    if subject.traits.can.pauses:
        jobs[1].unpause()


def test_a_single_sample_has_the_whole_log_with_its_times(subject, tool) -> None:
    begun = time.time()
    subject.start("for i in 1 2 3 4 5 6; do echo step $i loss: 0.$i; usleep 100000; done; sleep 99")
    done = eventually(
        lambda: tool("dl-probe", "--host", subject.url, *subject.only, "--format", "jsonl"),
        lambda done: len(rows(done.stdout, "progress")) == 6,
    )
    found = rows(done.stdout, "progress")
    assert [row["step"] for row in found] == [1, 2, 3, 4, 5, 6]
    times = [datetime.fromisoformat(row["time"]).timestamp() for row in found]
    assert begun - 1 < times[0] < time.time()
    gaps = [later - earlier for earlier, later in itertools.pairwise(times)]
    if subject.traits.stamps_lines:
        assert all(0.05 < gap < 1 for gap in gaps), "stamps are finer than a second"


def test_a_stream_has_each_line_once_and_the_last_one_too(subject, tool) -> None:
    line = "i=$((i+1)); echo step $i loss: 0.$i; usleep 40000"
    waits = "trap go=1 USR1; until [ $go ]; do usleep 20000; done"
    job = subject.start(f"go=; {waits}; i=0; while [ $i -lt 60 ]; do {line}; done")
    process = tool.begin(
        "dl-probe", "--host", subject.url, *subject.only, "-i", "0.4", "--format", "jsonl"
    )
    assert process.stdout is not None
    output = [process.stdout.readline()]  # it looks now
    os.kill(subject.engine.inspect(job.id).pid, signal.SIGUSR1)
    eventually(lambda: job.id not in [one.id for one in subject.engine.containers()])
    ended = datetime.now(UTC) + timedelta(seconds=2)
    for text in process.stdout:
        output.append(text)
        if datetime.fromisoformat(records(text)[0]["time"]) > ended:
            break
    process.terminate()
    output.append(process.stdout.read())
    process.communicate(timeout=60 * PATIENCE)
    seen = [row["step"] for row in rows(b"".join(output), "progress")]
    assert seen == list(range(1, 61)), rows(b"".join(output), "container")


def test_a_stream_tells_of_starts_exits_and_restarts(subject, tool) -> None:
    process = tool.begin(
        "dl-probe", "--host", subject.url, *subject.only, "-i", "1", "--format", "jsonl"
    )
    assert process.stdout is not None
    process.stdout.readline()  # it looks now
    first = subject.start(TRAINING, "first")

    def until(what: str, id_: str) -> dict[str, Any]:
        assert process.stdout is not None
        end = time.monotonic() + 20 * PATIENCE
        for line in process.stdout:
            row = records(line)[0]
            if row["kind"] == "event" and (row["event"], row["container_id"]) == (what, id_):
                return row
            assert time.monotonic() < end, f"no {what} of {id_[:12]}"
        raise AssertionError("dl-probe has ended")

    assert until("start", first.id)["container_name"] == first.name
    second = subject.start("sleep 1; exit 3", "second")
    until("start", second.id)
    codes = (3, 137) if subject.traits.tells_exit_codes else (None, None)
    assert until("exit", second.id).get("exit_code") == codes[0]
    first.kill()
    assert until("exit", first.id).get("exit_code") == codes[1]
    process.terminate()
    process.communicate(timeout=60 * PATIENCE)


@pytest.mark.parametrize("state", ["running", "paused"])
def test_events_are_not_told_twice(subject, tool, job, state) -> None:
    """A pause while a stream looks: the container stays in every sample, and its state is told."""
    if not subject.traits.can.pauses:
        pytest.skip(f"{subject.name} does not pause")
    looks = ("-i", "0.5", "-c", str(round(6 * PATIENCE)), "--format", "jsonl")
    process = tool.begin("dl-probe", "--host", subject.url, *subject.only, *looks)
    assert process.stdout is not None
    first = process.stdout.readline()
    if state == "paused":
        job.pause()
    output = process.stdout.read()  # not by communicate: it would miss what was read ahead
    assert process.wait(60 * PATIENCE) == 0
    found = rows(first + output, "container")
    assert {row["time"] for row in found} == {row["time"] for row in rows(first + output, "node")}
    assert found[-1]["state"] == state
    if state == "paused":
        job.unpause()
