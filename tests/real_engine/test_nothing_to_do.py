"""A pipe that does nothing says why in one line, whatever the reason."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

from helpers.containers import Containers, eventually
from helpers.tools import Tools
from real_engine.test_turns import SPIN

PIPE = "dl-probe {only} | dl-plan {plan} | dl-apply {apply}"
LOSS = "echo step 1 loss: 0.5; sleep 0.1; echo step 2 loss: 0.4; "


def said(tool: Tools, run: Containers, directory: Path, plan: str = "", apply: str = "") -> str:
    """Return what the pipe prints on standard error, which must be one line at most, and nothing
    else."""
    line = PIPE.format(only=shlex.join(run.only), plan=plan, apply=apply)
    done = tool.shell(line, directory / "bin")
    lines = done.stderr.decode().splitlines()
    assert (done.returncode, done.stdout, len(lines)) in [(0, b"", 0), (0, b"", 1)], lines
    return re.sub(r"dltools-test-\w+-", "", "".join(lines))


def test_no_container_runs(tool: Tools, run: Containers, tmp_path: Path) -> None:
    said_all = "dl-apply: nothing to do: no container runs, or the filters of dl-probe select none"
    assert said(tool, run, tmp_path) == said_all
    assert said(tool, run, tmp_path, apply="--quiet") == ""


def test_none_is_a_training(tool: Tools, run: Containers, tmp_path: Path) -> None:
    for name in ("web", "db", "cache"):
        run(name=name)
    assert said(tool, run, tmp_path) == (
        "dl-apply: nothing to do: 3 containers run, none is known to train: cache (other), db "
        "(other), web (other); dl-probe --list-metrics shows what they report, --pattern finds "
        "more, the label dltools.role=training says it"
    )


def test_one_job_alone(tool: Tools, run: Containers, tmp_path: Path) -> None:
    job = run(f"{LOSS} {SPIN}", name="job")
    eventually(lambda: job.log().count(b"loss") == 2)
    assert said(tool, run, tmp_path) == (
        "dl-apply: nothing to do: one job alone, job: nothing to share"
    )


def test_jobs_of_one_thread_each(tool: Tools, run: Containers, tmp_path: Path) -> None:
    jobs = [run(f"{LOSS} {SPIN}", name=f"job-{number}") for number in range(3)]
    eventually(lambda: all(job.log().count(b"loss") == 2 for job in jobs))
    found = said(tool, run, tmp_path, "--policy fair")
    assert re.fullmatch(
        r"dl-apply: nothing to do: (CPUs \d+ % busy: nothing to win|"
        r"[\d.]+ busy threads of 3 jobs on \d+ CPUs: side by side \S+ s in the mean)",
        found,
    ), found


def test_limits_as_planned(tool: Tools, run: Containers, tmp_path: Path) -> None:
    jobs = [run(f"{LOSS} {SPIN}", name=f"job-{number}") for number in range(2)]
    eventually(lambda: all(job.log().count(b"loss") == 2 for job in jobs))
    file = tmp_path / "plan.state"
    state = f"--policy fair --realize quota --state {file} --save-state {file}"
    line = PIPE.format(only=shlex.join(run.only), plan=state, apply="")
    assert b'"applied"' in tool.shell(line, tmp_path / "bin").stdout
    found = said(tool, run, tmp_path, state)
    assert found == "dl-apply: nothing to do: limits are already as planned (quota: as asked)"


def test_a_policy_that_sets_nothing(tool: Tools, run: Containers, tmp_path: Path) -> None:
    jobs = [run(f"{LOSS} {SPIN}", name=f"job-{number}") for number in range(2)]
    eventually(lambda: all(job.log().count(b"loss") == 2 for job in jobs))
    assert said(tool, run, tmp_path, "--policy noop") == (
        "dl-apply: nothing to do: the policy noop sets no limits"
    )


def test_all_are_protected(tool: Tools, run: Containers, tmp_path: Path) -> None:
    job = run(f"{LOSS} {SPIN}", name="job", labels={"dltools.protect": "true"})
    eventually(lambda: job.log().count(b"loss") == 2)
    assert said(tool, run, tmp_path) == (
        "dl-apply: nothing to do: job (training: reports loss, protected)"
    )


def test_a_stream_says_a_reason_once(tool: Tools, run: Containers, tmp_path: Path) -> None:
    run(name="web")
    line = f"dl-probe -i 0.3 -c 6 {shlex.join(run.only)} | dl-plan | dl-apply"
    done = tool.shell(line, tmp_path / "bin")
    assert (done.returncode, done.stdout) == (0, b"")
    (only,) = done.stderr.decode().splitlines()
    assert only.startswith("dl-apply: nothing to do: 1 container runs, it is not known to train")


def test_no_engine_is_one_line(tool: Tools, tmp_path: Path) -> None:
    line = "export DOCKER_HOST=unix:///nope; dl-probe | dl-plan | dl-apply; echo ${PIPESTATUS[*]}"
    done = tool.shell(line, tmp_path / "bin")
    assert done.stdout == b"69 69 69\n"
    (only,) = done.stderr.decode().splitlines()
    assert only.startswith("dl-probe: no Docker engine answers at unix:///nope")
