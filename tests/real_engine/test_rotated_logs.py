"""Logs that the engine rotates, and that somebody truncates, while dl-probe follows them."""

import itertools
import json
import os
import subprocess
from collections.abc import Iterator
from typing import Any

import pytest
from helpers.containers import Containers, Job
from helpers.examples import repeated
from helpers.tools import Tools

pytestmark = pytest.mark.slow

ROTATING = {"type": "json-file", "config": {"max-size": "20k", "max-file": "2"}}
PADDING = "x" * 100


def training(pause_us: int) -> str:
    """Return a training that logs about a hundred and fifty bytes a step."""
    return f"i=0; while :; do i=$((i+1)); echo step $i loss: 0.5 {PADDING}; usleep {pause_us}; done"


@pytest.fixture
def steps(tool: Tools, run: Containers) -> Iterator[Any]:
    def follow() -> Iterator[int]:
        process = tool.begin("dl-probe", *run.only, "-i", "1", "--format", "jsonl")
        assert process.stdout is not None
        for line in process.stdout:
            row = json.loads(line)
            if row["kind"] == "progress":
                yield row["step"]

    return follow


def files_of(job: Job) -> int:
    folder = os.path.dirname(job.inspect().native["LogPath"])  # noqa: PTH120
    return sum(name.endswith((".log", ".log.1")) for name in os.listdir(folder))  # noqa: PTH208


@pytest.mark.alone  # on a busy machine a file may be gone before it is read
def test_no_point_is_lost_or_doubled_when_the_engine_rotates(run, steps) -> None:
    """A file of the log holds a hundred steps: it is rotated every second."""
    job = run(training(10_000), log_config=ROTATING)
    found = list(itertools.islice(steps(), repeated(400, 1500)))
    assert found == list(range(found[0], found[0] + len(found)))
    assert files_of(job) == 2


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can truncate the engine's files")
def test_a_log_that_was_truncated_is_followed_on(run, steps) -> None:
    """As administrators do to free a disk; what was in the file is lost, and nothing else."""
    job = run(training(20_000), log_config={"type": "json-file", "config": {}})
    following = steps()
    before = list(itertools.islice(following, 40))
    path = job.inspect().native["LogPath"]
    subprocess.run(["truncate", "-s", "0", path], check=True)
    after = list(itertools.islice(following, 100))
    found = before + after
    assert found == sorted(set(found))
    assert after[-1] > before[-1] + 50
