"""A pipe that does nothing says why in one line, whatever the reason."""

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


def test_no_container_runs(tool, run, tmp_path) -> None:
    said_all = "dl-apply: nothing to do: no container runs, or the filters of dl-probe select none"
    assert said(tool, run, tmp_path) == said_all
    assert said(tool, run, tmp_path, apply="--quiet") == ""


def test_limits_as_planned(tool, run, tmp_path) -> None:
    jobs = [run(f"{LOSS} {SPIN}", name=f"job-{number}") for number in range(2)]
    eventually(lambda: all(job.log().count(b"loss") == 2 for job in jobs))
    file = tmp_path / "plan.state"
    state = f"--policy fair --realize quota --state {file} --save-state {file}"
    line = PIPE.format(only=shlex.join(run.only), plan=state, apply="")
    assert b'"applied"' in tool.shell(line, tmp_path / "bin").stdout
    found = said(tool, run, tmp_path, state)
    assert found == "dl-apply: nothing to do: limits are already as planned (quota: as asked)"


def test_a_stream_says_a_reason_once(tool, run, tmp_path) -> None:
    run(name="web")
    line = f"dl-probe -i 0.3 -c 6 {shlex.join(run.only)} | dl-plan | dl-apply"
    done = tool.shell(line, tmp_path / "bin")
    assert (done.returncode, done.stdout) == (0, b"")
    (only,) = done.stderr.decode().splitlines()
    assert only.startswith("dl-apply: nothing to do: 1 container runs, it is not known to train")


def test_no_engine_is_one_line_of_each_tool(tool, tmp_path) -> None:
    line = "export DOCKER_HOST=unix:///nope; dl-probe | dl-plan | dl-apply; echo ${PIPESTATUS[*]}"
    done = tool.shell(line, tmp_path / "bin")
    assert done.stdout == b"69 65 69\n"
    apply, plan, probe = sorted(done.stderr.decode().splitlines())
    assert probe.startswith("dl-probe: no Docker engine answers at unix:///nope")
    assert plan == "dl-plan: standard input: empty input: no observations"
    assert apply.startswith("dl-apply: no Docker engine answers at unix:///nope")
