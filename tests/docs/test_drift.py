"""The documentation says what the code does: options, exit codes, columns, shown output."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import typer
from docs.generate import documents
from docs.generate.mdoc import value
from docs.generate.parsers import tools

from dltools import labels
from dltools.cli import apply, plan, probe, report, sim
from dltools.notation.limits import LIMITS, written
from dltools.observations.schema import VERSION
from dltools.plan.policy import registry
from dltools.plan.realisation.mode import Mode
from dltools.plan.records import Op, Status

ROOT = Path(__file__).parents[2]
TOOLS = {
    "probe": probe.app,
    "plan": plan.app,
    "apply": apply.app,
    "sim": sim.app,
    "report": report.app,
}


def test_make_docs_changes_nothing() -> None:
    changed = [path.name for path, text in documents().items() if path.read_text() != text]
    assert not changed, f"run `make docs`: it changes {', '.join(changed)}"


def page(name: str) -> str:
    return (ROOT / "man" / name).read_text()


def options(tool: str) -> list[list[str]]:
    command = typer.main.get_command(TOOLS[tool])
    return [p.opts for p in command.params if p.opts[0].startswith("-")] + [["-h", "--help"]]


def as_mdoc(name: str) -> str:
    return f"\\-{name[2:]}" if name.startswith("--") else name[1:]


@pytest.mark.parametrize("tool", TOOLS)
def test_every_option_is_in_its_page_and_no_other(tool) -> None:
    section = page(f"dl-{tool}.1").partition(".Sh OPTIONS")[2].partition(".Sh ")[0]
    items = re.findall(r"^\.It (Fl .*)$", section, re.M)
    shown = {name for item in items for name in re.findall(r"Fl (\\?-?[a-z-]+)", item)}
    real = {as_mdoc(name) for names in options(tool) for name in names}
    assert shown == real


@pytest.mark.parametrize("tool", tools(), ids=lambda tool: tool.name)
def test_the_synopsis_shows_every_option_and_its_value(tool) -> None:
    section = page(f"{tool.name}.1").partition(".Sh SYNOPSIS")[2].partition(".Sh ")[0]
    shown: dict[str, str] = {}
    for line in re.findall(r"^\.(?:Op )?Fl (.*)$", section, re.M):
        names, _, name_of_value = line.partition(" Ar ")
        for name in names.split(" | "):
            letters = [name] if name.startswith("\\") else name  # -hv stands for -h and -v
            shown |= dict.fromkeys(letters, name_of_value and f"Ar {name_of_value}")
    for option in tool.options:
        if option.long != "--version":
            (found,) = [shown.pop(one) for one in map(as_mdoc, option.names) if one in shown]
            assert found == (value(option.metavar) if option.metavar else ""), option.long
    assert not shown


def test_labels_ops_statuses_and_settings_are_described() -> None:
    every = "".join(page(file.name) for file in (ROOT / "man").iterdir())
    known = {value for name, value in vars(labels).items() if name.isupper()}
    assert known - {labels.PREFIX, labels.KNOWN} == set(labels.KNOWN)
    for label in labels.KNOWN:
        assert label in every
    assert f"now {VERSION}." in page("dltools-observations.5")
    text = page("dltools-plan.5")
    for word in (*Op, *Status, *written(dict.fromkeys(LIMITS))):
        assert re.search(rf"\b{word}\b", text), word


def test_every_policy_and_mode_is_described_and_completed() -> None:
    for name in registry.policies([]):
        assert f".It Cm {name}\n" in page("dl-plan.1")
    for mode in ("auto", *Mode):
        assert f".It Cm {mode}\n" in page("dltools-modes.7")
        assert f".It Cm {mode}\n" in page("dl-plan.1")
    for file in (ROOT / "dltools" / "completions").glob("*"):
        text = file.read_text()
        if "--policy" in text or "-l policy" in text:
            assert " ".join(registry.policies([])) in text
        if "--realize" in text or "-l realize" in text:
            assert " ".join(("auto", *Mode)) in text


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completions_are_sound(shell) -> None:
    if shutil.which(shell) is None:
        pytest.skip(f"{shell} is not installed")
    pattern = {"bash": "*.bash", "zsh": "_dltools", "fish": "*.fish"}[shell]
    for file in (ROOT / "dltools" / "completions").glob(pattern):
        subprocess.run([shell, "-n", str(file)], check=True)


def test_man_pages_are_sound() -> None:
    if shutil.which("mandoc") is None:
        if os.environ.get("DLTOOLS_DOCS") == "require":
            pytest.fail("DLTOOLS_DOCS=require, but mandoc is not installed")
        pytest.skip("mandoc is not installed")
    pages = sorted(str(file) for file in (ROOT / "man").iterdir())
    done = subprocess.run(
        ["mandoc", "-Tlint", "-Wwarning", *pages], capture_output=True, text=True, check=False
    )
    said = (done.stdout + done.stderr).splitlines()
    # EXAMPLES stand where they are read first, and not near the end.
    assert [line for line in said if not line.endswith("order: Sh ENVIRONMENT")] == []


@pytest.mark.parametrize("name", sorted(file.name for file in (ROOT / "man").iterdir()))
def test_a_page_can_be_shown_without_utf_8(name: str) -> None:
    # Where LANG is not set, man warns of each other character before it shows the page.
    assert page(name).isascii()


@pytest.mark.parametrize("name", sorted(file.name for file in (ROOT / "man").iterdir()))
def test_examples_stand_in_the_first_third_of_a_page(name) -> None:
    text = page(name)
    before = text.partition(".Sh EXAMPLES\n")[0]
    assert len(before) < len(text) / 3


def shown_commands() -> list[tuple[str, str]]:
    """The commands of console blocks in README and docs/, with the output shown there."""
    pages = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
    text = "".join(file.read_text() for file in pages)
    blocks = re.findall(r"```console\n(.*?)```", text, re.S)
    return [
        (command, output)
        for block in blocks
        for command, output in re.findall(r"^\$ (.*)\n((?:(?!\$ ).*\n)*)", block, re.M)
    ]


@pytest.mark.parametrize(("command", "output"), shown_commands())
@pytest.mark.slow
def test_what_a_page_shows_is_what_happens(command, output) -> None:
    tool, _, arguments = command.partition(" ")
    name = tool.removeprefix("dl-")
    code = f"import sys; sys.argv[0]='{tool}'; from dltools.cli.{name} import main; main()"
    done = subprocess.run(
        [sys.executable, "-c", code, *arguments.split()],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "COLUMNS": "80", "NO_COLOR": "1"},
    )
    assert "".join(line.rstrip() + "\n" for line in done.stdout.splitlines()) == output
