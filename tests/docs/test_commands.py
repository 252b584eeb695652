"""Each command of README and docs/ can be typed: its options exist, and it runs where it may.

A line is run as it stands, in a folder that holds the files that it names, beside an engine that
is not real; a stream takes one sample. What cannot run here is known by a word of `ELSEWHERE`.
"""

import importlib
import re
import shlex
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import nullcontext
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import typer
from helpers.fake_engine import FakeEngine
from helpers.forks import listening
from helpers.tools import FORKED, TOOLS, Tools, environment, write_scripts

ROOT = Path(__file__).parents[2]
RECORDING = ROOT / "samples/digits/recording.parquet"
PAGES = ("README.md", *sorted(f"docs/{path.name}" for path in (ROOT / "docs").glob("*.md")))
DOCUMENTS = (*PAGES, "ARCHITECTURE.md", "CONTRIBUTING.md", "SECURITY.md")

ELSEWHERE = {
    "sudo": "needs root and systemd: tests/emulated",
    "journalctl": "needs a service",
    "--install-service": "needs root and systemd: tests/emulated",
    "--remove-service": "needs root and systemd: tests/emulated",
    "ssh": "needs other hosts: tests/real_engine, tests/cluster",
    "--host": "needs other hosts and engines: tests/real_engine, tests/engines",
    "--context": "needs Docker contexts: tests/real_engine",
    "--swarm": "needs a Swarm: tests/cluster",
    "docker": "starts containers: its labels are checked below",
    "--doctor": "looks at the whole machine: tests/cli/probe",
    "--notify": "sends notices: tests/real_engine",
    "pipx": "installs: the tests of installation",
    "make": "its targets are checked below",
    "cat": "needs the file that a service keeps",
    "cp": "needs an installation",
    "mkdir": "makes room for what cp copies",
    "rm": "removes an installation",
}
"""Words of lines that are not run here, and why."""

FILES = ("dltools.service", "dltools.timer", "dltools.prom")
"""What looks like a label."""

SHELL = (
    "cat", "jq", "printf", "tee", "sudo", "ssh", "docker", "journalctl", "pipx", "make", "mkdir",
    "cp", "rm", "$EDITOR",
)  # fmt: skip
"""Programs beside the tools that a page may show."""

_OPERATOR = re.compile(r"[|;()<>&]+")


def lines(page: str) -> list[str]:
    """Return the lines of a page's blocks of `sh`."""
    blocks = re.findall(r"^```sh\n(.*?)^```$", (ROOT / page).read_text(), re.M | re.S)
    return [line for block in blocks for line in block.splitlines() if line.strip()]


def words(line: str) -> list[str]:
    lexer = shlex.shlex(line, posix=True, punctuation_chars="|;()<>&")
    lexer.whitespace_split = True
    return list(lexer)


def programs(line: str) -> Iterator[list[str]]:
    """Yield each program of a line with its arguments; what is redirected stays out."""
    program: list[str] = []
    found = iter(words(line))
    for word in found:
        if word.startswith(">"):
            next(found)
        elif word.startswith("$(") or not _OPERATOR.fullmatch(word):
            program.append(word)
        else:
            yield program
            program = []
    yield program


def calls(line: str) -> Iterator[list[str]]:
    """Yield each call of one of the tools, as by sudo and ssh too."""
    for program in programs(line):
        start = {"sudo": 1, "ssh": 2}.get(program[0] if program else "", 0)
        if program[start : start + 1] and program[start] in TOOLS:
            yield program[start:]


@cache
def parser(tool: str) -> Any:
    module = importlib.import_module(f"dltools.cli.{tool.removeprefix('dl-')}")
    return typer.main.get_command(module.app)


@pytest.mark.parametrize("page", PAGES)
def test_each_call_of_a_tool_is_one_that_its_parser_takes(page) -> None:
    for line in lines(page):
        for tool, *arguments in calls(line):
            parser(tool).make_context(tool, list(arguments))


