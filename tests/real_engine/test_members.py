"""A job of two containers that wait for each other at every step, beside another training."""

import os
import signal
import time
from pathlib import Path

import pytest
from helpers.containers import Containers, Job, eventually
from helpers.examples import repeated
from helpers.tools import Tools

pytestmark = [pytest.mark.engine, pytest.mark.slow, pytest.mark.alone]

WATCHED_S = repeated(8, 30)
WORK = "work() { awk 'BEGIN { for (i = 0; i < 200000; i++) x += i }'; }\n"
MEMBER = (
    WORK
    + """
n=1
while :; do
    work & work & wait
    echo > /gate/$ME.$n
    until [ -e /gate/$OTHER.$n ]; do usleep 20000; done
    echo "epoch $n loss 0.$((999-n))"
    n=$((n+1))
done
"""
)
ENDLESS = WORK + 'n=1; while :; do work & work & wait; echo "epoch $n loss 0.5"; n=$((n+1)); done'


def epochs(job: Job) -> int:
    return job.log().count(b"epoch")


def is_paused(job: Job) -> bool:
    return job.inspect().state == "paused"


@pytest.mark.parametrize("policy", repeated(["fair"], ["fair", "srtf"]))
def test_members_run_and_wait_together(
    policy: str, run: Containers, tool: Tools, tmp_path: Path
) -> None:
    gate = tmp_path / "gate"
    gate.mkdir()
    labels = {"dltools.job": "pair", "dltools.role": "training"}
    pair = [
        run(
            f"ME={me} OTHER={other}\n{MEMBER}",
            name=f"member-{me}",
            labels=labels,
            binds=[f"{gate}:/gate"],
        )
        for me, other in (("a", "b"), ("b", "a"))
    ]
    other = run(ENDLESS, name="other", labels={"dltools.role": "training"})
    line = (
        f"dl-probe -i 1 {' '.join(run.only)} | dl-plan -p {policy} --realize rotate --quantum 3s"
        " | dl-apply --restore"
    )
    pipe = tool.begin_shell(f"{line} >/dev/null", tmp_path / "bin")
    eventually(lambda: is_paused(other) or any(map(is_paused, pair)), bool, seconds=60)
    begun = [epochs(job) for job in (*pair, other)]
    apart, until = 0, time.monotonic() + WATCHED_S
    while time.monotonic() < until:
        states = [is_paused(job) for job in pair]
        apart += len(set(states)) == 2
        time.sleep(0.25)
    done = [epochs(job) - before for job, before in zip((*pair, other), begun, strict=True)]
    assert min(done) > WATCHED_S / 6, done
    assert apart <= 0.8 * WATCHED_S  # a change over takes a moment
    os.killpg(pipe.pid, signal.SIGINT)
    eventually(
        lambda: [is_paused(job) for job in (*pair, other)], lambda all_: not any(all_), seconds=30
    )
