"""Two endless jobs and a short one that comes late, under the pipe as the README types it."""

import os
import signal
from contextlib import suppress
from pathlib import Path

import pytest
from helpers.containers import Containers, eventually
from helpers.examples import repeated
from helpers.tools import Tools

pytestmark = [pytest.mark.engine, pytest.mark.slow, pytest.mark.alone]

EPOCH = """
work() { awk 'BEGIN { for (i = 0; i < 300000; i++) x += i }'; }
epoch() { work & work & wait; echo "epoch $n loss $1"; n=$((n+1)); }
n=1
"""
ENDLESS = EPOCH + "while :; do epoch 0.5; done"
SHORT = EPOCH + "while [ $n -le 25 ]; do epoch 0.$((99-n)); done"

POLICIES = ["flowcon --set itval=4", "srtf --set itval=4", "fair"]
EVEN = 1 / 3
"""What Docker alone gives each of three jobs that want all they can get."""


@pytest.mark.parametrize("policy", repeated(POLICIES[:2], POLICIES))
def test_a_late_short_job_has_no_less_than_under_docker_alone(
    policy: str, run: Containers, tool: Tools, tmp_path: Path
) -> None:
    trains = {"dltools.role": "training"}  # a shell has no deep-learning runtime
    endless = [run(ENDLESS, name=f"endless-{number}", labels=trains) for number in range(2)]
    line = f"dl-probe -i 1 {' '.join(run.only)} | dl-plan -p {policy} | dl-apply --restore"
    pipe = tool.begin_shell(f"{line} >/dev/null", tmp_path / "bin")
    eventually(lambda: all(job.log().count(b"loss") > 10 for job in endless), seconds=60)

    begun = [job.cpu_seconds for job in endless]
    short = run(SHORT, name="short", labels=trains)
    own = others = 0.0

    def has_ended() -> bool:
        nonlocal own, others
        if short.inspect().state == "running":
            with suppress(AssertionError, OSError):  # it ends while it is looked at
                own = short.cpu_seconds
                others = sum(job.cpu_seconds for job in endless) - sum(begun)
            return False
        return True

    eventually(has_ended)
    assert own > 1
    assert own / (own + others) > 0.95 * EVEN
    os.killpg(pipe.pid, signal.SIGINT)
    eventually(
        lambda: {job.kernel_weight for job in endless},
        lambda weights: weights == {1024},
        seconds=30,
    )