@pytest.mark.parametrize("page", PAGES)
def test_each_other_program_is_known(page) -> None:
    for line in lines(page):
        if "$(" not in line:  # a substitution is no list of programs
            first = {program[0] for program in programs(line) if program}
            assert first <= {*TOOLS, *SHELL}, line


@pytest.mark.parametrize("page", DOCUMENTS)
def test_targets_of_make_and_files_of_samples_exist(page) -> None:
    text = (ROOT / page).read_text()
    targets = set(re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text(), re.M))
    assert set(re.findall(r"`make ([\w-]+)|^make ([\w-]+)", text)) <= {
        pair for target in targets for pair in ((target, ""), ("", target))
    }
    named = set(re.findall(r"(?<![\w/.])((?:samples|tests|docs)/[\w./-]*\w)", text))
    assert {name for name in named if not (ROOT / name).exists()} == set()


@pytest.mark.parametrize("page", DOCUMENTS)
def test_links_lead_somewhere(page) -> None:
    text = (ROOT / page).read_text()
    for target in re.findall(r"\]\((?!https?:)([^)]+)\)", text):
        name, _, anchor = target.partition("#")
        file = (ROOT / page).parent / name if name else ROOT / page
        assert file.exists(), target
        if anchor:
            heads = re.findall(r"^#+ (.*)$", file.read_text(), re.M)
            made = {re.sub(r"[^\w -]", "", head.lower()).replace(" ", "-") for head in heads}
            assert anchor in made, target


def test_labels_that_are_named_are_known() -> None:
    from dltools import labels

    for page in PAGES:
        for label in re.findall(r"\b(dltools\.[a-z]+(?:\.final)?)\b", (ROOT / page).read_text()):
            assert label in labels.KNOWN or label in FILES, label


def is_run(line: str) -> bool:
    return not set(words(line)) & set(ELSEWHERE)


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    """Where the tools get forks; a tool is a process of its own in `DLTOOLS_TESTS=processes`."""
    with listening() if FORKED else nullcontext("") as name:
        yield name


@pytest.fixture
def place(tmp_path: Path, fake_engine: FakeEngine, tool: Tools, server: str) -> Path:
    """A folder with all files that the pages name, and the tools in `bin`."""
    del fake_engine
    log = "".join(f"epoch {epoch}: loss {1 / epoch:.4f}\n" for epoch in range(1, 121))
    for name in ("gru", "vae", "job"):
        (tmp_path / f"{name}.log").write_text(log)
    shutil.copy(ROOT / "samples/live/three.toml", tmp_path / "jobs.toml")
    (tmp_path / "samples").symlink_to(ROOT / "samples")
    (tmp_path / "node_exporter").mkdir()
    for name in ("recordings-a", "recordings-b", "dltools/recordings"):
        assert tool("dl-probe", tmp_path / "gru.log", "-o", f"{tmp_path / name}/").returncode == 0
    once = 'case " $* " in *" -i "*) set -- "$@" -c 1;; esac\n'
    write_scripts(tmp_path / "bin", {"dl-probe": once}, server)
    return tmp_path


@pytest.mark.slow
@pytest.mark.parametrize("page", PAGES)
def test_each_line_runs(page, place) -> None:
    env = environment(
        PATH=f"{place / 'bin'}:{Path('/usr/bin')}:/bin",
        EDITOR="true",
        XDG_STATE_HOME=str(place / "state"),
        NO_COLOR="1",
    )
    before = {line for other in PAGES[: PAGES.index(page)] for line in lines(other)}
    for line in filter(is_run, lines(page)):
        if line in before:
            continue
        for name in ("day", "week", "before", "after"):  # anew: a line may have recorded another
            shutil.copy(RECORDING, place / f"{name}.parquet")
        here = line.replace("/var/lib/", f"{place}/")
        shell = ["bash", "-o", "pipefail", "-c", here]
        done = subprocess.run(shell, cwd=place, env=env, capture_output=True, timeout=120)
        assert done.returncode == 0, f"{line}\n{done.stderr.decode(errors='replace')}"


def test_no_more_lines_are_left_out_than_must_be() -> None:
    every = [line for page in PAGES for line in lines(page)]
    assert sum(map(is_run, every)) > len(every) / 2
