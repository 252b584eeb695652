"""The documentation says what the code does: options, exit codes, columns, shown output."""

import itertools
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from docs.generate import documents
from docs.generate.mdoc import value
from docs.generate.parsers import tools

from dltools import labels
from dltools.actions.plans import Op, Status
from dltools.notation.limits import LIMITS, written
from dltools.observations.schema import VERSION
from dltools.plan.realisation.options import Mode
from dltools.plan.samples import state

ROOT = Path(__file__).parents[2]


def test_make_docs_changes_nothing() -> None:
    changed = [path.name for path, text in documents().items() if path.read_text() != text]
    assert not changed, f"run `make docs`: it changes {', '.join(changed)}"


def page(name: str) -> str:
    return (ROOT / "man" / name).read_text()


def as_mdoc(name: str) -> str:
    return f"\\-{name[2:]}" if name.startswith("--") else name[1:]


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
    said = {value for name, value in vars(labels).items() if name.isupper()}
    known = {value for value in said if str(value).startswith(labels.PREFIX)}
    assert known - {labels.PREFIX} == set(labels.KNOWN)
    for label in labels.KNOWN:
        assert label in every
    assert f"now {VERSION}." in page("dltools-observations.5")
    text = page("dltools-plan.5")
    for word in (*Op, *Status, *written(dict.fromkeys(LIMITS))):
        assert re.search(rf"\b{word}\b", text), word


def test_the_version_of_the_state_is_said() -> None:
    said = f"the version of its contents, which is {state.VERSION};"
    assert said in page("dltools-plan.5")


def test_every_mode_is_described() -> None:
    for mode, name in itertools.product(("auto", *Mode), ("dltools-modes.7", "dl-plan.1")):
        assert f".It Cm {mode}\n" in page(name)


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
def test_a_page_is_plain_and_has_its_examples_in_the_first_third(name) -> None:
    """Where LANG is not set, man warns of each character beyond ASCII before it shows the page."""
    text = page(name)
    assert text.isascii()
    before = text.partition(".Sh EXAMPLES\n")[0]
    assert len(before) < len(text) / 3


def test_readme_s_figures_are_those_that_were_measured() -> None:
    results = (ROOT / "samples" / "live" / "RESULTS.md").read_text()
    cells = re.findall(r"\| ([\d.]+) s( \([\d.]+ to [\d.]+\))", (ROOT / "README.md").read_text())
    assert len(cells) == 12
    assert [cell for cell in map("".join, cells) if cell not in results] == []


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
