"""What owners asked for at start, on real containers: it bounds what the tools give."""

from typing import Any

import pytest
from helpers.containers import Containers, Job, eventually, plan_for
from helpers.tools import Tools
from real_engine.conftest import row_of

REPORTS = 'n=900; while :; do echo "step $n loss: 0.$n"; n=$((n-1)); usleep 200000; done'
"""A job that reports, and uses next to no CPU."""

ASKED = {"nano_cpus": 500_000_000, "cpu_shares": 2048, "cpuset_cpus": "0"}
OURS = {"cpus": 0.2, "weight": 10}
NEXT_TO_NOTHING = pytest.approx(10, rel=0.03)  # version 2 has 10.24
COLUMNS = ("owner_cpu_limit_cores", "owner_cpu_weight", "owner_cpuset")


@pytest.fixture
def mine(run: Containers) -> Job:
    return run(REPORTS, name="mine", **ASKED)


@pytest.fixture
def other(run: Containers) -> Job:
    return run(REPORTS, name="other")


def asked(rows: list[dict[str, Any]], job: Job) -> tuple[Any, ...]:
    found = row_of(rows, job)
    return tuple(found.get(name) for name in COLUMNS)


def planned(tool: Tools, run: Containers, mode: str, *options: str) -> bytes:
    seen = tool("dl-probe", *run.only, "--since", "1m", "--format", "arrow").stdout
    how = ("--policy", "fair", "--realize", mode, "--set", "explore=0", *options)
    done = tool("dl-plan", *how, "-", input=seen)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize("mode", ["quota", "weight", "priority"])
def test_ours_is_taken_back_to_what_the_owner_asked_for_and_no_further(
    tool, run, sample, mine, other, mode
) -> None:
    before = mine.kernel(), other.kernel()
    eventually(lambda: all(job.log().count(b"loss") > 2 for job in (mine, other)))
    if not mine.has_v2:  # there 2048 shares are less than none, until somebody sets what was asked
        assert b'"kind":"action"' not in planned(tool, run, "weight")  # all is as asked for
    for name, value in OURS.items():
        done = tool("dl-apply", input=plan_for(mine, {name: value}))
        assert done.returncode == 0, done.stderr
    assert (mine.kernel_cpus, mine.kernel_weight) == (0.2, NEXT_TO_NOTHING)
    seen = row_of(sample(), mine)
    assert (seen["cpu_limit_cores"], seen["cpu_weight"]) == (0.2, NEXT_TO_NOTHING)

    assert asked(sample(), mine) == (0.5, 2048.0, "0")
    assert asked(sample(), other) == (None, 1024.0, None)
    done = tool("dl-apply", input=planned(tool, run, mode))
    assert done.returncode == 0, done.stderr
    if mode == "quota":
        assert (mine.kernel_cpus, other.kernel_cpus) == (0.5, mine.engine.cpus / 2)
    elif mode == "weight":
        assert (mine.kernel_cpus, mine.kernel_weight, other.kernel_weight) == (0.2, 2048, 1024)
    else:  # the first in the queue, and the next
        assert (mine.kernel_cpus, mine.kernel_weight) == (0.2, 2048)
        assert other.kernel_weight in (1024, NEXT_TO_NOTHING)
    assert mine.kernel()["cpuset.cpus"] == "0"
    assert asked(sample(), mine) == (0.5, 2048.0, "0")

    assert tool("dl-apply", "--undo").returncode == 0
    assert (mine.kernel(), other.kernel()) == before
    assert asked(sample(), mine) == (0.5, 2048.0, "0")


def test_a_journal_that_cannot_be_trusted_is_a_gap(sample, mine, state, tmp_path) -> None:
    state.mkdir(parents=True)
    (state / "journal").symlink_to(tmp_path)
    found = row_of(sample(), mine)
    assert "its owner's limits: " in found["gap"]
    assert "a link, which is not followed" in found["gap"]
    assert found["cpu_limit_cores"] == 0.5
    assert not any(found.get(name) for name in COLUMNS)
