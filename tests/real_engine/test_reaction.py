"""How long things take: a start and an exit are answered long before the next sample is due, an
owner's command is not held back, and nobody is paused for longer than it bears."""

import itertools
import os
import signal
import time
from collections.abc import Callable

import pytest
from helpers.containers import Job, api, eventually, on_every_cpu
from helpers.examples import repeated
from real_engine.test_hands_on_jobs import applying, ended, lowered, run_in, spend
from real_engine.test_turns import SPIN, pauses_and_ends, rotating

pytestmark = [pytest.mark.engine, pytest.mark.slow, pytest.mark.alone]

INTERVAL_S = 30
WITHIN_S = 5
"""Far below the interval, and ample for a machine under load: alone it takes a tenth of that."""

BUSY = f"for k in $(seq {max(2, os.cpu_count() or 1)}); do (while :; do :; done) & done; wait"
"""Keeps every CPU busy, and never reports progress."""

TRAINS = {"dltools.role": "training"}


class Weight:
    """The weight of a container, from the kernel's file and without the engine."""

    def __init__(self, job: Job) -> None:
        directory = job.directory("cpu")
        v1 = directory / "cpu.shares"
        self._file = v1 if v1.exists() else directory / "cpu.weight"
        self._default = 1024 if v1.exists() else 100

    @property
    def is_default(self) -> bool:
        return int(self._file.read_text()) == self._default


def seconds_until(is_so: Callable[[], bool]) -> float:
    """Return how long it takes until something is so; the next sample would be too late."""
    begun = time.monotonic()
    while not is_so():
        assert time.monotonic() < begun + INTERVAL_S - 5
        time.sleep(0.002)
    return time.monotonic() - begun


def replaced(old: Job, new: Job) -> tuple[Job, float, float]:
    """Return which of two jobs waits, once the other has been killed; how long after the start of
    the new one it was made to wait, and how long after the kill it had its full weight back."""
    weights = {job.name: Weight(job) for job in (old, new)}
    start_s = seconds_until(lambda: not all(weight.is_default for weight in weights.values()))
    waiting, leaving = (new, old) if weights[old.name].is_default else (old, new)
    api().kill(leaving.id)
    return waiting, start_s, seconds_until(lambda: weights[waiting.name].is_default)


def test_a_start_and_an_exit_are_answered_at_once(run, tool, tmp_path) -> None:
    def begin(name: str) -> Job:
        return run(BUSY, name=name, labels=TRAINS)

    line = f"dl-probe -i {INTERVAL_S} {' '.join(run.only)} | dl-plan -p srtf | dl-apply --restore"
    pipe = tool.begin_shell(f"{line} >/dev/null", tmp_path / "bin")
    job, _, _ = replaced(begin("0"), begin("1"))  # the tools start up meanwhile
    starts, exits = [], []
    for number in range(int(os.environ.get("DLTOOLS_REACTIONS", "1"))):
        job, start_s, exit_s = replaced(job, begin(str(number + 2)))
        starts.append(start_s)
        exits.append(exit_s)
    print("from a start to the setting:", *(f"{taken:.3f}" for taken in sorted(starts)))
    print("from an exit to full speed:", *(f"{taken:.3f}" for taken in sorted(exits)))
    assert max(starts) < WITHIN_S
    assert max(exits) < WITHIN_S
    os.killpg(pipe.pid, signal.SIGINT)
    pipe.wait(timeout=120)
    assert Weight(job).is_default


def test_a_command_in_a_job_is_not_held_back(run, tool) -> None:
    first = run(on_every_cpu(SPIN) + " wait", name="first")
    job = run(SPIN, name="job")
    alone = min(run_in(job, spend(0.3)) for _ in range(3))
    with applying(tool, lowered(job, first=first, most=65536.0)) as process:
        took = [run_in(job, spend(0.3)) for _ in range(8)]
        eventually(lambda: job.kernel_weight, lambda weight: weight < 20)
        ended(process)
    assert sorted(took)[-2] < 2 * alone + 0.5  # of one the end and the next one's begin may meet


def test_nobody_is_paused_for_longer_than_its_label_says(run, tool) -> None:
    """Of three that take turns of 5 s one bears 3 s: the engine's own events tell how long."""
    bears = run(SPIN, name="bears", labels={"dltools.longest_pause": "3s"})
    jobs = [run(SPIN, name=name) for name in ("a", "b")]
    with rotating(tool, [*jobs, bears], seconds=5.0) as process:
        eventually(lambda: len(stretches(bears)), lambda count: count >= repeated(2, 10))
        eventually(lambda: max(map(longest, jobs)), lambda seconds: seconds > 4.0)
        process.terminate()
        assert process.wait(120) == 143
    assert longest(bears) <= 3.0


def longest(job: Job) -> float:
    return max(stretches(job), default=0.0)


def stretches(job: Job) -> list[float]:
    """Return for how many seconds a container was paused each time, by the engine's events."""
    told = pauses_and_ends([job])
    times = [(event["Action"], event["timeNano"] / 1e9) for event in told]
    pairs = itertools.pairwise(times)
    return [end - begin for (what, begin), (_, end) in pairs if what == "pause"]
