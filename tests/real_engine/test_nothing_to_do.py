"""A pipe that does nothing says why in one line, whatever the reason."""

import re
import shlex
from pathlib import Path

from helpers.containers import Containers
from helpers.tools import Tools

PIPE = "dl-probe {only} | dl-plan {plan} | dl-apply {apply}"


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


def test_no_engine_is_one_line_of_each_tool(tool, tmp_path) -> None:
    line = "export DOCKER_HOST=unix:///nope; dl-probe | dl-plan | dl-apply; echo ${PIPESTATUS[*]}"
    done = tool.shell(line, tmp_path / "bin")
    assert done.stdout == b"69 65 69\n"
    apply, plan, probe = sorted(done.stderr.decode().splitlines())
    assert probe.startswith("dl-probe: no Docker engine answers at unix:///nope")
    assert plan == "dl-plan: standard input: empty input: no observations"
    assert apply.startswith("dl-apply: no Docker engine answers at unix:///nope")
