"""The three tools in one pipe, as typed in a shell, on real containers."""

import json
import os
import signal
import subprocess
from typing import Any

import pytest
from helpers.containers import Containers, Job, eventually
from helpers.tools import complaint, records

pytestmark = pytest.mark.slow

TRAINING = """awk '
function now(  line) { getline line < "/proc/uptime"; close("/proc/uptime"); return line + 0 }
BEGIN {
    for (begun = now(); ; n++) {
        for (i = 0; i < 100000; i++) x += i
        printf "step %d loss: %.6f\\n", n, 100 - RATE * (now() - begun)
        fflush()
    }
}'"""
"""A loop that burns CPU and prints a loss, which falls from 100 by RATE a second, however fast."""

RATES = {"fast": 4, "slow": 2, "flat": 0}


@pytest.fixture
def jobs(run: Containers) -> dict[str, Job]:
    """Three trainings that have reported: the loss falls fast, slowly, and not at all."""
    jobs = {
        name: run(TRAINING.replace("RATE", str(rate)), name=name) for name, rate in RATES.items()
    }
    eventually(lambda: all(job.log() for job in jobs.values()))
    return jobs


def statuses(line: bytes) -> list[int]:
    return [int(word) for word in line.splitlines()[-1].split()]


def keeps_up(done: subprocess.CompletedProcess[bytes]) -> list[dict[str, Any]]:
    """The results of a stream. Where the machine is slow, a sample is taken before the last plan is
    applied, and the next plan finds its settings made already, or others than it expects."""
    assert statuses(done.stderr) in ([0, 0, 0], [0, 0, 75])
    results = records(done.stdout)
    assert "applied" in {result["status"] for result in results}
    assert {result["status"] for result in results} <= {"applied", "unchanged", "stale"}
    return results


def test_a_stream_makes_the_flat_job_give_way_and_undo_puts_all_back(
    tool, run, jobs, tmp_path
) -> None:
    before = {name: job.kernel() for name, job in jobs.items()}
    done = tool.shell(
        f"dl-probe {' '.join(run.only)} -i 0.5 -c 16"
        " | dl-plan --policy flowcon --realize quota --set itval=1 --set alpha=0.01"
        " | dl-apply; echo ${PIPESTATUS[@]} >&2",
        tmp_path / "bin",
    )
    results = keeps_up(done)
    last = {name: last_limit(results, job) for name, job in jobs.items()}
    assert last["flat"] == pytest.approx(jobs["flat"].engine.cpus / 4)  # 1/(beta n), n = 3
    for name, job in jobs.items():
        assert (job.kernel_cpus or job.engine.cpus) == pytest.approx(last[name], abs=0.001)

    undone = tool("dl-apply", "--undo")
    assert (undone.returncode, undone.stderr) == (0, b"")
    assert {name: job.kernel() for name, job in jobs.items()} == before


def last_limit(results: list[dict[str, Any]], job: Job) -> float:
    found = [r["after"]["cpus"] for r in results if r["container"]["id"] == job.id]
    return found[-1] or job.engine.cpus if found else job.engine.cpus


def test_a_reader_that_goes_away_ends_a_stream(tool, run, tmp_path) -> None:
    run()
    done = tool.shell(
        f"dl-probe {' '.join(run.only)} -i 0.1 | head -c 100 | wc -c; echo ${{PIPESTATUS[@]}} >&2",
        tmp_path / "bin",
    )
    assert statuses(done.stderr) == [141, 0, 0]
    assert int(done.stdout) == 100


def test_every_stage_can_be_saved_and_replayed(tool, run, jobs, tmp_path) -> None:
    done = tool.shell(
        f"cd {tmp_path} && dl-probe {' '.join(run.only)} -o sample.parquet"
        " && dl-plan --policy fair --realize quota sample.parquet > plan.jsonl"
        " && dl-apply plan.jsonl > results.jsonl && dl-apply plan.jsonl",
        tmp_path / "bin",
    )
    assert (done.returncode, done.stderr) == (0, b"")
    first = records((tmp_path / "results.jsonl").read_bytes())
    assert {r["status"] for r in first} == {"applied"}
    assert {r["status"] for r in records(done.stdout)} == {"unchanged"}
    shares = {round(job.kernel_cpus or 0, 3) for job in jobs.values()}
    assert shares == {round(jobs["fast"].engine.cpus / 3, 3)}


def test_a_plan_that_a_person_edits_is_applied(tool, run, jobs, tmp_path) -> None:
    kept = jobs["flat"]
    done = tool.shell(
        f"cd {tmp_path} && dl-probe {' '.join(run.only)} | dl-plan -p fair --realize quota > plan.jsonl"
        f" && sed -i '/{kept.name}/{{/\"action\"/d}}' plan.jsonl && dl-apply plan.jsonl",
        tmp_path / "bin",
    )
    assert done.returncode == 0
    assert complaint(done.stderr) == (
        "dl-apply: plan.jsonl: line 4: 3 actions announced, 2 found: treated as edited by hand"
    )
    assert {r["status"] for r in records(done.stdout)} == {"applied"}
    share = jobs["fast"].engine.cpus / 3
    limits = {name: job.kernel_cpus for name, job in jobs.items()}
    assert limits.pop("flat") is None
    assert list(limits.values()) == pytest.approx([share, share], abs=0.001)


def test_an_interrupted_pipe_leaves_no_limit_behind(tool, run, jobs, tmp_path) -> None:
    """Ctrl-C reaches all three at once."""
    before = {name: job.kernel() for name, job in jobs.items()}
    pipe = tool.begin_shell(
        f"dl-probe {' '.join(run.only)} -i 0.5 | dl-plan --policy fair --realize quota | dl-apply --restore",
        tmp_path / "bin",
    )
    assert pipe.stdout is not None
    assert json.loads(pipe.stdout.readline())["status"] == "applied"
    os.killpg(pipe.pid, signal.SIGINT)
    _, stderr = pipe.communicate(timeout=120)  # until the last of the three has ended
    assert stderr == b""
    assert {name: job.kernel() for name, job in jobs.items()} == before
