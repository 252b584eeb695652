"""ARCHITECTURE.md and CONTRIBUTING.md name what there is: files, functions, options, exit codes."""

import ast
import importlib
import re
from functools import cache
from pathlib import Path

import pytest
import typer
from helpers.tools import TOOLS

from dltools.cli.exits import Exit

ROOT = Path(__file__).parents[2]
DOCUMENTS = ("ARCHITECTURE.md", "CONTRIBUTING.md", "SECURITY.md")
PLACES = ("dltools", "tests", "man", "samples", "bin", ".ci")

_FENCE = re.compile(r"^( *)```(\w+)\n(.*?)^\1```$", re.S | re.M)


def text(document: str) -> str:
    return (ROOT / document).read_text()


def prose(document: str) -> str:
    return _FENCE.sub("", text(document))


def spans(document: str) -> list[str]:
    return re.findall(r"`([^`\n]+)`", prose(document))


def section(title: str) -> str:
    """A section of ARCHITECTURE.md, without those of its level that follow."""
    marks = title.partition(" ")[0]
    return re.split(
        rf"^#{{1,{len(marks)}}} ", text("ARCHITECTURE.md").partition(f"\n{title}\n")[2], flags=re.M
    )[0]


def table(of: str) -> list[list[str]]:
    rows = re.findall(r"^\| (.*?) ?\|$", of, re.M)
    return [[cell.strip() for cell in row.split(" |")] for row in rows][1:]


@cache
def defined(file: str) -> frozenset[str]:
    """The classes and functions of a module, methods as `Class.method`."""
    found: set[str] = set()
    if not (ROOT / file).is_file():
        return frozenset(found)
    for node in ast.parse((ROOT / file).read_text()).body:
        if isinstance(node, ast.ClassDef):
            found |= {
                f"{node.name}.{inner.name}"
                for inner in node.body
                if isinstance(inner, ast.FunctionDef)
            }
        if isinstance(node, ast.ClassDef | ast.FunctionDef):
            found.add(node.name)
    return frozenset(found)


def walks() -> dict[str, list[list[str]]]:
    """The three walks, each a list of rows: number, file, function, what happens."""
    found = section("## Two walks through the code")
    parts = re.split(r"\n(?=\| # )", found)[1:]
    names = ["loss", "since", "set"]
    return dict(zip(names, [table("\n" + part) for part in parts], strict=True))


def created() -> set[str]:
    """The files that the recipes write."""
    parts = _FENCE.split(text("CONTRIBUTING.md"))
    return {
        re.findall(r"`(dltools/[\w/]+\.py)`", parts[number - 2])[-1]
        for number in range(2, len(parts), 4)
        if parts[number] == "python"
    }


@pytest.mark.parametrize("document", DOCUMENTS)
def test_every_file_that_is_named_exists(document) -> None:
    named = {span for span in spans(document) if span.partition("/")[0] in PLACES and "/" in span}
    assert len(named) > 10
    made = created() if document == "CONTRIBUTING.md" else set()
    assert {name for name in named if not (ROOT / name).exists()} == made


@pytest.mark.parametrize("document", DOCUMENTS)
def test_every_option_that_is_named_exists(document) -> None:
    known = {"--help"}
    for tool in TOOLS:
        app = importlib.import_module(f"dltools.cli.{tool.removeprefix('dl-')}").app
        known |= {name for p in typer.main.get_command(app).params for name in p.opts}
    named = set(re.findall(r"(?<![\w-])--[a-z][a-z-]*", " ".join(spans(document))))
    assert named <= known


def test_the_folders_are_those_of_the_package() -> None:
    shown = {row[0].strip("`/").split("/")[1] for row in table(section("## The folders"))}
    real = {file.parent.name for file in (ROOT / "dltools").glob("*/__init__.py")}
    assert {*shown, "notation"} == real


def test_the_exit_codes_are_those_of_the_tools() -> None:
    codes = [int(code) for row in table(section("### Exit codes")) for code in row[0].split(",")]
    assert codes == sorted(Exit)


@pytest.mark.parametrize("walk", walks())
def test_every_function_of_a_walk_is_in_its_file(walk) -> None:
    rows = walks()[walk]
    assert [int(row[0]) for row in rows] == list(range(1, len(rows) + 1))
    missing = [
        f"{file}: {function}"
        for file, function in ((row[1].strip("`"), row[2].strip("`")) for row in rows)
        if function not in defined(file)
    ]
    assert missing == []
